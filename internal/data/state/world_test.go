package state_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// world is what a State should hold: plain maps, kind to id to record. Its
// records are never written.
type world map[*kind.Def]map[string]kind.Record

func newWorld() world {
	w := world{}
	for _, d := range kinds.Defs {
		w[d] = map[string]kind.Record{}
	}
	return w
}

func (w world) clone() world {
	c := world{}
	for d, recs := range w {
		c[d] = maps.Clone(recs)
	}
	return c
}

const none = fault.Code("")

// put checks and stores a record the naive way.
func (w world) put(d *kind.Def, rec kind.Record) fault.Code {
	id := rec.Base().ID
	for _, f := range fields {
		if f.def != d || !f.unique {
			continue
		}
		for other, has := range w[d] {
			if other != id && len(f.keys(rec)) > 0 && slices.Equal(f.keys(has), f.keys(rec)) {
				return fault.CodeInvalid
			}
		}
	}
	for _, f := range fields {
		if f.def != d || f.target == nil {
			continue
		}
		for _, key := range f.keys(rec) {
			if f.roles {
				if _, ok := w[f.target][key[1:]]; key[0] == '@' && !ok {
					return fault.CodeInvalid
				}
			} else if _, ok := w[f.target][key]; !ok {
				return fault.CodeNotFound
			}
		}
	}
	w[d][id] = rec
	return none
}

func (w world) create(d *kind.Def, rec kind.Record) fault.Code {
	if _, taken := w[d][rec.Base().ID]; taken {
		return fault.CodeInvalid
	}
	return w.put(d, rec)
}

func (w world) edit(d *kind.Def, id string, change func(kind.Record)) fault.Code {
	old, ok := w[d][id]
	if !ok {
		return fault.CodeNotFound
	}
	next := d.Clone(old)
	change(next)
	return w.put(d, next)
}

// remove deletes a record and follows the references to it.
func (w world) remove(d *kind.Def, id string, underWay map[kind.Record]bool) fault.Code {
	rec, ok := w[d][id]
	if !ok {
		return fault.CodeNotFound
	}
	underWay[rec] = true
	for _, f := range fields {
		if f.target != d || f.def.Lane != d.Lane {
			continue
		}
		key := id
		if f.roles {
			key = "@" + id
		}
		for _, holder := range slices.Sorted(maps.Keys(w[f.def])) {
			has, still := w[f.def][holder]
			if !still || underWay[has] || !slices.Contains(f.keys(has), key) {
				continue
			}
			code := none
			switch f.rule {
			case kind.Restrict:
				code = fault.CodeReferenced
			case kind.Cascade:
				code = w.remove(f.def, holder, underWay)
			case kind.Clear:
				code = w.edit(f.def, holder, func(r kind.Record) { f.drop(r, id) })
			}
			if code != none {
				return code
			}
		}
	}
	delete(w[d], id)
	return none
}

func (w world) delete(d *kind.Def, id string) fault.Code {
	return w.remove(d, id, map[kind.Record]bool{})
}

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// verify tests that a snapshot holds exactly the world, seen from every side.
func (w world) verify(t tester, snap *state.Snapshot) {
	t.Helper()
	for _, d := range kinds.Defs {
		want := slices.Sorted(maps.Keys(w[d]))
		if got := ids(snap.All(d)); !slices.Equal(got, want) {
			t.Fatalf("%s: the snapshot has %q, want %q", d.Path, got, want)
		}
		if got := snap.Len(d); got != len(want) {
			t.Fatalf("%s: length is %d, want %d", d.Path, got, len(want))
		}
		for id, rec := range w[d] {
			got, ok := snap.Lookup(d, id)
			if !ok || plain(d, got) != plain(d, rec) {
				t.Fatalf("%s %s is %+v (%t), want %+v", d.Name, id, got, ok, rec)
			}
		}
		if rec, ok := snap.Lookup(d, "nobody"); ok {
			t.Fatalf("%s nobody is %+v", d.Name, rec)
		}
	}
	w.verifyIndexes(t, snap)
	w.verifyRanks(t, snap)
	w.verifyAttributes(t, snap)
}

