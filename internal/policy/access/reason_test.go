package access_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// with returns the same with one more attribute of a member.
func (n naive) with(collection, id, attribute string) naive {
	members := map[string][]member{}
	for c, all := range n.members {
		members[c] = slices.Clone(all)
		for i, m := range members[c] {
			if c == collection && m.id == id {
				members[c][i].attributes = append(slices.Clone(m.attributes), attribute)
			}
		}
	}
	return naive{members, n.policies, n.snap}
}

// TestReasons compares why a list selects somebody, what would make it, and how
// far that would reach.
func TestReasons(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.build(t)
		snap := w.st.Snapshot()
		n := newNaive(snap)
		checkReasons(t, snap, n, access.ServicePolicyIdentities, model.ServicePolicies.Def, model.Identities.Def)
		checkReasons(t, snap, n, access.ServiceEdgeRouterPolicyServices, model.ServiceEdgeRouterPolicies.Def, model.Services.Def)
		for _, d := range []*kind.Def{model.Identities.Def, model.Services.Def} {
			for rec := range snap.All(d) {
				word := attribute.Draw(t, "attribute")
				compare(t, "widening", n.widening(d.Path, rec.Base().ID, word), access.Widening(snap, d, rec, word))
			}
		}
		for _, s := range append(idsOf(snap, model.Services.Def), "missing") {
			for _, typ := range []string{model.Dial, model.Bind} {
				var can []string
				for _, i := range idsOf(snap, model.Identities.Def) {
					if len(n.granting(i, s, typ)) > 0 {
						can = append(can, i)
					}
				}
				compare(t, "who can "+typ+" "+s, can, names(snap, model.Identities.Def, access.WhoCan(snap, s, typ)))
			}
		}
	})
}

func checkReasons(t *rapid.T, snap *state.Snapshot, n naive, l *access.List, policies, members *kind.Def) {
	for _, p := range n.policies[policies.Path] {
		policy, _ := snap.Lookup(policies, p.id)
		for _, m := range n.members[members.Path] {
			rec, _ := snap.Lookup(members, m.id)
			reasons := l.Reasons(policy, rec)
			compare(t, "is selected", p.selects(members.Path, m), len(reasons) > 0)
			if len(reasons) > 0 && !selects(reasons, p.semantic, m) {
				t.Fatalf("%v alone do not select %v", reasons, m)
			}
			var wants []string
			for _, word := range []string{"a", "b", "c"} {
				with := member{m.id, append(slices.Clone(m.attributes), word)}
				if !p.selects(members.Path, m) && p.selects(members.Path, with) {
					wants = append(wants, word)
				}
			}
			compare(t, "wanted", wants, slices.Sorted(slices.Values(l.Wants(policy, rec))))
		}
	}
}

// widening counts what lists show more of.
func (n naive) widening(from, id, attribute string) (more int) {
	wider := n.with(from, id, attribute)
	for way := range joining {
		if way[0] == from {
			more += len(wider.list(from, id, way[1])) - len(n.list(from, id, way[1]))
		}
	}
	return more
}
