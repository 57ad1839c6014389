package integrity_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/integrity"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// TestDamage breaks one thing at a time. A check finds it and changes nothing;
// a fixing run repairs it if it can, and then nothing is found any more.
func TestDamage(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(n *network)
		finds  string // in the one line of the check
		fixed  string // in the line of the fixing run; "" if it cannot
		after  func(t *testing.T, n *network)
	}{
		"nothing": {damage: func(*network) {}},
		"foreign bytes": {
			func(n *network) { n.write("person/ann", []byte("\x00not ours")) },
			"person/ann cannot be read", "moved to person%2Fann-r", nil,
		},
		"another id": {
			func(n *network) { n.write("place/c", []byte(`{"id":"d","name":"c"}`)) },
			`place/c cannot be read: it holds the id "d"`, "moved to place%2Fc-r",
			func(t *testing.T, n *network) {
				if !n.kept([]byte(`{"id":"d","name":"c"}`)) {
					t.Error("the bytes are not kept")
				}
			},
		},
		"unknown kind": {
			func(n *network) { n.write("comet/1", []byte("{}")) },
			"comet/1 is of a kind that this version does not know", "", nil,
		},
		"cleared reference": {
			func(n *network) { spoil(n, people, "ann", func(p *person) { p.Boss = "ghost" }) },
			"person/ann: boss refers to person ghost", "taken out of boss", nil,
		},
		"one of several": {
			func(n *network) {
				spoil(n, items, "cup", func(i *item) { i.Keepers = []string{"ann", "ghost", "ben"} })
			},
			"item/cup: keepers refers to person ghost", "taken out of keepers",
			func(t *testing.T, n *network) {
				if cup, _ := items.Get(n.state.Snapshot(), "cup"); !slices.Equal(cup.Keepers, []string{"ann", "ben"}) {
					t.Errorf("the keepers are %q", cup.Keepers)
				}
			},
		},
		"key of a map": {
			func(n *network) { spoil(n, items, "cup", func(i *item) { i.Weights["ghost"] = 3 }) },
			"item/cup: weights refers to place ghost", "taken out of weights", nil,
		},
		"cascading reference": {
			func(n *network) { spoil(n, items, "cup", func(i *item) { i.Owner = "ghost" }) },
			"item/cup: owner refers to person ghost", "deleted, and kept in item%2Fcup-r", nil,
		},
		"reference with a default": {
			func(n *network) { spoil(n, people, "ann", func(p *person) { p.Home = "ghost" }) },
			"person/ann: home refers to place ghost", "home is now home", nil,
		},
		"needed reference": {
			func(n *network) { spoil(n, people, "ann", func(p *person) { p.Born = "ghost" }) },
			"person/ann: born refers to place ghost", "deleted, and kept in person%2Fann-r",
			func(t *testing.T, n *network) {
				if r, _ := rules.Get(n.state.Snapshot(), "r"); !slices.Equal(r.Who, []string{"@ben", "#kind"}) {
					t.Errorf("the rule names %q", r.Who)
				}
			},
		},
		"reference that may mean something": {
			func(n *network) { spoil(n, people, "ann", func(p *person) { p.Exile = "ghost" }) },
			"person/ann: exile refers to place ghost", "", nil,
		},
		"role": {
			func(n *network) { spoil(n, rules, "r", func(r *rule) { r.Who = []string{"@ann", "@ghost"} }) },
			"rule/r: who refers to person ghost", "taken out of who", nil,
		},
		"malformed role": {
			func(n *network) { spoil(n, rules, "r", func(r *rule) { r.Who = []string{"ann"} }) },
			"rule/r: who must be #attribute or @id", "", nil,
		},
		"malformed attribute": {
			func(n *network) { spoil(n, people, "ann", func(p *person) { p.Traits = []string{"#kind"} }) },
			"person/ann: traits must be plain texts", "", nil,
		},
		"text that is too long": {
			func(n *network) { spoil(n, people, "ann", func(p *person) { p.Name = strings.Repeat("x", 5000) }) },
			"person/ann: name must be 1 to 8 characters long", "", nil,
		},
		"word that is none": {
			func(n *network) { spoil(n, items, "cup", func(i *item) { i.Shape = "nonsense" }) },
			"item/cup: shape must be one of round, flat", "", nil,
		},
		"value of a map": {
			func(n *network) { spoil(n, items, "cup", func(i *item) { i.Weights["b"] = 9999999 }) },
			"item/cup: weights.b must be 0 to 9", "", nil,
		},
		"member of a variant": {
			func(n *network) {
				spoil(n, items, "cup", func(i *item) { i.Shape, i.Flat.Width = "flat", 10 })
			},
			"item/cup: flat.width must be 1 to 9", "", nil,
		},
		"member in a list": {
			func(n *network) {
				spoil(n, items, "cup", func(i *item) { i.Parts = []part{{"urn:a"}, {"no uri"}} })
			},
			"item/cup: parts.1.site must be an absolute URI", "", nil,
		},
		"needed unique value": {
			func(n *network) { spoil(n, people, "ben", func(p *person) { p.Name = "ann" }) },
			"person/ben: name is not unique: person ann has the same", "name is now ann-2", nil,
		},
		"optional unique value": {
			func(n *network) { spoil(n, people, "ben", func(p *person) { p.Badge = "badge ann" }) },
			"person/ben: badge is not unique: person ann has the same", "badge is now empty", nil,
		},
		"rule of the kind": {
			func(n *network) { spoil(n, items, "cup", func(i *item) { i.Size = -1 }) },
			"item/cup: size must not be negative", "", nil,
		},
		"session of somebody gone": {
			func(n *network) { spoil(n, visits, "v", func(v *visit) { v.Person = "ghost" }) },
			"visit/v: person refers to person ghost", "deleted, and kept in visit%2Fv-r", nil,
		},
		"secret": {
			func(n *network) {
				n.visit(&visit{Meta: kind.Meta{ID: "w"}, Person: "ann", Token: "other"})
				spoil(n, visits, "w", func(v *visit) { v.Token = "very secret" })
			},
			"visit/w: token is not unique: visit v has the same", "token is now empty", nil,
		},
		"built-in record": {
			func(n *network) {
				spoil(n, people, "ann", func(p *person) { p.Born = "home" })
				n.write("place/home", []byte("?"))
			},
			"place/home cannot be read", "moved to place%2Fhome-r",
			func(t *testing.T, n *network) {
				if ann, ok := people.Get(n.state.Snapshot(), "ann"); !ok || ann.Born != "home" {
					t.Error("ann is gone for want of what can be made again")
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, n *network) {
				test.damage(n)
				before := n.stored()
				found := describe(n.scan(false))
				if test.finds == "" && len(found) > 0 || test.finds != "" && !has(found, "stays: "+test.finds, "") {
					t.Fatalf("the check found %q, want %q", found, test.finds)
				}
				if after := n.stored(); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Errorf("the check changed the store from %v to %v", before, after)
				}
				repaired := describe(n.scan(true))
				if test.fixed != "" && !has(repaired, "fixed: "+test.finds, test.fixed) {
					t.Errorf("the fixing run says %q, want %q", repaired, test.fixed)
				}
				if test.finds != "" && test.fixed == "" && !has(repaired, "stays: "+test.finds, "") {
					t.Errorf("the fixing run says %q", repaired)
				}
				again := describe(n.scan(false))
				if test.fixed != "" && len(again) > 0 || test.fixed == "" && !slices.Equal(again, found) {
					t.Errorf("a check after it finds %q", again)
				}
				if strings.Contains(fmt.Sprint(found, repaired, again), "very secret") {
					t.Error("a report shows a secret")
				}
				if test.after != nil {
					test.after(t, n)
				}
			})
		})
	}
}