func (w world) verifyIndexes(t tester, snap *state.Snapshot) {
	t.Helper()
	for _, f := range fields {
		want := map[string][]string{"": nil, "nothing": nil, "\xff": nil}
		for _, id := range slices.Sorted(maps.Keys(w[f.def])) {
			for _, key := range slices.Compact(slices.Sorted(slices.Values(f.keys(w[f.def][id])))) {
				want[key] = append(want[key], id)
			}
		}
		for key, wanted := range want {
			if got := ids(snap.Select(f.def, f.name, key)); !slices.Equal(got, wanted) {
				t.Fatalf("%s of %s: key %q has %q, want %q", f.name, f.def.Path, key, got, wanted)
			}
		}
	}
}

func (w world) verifyRanks(t tester, snap *state.Snapshot) {
	t.Helper()
	rank := func(rec kind.Record) string {
		group, place := rec.(*place).Ranked()
		return group + place
	}
	want := slices.SortedFunc(maps.Values(w[places.Def]), func(a, b kind.Record) int {
		return cmp.Or(strings.Compare(rank(a), rank(b)), strings.Compare(a.Base().ID, b.Base().ID))
	})
	ranked, zones := snap.Ranked(places.Def), map[string]int{}
	for n, rec := range want {
		at := rank(rec)
		first := slices.IndexFunc(want, func(r kind.Record) bool { return rank(r) == at })
		got := ranked.At(n)
		if got == nil || got.Base().ID != rec.Base().ID || ranked.Ahead(got) != n || ranked.Before(at) != first {
			t.Fatalf("place %d is %+v, want %+v", n, got, rec)
		}
		if got, key, ok := ranked.From(at); !ok || key != at || got.Base().ID != want[first].Base().ID {
			t.Fatalf("from %q on comes %+v at %q, want %+v", at, got, key, want[first])
		}
		group, _ := rec.(*place).Ranked()
		zones[group]++
	}
	if extra := ranked.At(len(want)); extra != nil || ranked.Before("\xff") != len(want) {
		t.Fatalf("there is also %+v", extra)
	}
	if got := maps.Collect(ranked.Groups("")); !maps.Equal(got, zones) {
		t.Fatalf("the groups are %v, want %v", got, zones)
	}
	for group := range zones {
		if got := maps.Collect(ranked.Groups(group)); got[group] != zones[group] || len(got) != 1 || len(ids(ranked.In(group))) != zones[group] {
			t.Fatalf("of group %q there are %v, %q, want %d", group, got, ids(ranked.In(group)), zones[group])
		}
	}
}

func (w world) verifyAttributes(t tester, snap *state.Snapshot) {
	t.Helper()
	d := people.Def
	want := map[string][]string{"": slices.Sorted(maps.Keys(w[d])), "nothing": nil}
	ordinals := map[uint32]string{}
	for _, id := range want[""] {
		for _, a := range slices.Compact(slices.Sorted(slices.Values(w[d][id].(*person).Traits))) {
			want[a] = append(want[a], id)
		}
		ord, ok := snap.Ordinal(d, id)
		if other, taken := ordinals[ord]; taken || !ok {
			t.Fatalf("ordinal %d of %s (%t) is also that of %s", ord, id, ok, other)
		}
		ordinals[ord] = id
	}
	for a, wanted := range want {
		set := snap.Tagged(d, a)
		if set == nil {
			if len(wanted) > 0 {
				t.Fatalf("nobody has attribute %q, want %q", a, wanted)
			}
			continue
		}
		var got []string
		for it := set.Iterator(); it.HasNext(); {
			got = append(got, ordinals[it.Next()])
		}
		if slices.Sort(got); !slices.Equal(got, wanted) {
			t.Fatalf("attribute %q is that of %q, want %q", a, got, wanted)
		}
		if at := ids(snap.At(d, set)); !slices.Equal(slices.Sorted(slices.Values(at)), wanted) {
			t.Fatalf("at the ordinals of attribute %q are %q, want %q", a, at, wanted)
		}
		if within := ids(snap.Within(d, set)); !slices.Equal(within, wanted) {
			t.Fatalf("within attribute %q are %q, want %q", a, within, wanted)
		}
	}
	delete(want, "")
	delete(want, "nothing")
	if got := slices.Collect(snap.Attributes(d)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("attributes in use are %q, want those of %q", got, want)
	}
	if _, ok := snap.Ordinal(d, "nobody"); ok {
		t.Fatalf("nobody has an ordinal")
	}
}

func ids(recs func(func(kind.Record) bool)) []string {
	var out []string
	for rec := range recs {
		out = append(out, rec.Base().ID)
	}
	return out
}
