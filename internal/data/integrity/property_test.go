package integrity_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// TestRepair damages random networks in random ways. After a fixing run a
// check finds only what nobody but the owner can decide; what has nothing to
// do with the damage is as it was, to the byte; and what was taken out of the
// store is kept.
func TestRepair(t *testing.T) {
	dirs := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(t *rapid.T) {
			dir, err := os.MkdirTemp(dirs, "")
			if err != nil {
				t.Fatal(err)
			}
			mem := storetest.NewMemory()
			n := open(t, mem, mem, dir)
			defer n.close()
			n.populate(t)
			links := n.links()
			before := n.stored()
			d := &damage{network: n, t: t, hit: map[string]bool{}, foreign: map[string]string{}}
			for range rapid.IntRange(1, 6).Draw(t, "damages") {
				d.any()
			}
			found, repaired := n.scan(false), n.scan(true)
			for key := range d.foreign {
				if !has(describe(found), "stays: "+key+" cannot be read", "") {
					t.Errorf("the check did not find %s: %q", key, describe(found))
				}
			}
			for _, f := range n.scan(false).Findings {
				// What cannot be decided also keeps others from being deleted.
				stays := "stays: " + f.Description + "; it stays so: "
				if !has(describe(repaired), stays, "exile") && !has(describe(repaired), stays, "decide") && !strings.HasPrefix(f.Description, "comet/") {
					t.Errorf("after the fixing run a check finds: %s\nthe fixing run said: %q", f.Description, describe(repaired))
				}
			}
			after := n.stored()
			for key, rec := range before {
				if reaches(links, key, d.hit) {
					continue
				}
				if got := after[key]; got.Rev != rec.Rev || string(got.Value) != string(rec.Value) {
					t.Errorf("%s was %s at %d and is %s at %d; damaged was %v", key, rec.Value, rec.Rev, got.Value, got.Rev, d.hit)
				}
			}
			for key, value := range d.foreign {
				if got, stays := after[key]; stays && string(got.Value) == value || !n.kept([]byte(value)) {
					t.Errorf("%s with %q was not moved to the quarantine", key, value)
				}
			}
		})
	})
}

// populate adds random records that keep every rule.
func (n *network) populate(t *rapid.T) {
	t.Helper()
	ids := func(prefix string, least int) []string {
		all := make([]string, rapid.IntRange(least, 4).Draw(t, prefix))
		for i := range all {
			all[i] = fmt.Sprint(prefix, i)
		}
		return all
	}
	where, who := append(ids("place", 1), "home"), ids("person", 1)
	maybe := func(of []string, label string) string {
		return rapid.SampledFrom(append([]string{""}, of...)).Draw(t, label)
	}
	some := func(of []string, label string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, len(of), rapid.ID[string]).Draw(t, label)
	}
	n.update(func(w kind.Writer) error {
		for _, id := range where[:len(where)-1] {
			if err := places.Create(w, &place{Meta: kind.Meta{ID: id}, Name: id}); err != nil {
				return err
			}
		}
		for i, id := range who {
			p := &person{
				Meta: kind.Meta{ID: id}, Name: id, Badge: maybe([]string{"b" + id}, "badge"), Boss: maybe(who[:i], "boss"),
				Home: rapid.SampledFrom(where).Draw(t, "home"), Born: rapid.SampledFrom(where).Draw(t, "born"),
			}
			if err := people.Create(w, p); err != nil {
				return err
			}
		}
		for _, id := range ids("item", 0) {
			i := &item{Meta: kind.Meta{ID: id}, Owner: maybe(who, "owner"), Keepers: some(who, "keepers"), Weights: map[string]int{}}
			for _, place := range some(where, "weights") {
				i.Weights[place] = 1
			}
			if err := items.Create(w, i); err != nil {
				return err
			}
		}
		for _, id := range ids("rule", 0) {
			r := &rule{Meta: kind.Meta{ID: id}}
			for _, person := range some(who, "who") {
				r.Who = append(r.Who, "@"+person)
			}
			if err := rules.Create(w, r); err != nil {
				return err
			}
		}
		return nil
	})
	for _, id := range ids("visit", 0) {
		n.visit(&visit{Meta: kind.Meta{ID: id}, Person: rapid.SampledFrom(who).Draw(t, "person"), Token: id})
	}
}