// TestLostBatch has memory miss a write. A fixing run loads it again.
func TestLostBatch(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		faulty := storetest.NewFaulty(mem)
		n := open(t, mem, faulty, dir)
		defer n.close()
		synctest.Wait()
		for _, key := range []string{"place/new", "place/home"} {
			faulty.DropNext()
			n.write(key, []byte(`{"id":"`+strings.TrimPrefix(key, "place/")+`","name":"x`+key[6:]+`"}`))
		}
		if _, ok := places.Get(n.state.Snapshot(), "new"); ok {
			t.Fatal("memory missed nothing: the test tests nothing")
		}
		want := []string{
			"stays: place/home differs between memory and the store",
			"stays: place/new differs between memory and the store",
		}
		if found := describe(n.scan(false)); !slices.Equal(found, want) {
			t.Errorf("the check found %q", found)
		}
		if found := describe(n.scan(true)); len(found) != 2 || !has(found, "fixed: place/new", "loaded again") {
			t.Errorf("the fixing run says %q", found)
		}
		if p, ok := places.Get(n.state.Snapshot(), "home"); !ok || p.Name != "xhome" {
			t.Errorf("memory has %+v", p)
		}
		if found := describe(n.scan(false)); len(found) > 0 {
			t.Errorf("a check after it finds %q", found)
		}
	})
}

// TestAstray has somebody write to a record that memory shares, which nobody may:
// then an index leads to what the record is no longer. What is stored is as it
// should be; a fixing run loads memory again.
func TestAstray(t *testing.T) {
	for name, spoil := range map[string]func(*person){
		"an index":   func(p *person) { p.Name = "zoe" },
		"attributes": func(p *person) { p.Traits = []string{"wild"} },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, n *network) {
				ann, _ := people.Get(n.state.Snapshot(), "ann")
				spoil(ann)
				n.write("person/ann", []byte(`{"id":"ann","name":"anna","home":"a","born":"b"}`))
				if found := describe(n.scan(false)); len(found) != 1 || !has(found, "stays: person/ann is not where memory looks for it", "") {
					t.Errorf("the check found %q", found)
				}
				if found := describe(n.scan(true)); len(found) != 1 || !has(found, "fixed: person/ann", "loaded again") {
					t.Errorf("the fixing run says %q", found)
				}
				if found := describe(n.scan(false)); len(found) > 0 {
					t.Errorf("a check after it finds %q", found)
				}
			})
		})
	}
}

