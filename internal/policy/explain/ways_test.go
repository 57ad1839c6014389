package explain_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/explain"
)

// TestWaysAreGrants holds the ways of networks at random against who may use what, from
// both sides and page by page.
func TestWaysAreGrants(t *testing.T) {
	reached := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.build()
		snap := w.st.Snapshot()
		sides := []struct {
			near, far []string
			find      func(id string, first, end int) (explain.Ways, error)
			pair      func(near, far string) (identity, service string)
		}{
			{people, services, func(id string, first, end int) (explain.Ways, error) {
				return explain.FromIdentity(snap, id, first, end)
			}, func(a, b string) (string, string) { return a, b }},
			{services, people, func(id string, first, end int) (explain.Ways, error) {
				return explain.FromService(snap, id, first, end)
			}, func(a, b string) (string, string) { return b, a }},
		}
		for _, side := range sides {
			for _, near := range side.near {
				ways, err := side.find(near, 0, 100)
				must(t, err)
				var paged []string
				for first := 0; ; first++ {
					page, err := side.find(near, first, first+1)
					must(t, err)
					if len(page.Reached) == 0 {
						break
					}
					paged = append(paged, page.Reached[0].ID)
				}
				var ids []string
				for _, r := range ways.Reached {
					ids = append(ids, r.ID)
				}
				if !slices.Equal(ids, paged) || !slices.IsSorted(ids) || ways.Count != len(ids) {
					t.Fatalf("of %s, %v are reached, of %d, and %v page by page", near, ids, ways.Count, paged)
				}
				reached += len(ids)
				for _, far := range side.far {
					identity, service := side.pair(near, far)
					i := slices.IndexFunc(ways.Reached, func(r explain.Attained) bool { return r.ID == far })
					got := explain.Attained{}
					if i >= 0 {
						got = ways.Reached[i]
					}
					var by []string
					for _, way := range got.Ways {
						by = append(by, way.PolicyID)
						if len(way.Roles) == 0 {
							t.Fatalf("a way without a role: %+v", way)
						}
					}
					var want []string
					for _, typ := range []string{model.Dial, model.Bind} {
						for _, p := range access.Granting(snap, identity, service, typ) {
							want = append(want, p.ID)
						}
					}
					slices.Sort(by)
					slices.Sort(want)
					if got.Dial != access.MayDial(snap, identity, service) || got.Bind != access.MayBind(snap, identity, service) || !slices.Equal(by, want) {
						t.Fatalf("%s and %s: %+v by %v, want %v", near, far, got, by, want)
					}
				}
				for _, p := range ways.Policies {
					if len(p.Roles) == 0 || p.EndCount < len(p.Ends) || slices.ContainsFunc(p.Ends, func(e explain.RoleEnd) bool { return e.Count > p.Count }) {
						t.Fatalf("a policy: %+v", p)
					}
				}
			}
		}
	})
	if reached == 0 {
		t.Error("nobody reaches anything")
	}
}