// links returns the keys that each key refers to.
func (n *network) links() map[string][]string {
	links := map[string][]string{}
	add := func(key, kind string, ids ...string) {
		for _, id := range ids {
			if id != "" {
				links[key] = append(links[key], kind+"/"+strings.TrimPrefix(id, "@"))
			}
		}
	}
	snap := n.state.Snapshot()
	for p := range people.All(snap) {
		add("person/"+p.ID, "place", p.Home, p.Born)
		add("person/"+p.ID, "person", p.Boss)
	}
	for i := range items.All(snap) {
		add("item/"+i.ID, "person", append([]string{i.Owner}, i.Keepers...)...)
		add("item/"+i.ID, "place", slices.Collect(maps.Keys(i.Weights))...)
	}
	for r := range rules.All(snap) {
		add("rule/"+r.ID, "person", r.Who...)
	}
	for v := range visits.All(snap) {
		add("visit/"+v.ID, "person", v.Person)
	}
	return links
}

// reaches reports whether a key is one of those hit or refers to one, however
// far.
func reaches(links map[string][]string, key string, hit map[string]bool) bool {
	seen := map[string]bool{}
	var walk func(string) bool
	walk = func(key string) bool {
		if hit[key] {
			return true
		}
		if seen[key] {
			return false
		}
		seen[key] = true
		return slices.ContainsFunc(links[key], walk)
	}
	return walk(key)
}

// damage is what was done to a network.
type damage struct {
	*network
	t       *rapid.T
	hit     map[string]bool   // keys of the records concerned
	foreign map[string]string // bytes that nobody can read, by key
}

// any damages one thing.
func (d *damage) any() {
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(d.stored()))).Draw(d.t, "key")
	name, id, _ := strings.Cut(key, "/")
	switch how := rapid.SampledFrom([]string{"foreign", "new", "id", "unknown", "delete", "dangle", "repeat"}).Draw(d.t, "how"); how {
	case "foreign":
		d.bytes(key, fmt.Sprintf("no record %d", len(d.foreign)))
	case "new":
		d.bytes("rule/unheard", fmt.Sprintf("[%d]", len(d.foreign)))
	case "id":
		d.bytes(key, fmt.Sprintf(`{"id":"other%d"}`, len(d.foreign)))
	case "unknown":
		d.write("comet/1", []byte("?"))
		d.hit["comet/1"] = true
	case "delete":
		d.write(key, nil)
		d.hit[key] = true
		delete(d.foreign, key)
	default:
		if def := kinds.Named(name); def != nil && d.foreign[key] == "" {
			d.spoil(how, def, id)
		}
	}
}

// bytes stores what cannot be read.
func (d *damage) bytes(key, value string) {
	if strings.HasPrefix(key, "comet/") {
		return
	}
	d.write(key, []byte(value))
	d.hit[key], d.foreign[key] = true, value
}

// spoil makes a record break a rule.
func (d *damage) spoil(how string, def *kind.Def, id string) {
	d.hit[def.Name+"/"+id] = true
	another := func(prefix string) string { return fmt.Sprint(prefix, rapid.IntRange(0, 3).Draw(d.t, "another")) }
	switch field := rapid.IntRange(0, 5).Draw(d.t, "field"); def {
	case places.Def:
		name := another("place")
		d.hit["place/"+name] = true
		spoil(d.network, places, id, func(p *place) { p.Name = name })
	case people.Def:
		other := another("person")
		if how == "repeat" {
			d.hit["person/"+other] = true
			spoil(d.network, people, id, func(p *person) { p.Name, p.Badge = other, "b"+other })
			return
		}
		spoil(d.network, people, id, func(p *person) {
			*[]*string{&p.Home, &p.Born, &p.Boss, &p.Exile, &p.Home, &p.Boss}[field] = "ghost"
		})
	case items.Def:
		spoil(d.network, items, id, func(i *item) {
			switch field % 3 {
			case 0:
				i.Owner = "ghost"
			case 1:
				i.Keepers = append(i.Keepers, "ghost")
			default:
				i.Weights = map[string]int{"ghost": 1}
			}
		})
	case rules.Def:
		spoil(d.network, rules, id, func(r *rule) { r.Who = append(r.Who, "@ghost") })
	case visits.Def:
		other := another("visit")
		if how == "repeat" {
			d.hit["visit/"+other] = true
			spoil(d.network, visits, id, func(v *visit) { v.Token = other })
			return
		}
		spoil(d.network, visits, id, func(v *visit) { v.Person = "ghost" })
	}
}

// timeless is a test without the deadline that a bubble does not let it ask
// for.
type timeless struct{ rapid.TB }