// TestLateMemory has memory follow only while the scan waits for it: that is
// no finding.
func TestLateMemory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		faulty := storetest.NewFaulty(mem)
		n := open(t, mem, faulty, dir)
		defer n.close()
		synctest.Wait()
		gate := faulty.HoldNext()
		n.write("place/new", []byte(`{"id":"new","name":"new"}`))
		time.AfterFunc(lag/2, gate.Open)
		if found := describe(n.scan(false)); len(found) > 0 {
			t.Errorf("found %q", found)
		}
	})
}

// TestSweptSession removes a session of somebody gone while the scan waits for
// the sweeper: that is no finding either.
func TestSweptSession(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		spoil(n, visits, "v", func(v *visit) { v.Person = "ghost" })
		time.AfterFunc(lag/2, func() {
			if err := n.state.Delete(context.Background(), state.Program("test"), visits.Def, "v"); err != nil {
				t.Error(err)
			}
		})
		if found := describe(n.scan(false)); len(found) > 0 {
			t.Errorf("found %q", found)
		}
	})
}

// TestOneAtATime starts runs of both kinds while one is under way.
func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		faulty := storetest.NewFaulty(mem)
		n := open(t, mem, faulty, dir)
		defer n.close()
		if r := n.scanner.Report(); !r.Started.IsZero() || r.Running {
			t.Errorf("before any scan the report is %+v", r)
		}
		for _, first := range []bool{false, true} {
			gate := faulty.BlockNext(storetest.Load)
			if err := n.scanner.Start(state.Program("test"), first); err != nil {
				t.Fatal(err)
			}
			<-gate.Reached()
			for _, second := range []bool{false, true} {
				if err := n.scanner.Start(state.Program("test"), second); !fault.Is(err, fault.CodeRateLimited) {
					t.Errorf("fixing %t during fixing %t: %v", second, first, err)
				}
			}
			if r := n.scanner.Report(); !r.Running || r.Fixing != first || r.Started.IsZero() || !r.Ended.IsZero() {
				t.Errorf("under way the report is %+v", r)
			}
			<-time.After(time.Second)
			gate.Open()
			synctest.Wait()
			if r := n.scanner.Report(); r.Running || r.Fixing != first || r.Ended.Sub(r.Started) != time.Second {
				t.Errorf("at the end the report is %+v", r)
			}
		}
	})
}

// TestFailure has the store fail a scan: the report says so, and the next one
// may start.
func TestFailure(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		faulty := storetest.NewFaulty(mem)
		n := open(t, mem, faulty, dir)
		defer n.close()
		faulty.FailNext(storetest.Load, storetest.ErrInjected)
		if err := n.scanner.Start(state.Program("test"), true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r := n.scanner.Report(); r.Running || !strings.Contains(r.Error, storetest.ErrInjected.Error()) {
			t.Errorf("the report is %+v", r)
		}
		if r := n.scan(false); len(r.Findings) > 0 {
			t.Errorf("the next found %q", describe(r))
		}
	})
}

// TestNothingIsLost makes it impossible to keep unreadable bytes: then they
// stay in the store.
func TestNothingIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		if err := os.WriteFile(n.scanner.Quarantine, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		n.write("place/a", []byte("?"))
		if err := n.scanner.Start(state.Program("test"), true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if r := n.scanner.Report(); r.Running || !strings.Contains(r.Error, "quarantine") {
			t.Errorf("the report is %+v", r)
		}
		if got := string(n.stored()["place/a"].Value); got != "?" {
			t.Errorf("the store has %q", got)
		}
	})
}

// TestTooMany finds more than a report keeps, under keys that no file can be
// called by, and repairs all of it.
func TestTooMany(t *testing.T) {
	inBubble(t, func(t *testing.T, n *network) {
		const all = integrity.MaxFindings + 20
		long := strings.Repeat("../", 200)
		for from := 0; from < all; from += 500 {
			var ops []store.Op
			for i := from; i < min(all, from+500); i++ {
				ops = append(ops, store.Op{Key: fmt.Sprintf("place/%s%d", long, i), Value: []byte("?"), Prev: store.Any})
			}
			if _, err := n.mem.Put(context.Background(), store.Head{}, ops); err != nil {
				t.Fatal(err)
			}
		}
		r := n.scan(true)
		if !r.TooMany || len(r.Findings) != integrity.MaxFindings {
			t.Errorf("%d findings, too many is %t", len(r.Findings), r.TooMany)
		}
		if r := n.scan(false); r.TooMany || len(r.Findings) > 0 {
			t.Errorf("then %d findings, too many is %t", len(r.Findings), r.TooMany)
		}
		files, err := os.ReadDir(n.scanner.Quarantine)
		if err != nil || len(files) != all {
			t.Errorf("the quarantine has %d files, want %d: %v", len(files), all, err)
		}
		if info, err := os.Stat(filepath.Join(n.scanner.Quarantine, files[0].Name())); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("a file has mode %v: %v", info.Mode(), err)
		}
	})
}
