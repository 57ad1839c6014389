package access_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// pairs is who may use what, with no regard to how. An id may come again with
// another name.
func (n naive) pairs(gained bool) map[string]access.Pair {
	found := map[string]access.Pair{}
	for i := range model.Identities.All(n.snap) {
		for s := range model.Services.All(n.snap) {
			for _, typ := range []string{model.Dial, model.Bind} {
				if len(n.granting(i.ID, s.ID, typ)) > 0 {
					found[i.ID+" "+s.ID+" "+typ] = access.Pair{
						IdentityID: i.ID, Identity: i.Name, ServiceID: s.ID, Service: s.Name, Type: typ, Gained: gained,
					}
				}
			}
		}
	}
	return found
}

// naiveDifference compares everything with everything.
func naiveDifference(s step, max int) access.Delta {
	was, is := newNaive(s.before).pairs(false), newNaive(s.after).pairs(true)
	var d access.Delta
	for key, pair := range was {
		if _, still := is[key]; !still {
			d.Lost++
			d.Pairs = append(d.Pairs, pair)
		}
	}
	for key, pair := range is {
		if _, already := was[key]; !already {
			d.Gained++
			d.Pairs = append(d.Pairs, pair)
		}
	}
	slices.SortFunc(d.Pairs, func(a, b access.Pair) int {
		if a.Gained != b.Gained && a.Identity == b.Identity && a.Service == b.Service && a.Type == b.Type {
			return map[bool]int{true: 1, false: -1}[a.Gained]
		}
		return cmp.Or(strings.Compare(a.Identity, b.Identity), strings.Compare(a.Service, b.Service), strings.Compare(a.Type, b.Type))
	})
	d.More = len(d.Pairs) > max
	d.Pairs = d.Pairs[:min(max, len(d.Pairs))]
	return d
}

// TestDifference changes a world at random, by steps of one change and of many,
// and gives records names that others had.
func TestDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.build(t)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			s := step{before: w.st.Snapshot()}
			for range rapid.IntRange(1, 6).Draw(t, "writes") {
				w.change(t)
				w.rename(t)
			}
			s.after = w.st.Snapshot()
			s.changed = diff(s.before, s.after)
			max := rapid.IntRange(0, 12).Draw(t, "max")
			compare(t, fmt.Sprintf("after changes of %v", refs(s.changed)), naiveDifference(s, max), access.Difference(s.before, s.after, s.changed, max))
		}
	})
}

// rename swaps the names of two identities or gives a service a new one.
func (w *world) rename(t *rapid.T) {
	a, b := some(model.Identities.Def).Draw(t, "one"), some(model.Identities.Def).Draw(t, "other")
	service, name := some(model.Services.Def).Draw(t, "renamed"), rapid.SampledFrom([]string{"s0", "s3", "t1"}).Draw(t, "name")
	// A name that is taken is refused, and nothing happens.
	_, _ = w.write(func(tx *state.Tx) error {
		for _, step := range [][2]string{{a, "nobody"}, {b, a}, {a, b}} {
			err := model.Identities.Edit(tx, step[0], func(i *model.Identity) error { i.Name = step[1]; return nil })
			if err != nil {
				return err
			}
		}
		return nil
	})
	_, _ = w.write(func(tx *state.Tx) error {
		return model.Services.Edit(tx, service, func(s *model.Service) error { s.Name = name; return nil })
	})
}

// BenchmarkDifference gives a tenth of all identities a tenth of all services,
// everyone everything, and nobody nothing; it gives a tenth of all identities
// other attributes, and everyone more services.
func BenchmarkDifference(b *testing.B) {
	for _, c := range []struct {
		name   string
		change func(tx *state.Tx) error
	}{
		{"tenth", policyFor(attributesTo(10), attributesTo(5))},
		{"everything", policyFor([]string{"#all"}, []string{"#all"})},
		{"nobody", policyFor([]string{"#nobody"}, []string{"#nobody"})},
		{"identities", many(manyIdentities/10, func(tx *state.Tx, i int) error {
			return model.Identities.Upsert(tx, fmt.Sprintf("i%06d", i), func(who *model.Identity) {
				who.RoleAttributes = []string{"a1", "a2", fmt.Sprint("a", i%300)}
			})
		})},
		{"services", many(manyServices/10, func(tx *state.Tx, i int) error {
			return model.Services.Upsert(tx, fmt.Sprintf("n%06d", i), func(s *model.Service) {
				s.Name, s.RoleAttributes = s.ID, []string{fmt.Sprint("a", i%100)}
			})
		})},
	} {
		b.Run(c.name, func(b *testing.B) {
			st := network(b, manyIdentities)
			undo(b, st)
			before := st.Snapshot()
			update(b, st, c.change)
			after := st.Snapshot()
			changed := diff(before, after)
			var d access.Delta
			b.ReportAllocs()
			for b.Loop() {
				d = access.Difference(before, after, changed, 1000)
			}
			b.ReportMetric(float64(d.Gained), "gained")
			b.ReportMetric(float64(d.Lost), "lost")
			b.ReportMetric(float64(access.Affected(before, after, changed).GetCardinality()), "identities")
		})
	}
}

func attributesTo(n int) (roles []string) {
	for i := range n {
		roles = append(roles, fmt.Sprint("#a", i))
	}
	return roles
}

func policyFor(identities, services []string) func(tx *state.Tx) error {
	return func(tx *state.Tx) error {
		return model.ServicePolicies.Upsert(tx, "extra", func(p *model.ServicePolicy) {
			p.Name, p.Type, p.Semantic = "extra", model.Dial, model.AnyOf
			p.IdentityRoles, p.ServiceRoles = identities, services
		})
	}
}

func many(n int, change func(tx *state.Tx, i int) error) func(tx *state.Tx) error {
	return func(tx *state.Tx) error {
		for i := range n {
			if err := change(tx, i); err != nil {
				return err
			}
		}
		return nil
	}
}
