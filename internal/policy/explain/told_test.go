package explain_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// TestToldIsWhatWouldHappen has every check enforced that only told: then those are
// refused of whom it was said, and nobody else. Among failed requests it is told of
// them alone.
func TestToldIsWhatWouldHappen(t *testing.T) {
	told := 0
	say := func(t *rapid.T) {
		w := newWorld(t)
		w.build()
		typ := types.Draw(t, "type")
		passes := func(who, service string) (bool, string) {
			l := w.explain(who, service, typ).Links[3]
			return l.Passed, l.What
		}
		// Who has one session is the same before and after.
		snap := w.st.Snapshot()
		single := slices.DeleteFunc(slices.Clone(people), func(id string) bool {
			return len(slices.Collect(model.APISessions.Select(snap, "identityId", id))) != 1
		})
		type pair struct{ who, service string }
		before := map[pair]bool{}
		for _, who := range single {
			for _, service := range services {
				ok, what := passes(who, service)
				would := strings.HasSuffix(what, who+" would be refused if that were enforced")
				if before[pair{who, service}] = ok && !would; would {
					told++
				}
				if !w.succeeds(who, service, typ) {
					continue
				}
				reported := slices.ContainsFunc(w.grants.Failures.Of(who), func(f posture.FailedRequest) bool { return f.ReportedOnly && f.ServiceID == service })
				if reported != would {
					t.Fatalf("a request of %s for %s is told of: %v; it is said: %s", who, service, reported, what)
				}
			}
		}
		w.write(func(tx *state.Tx) error {
			for _, id := range checks {
				must(t, model.PostureChecks.Edit(tx, id, func(c *model.PostureCheck) error { c.Mode = model.Enforce; return nil }))
			}
			return nil
		})
		for _, who := range single {
			for _, service := range services {
				if ok, what := passes(who, service); ok != before[pair{who, service}] {
					t.Fatalf("%s passes for %s: %v, which was told otherwise; now: %s", who, service, ok, what)
				}
			}
		}
	}
	// A hundred networks by chance need not have anybody in them of whom there is something
	// to say.
	for rounds := 0; rounds < 20 && told == 0; rounds++ {
		rapid.Check(t, say)
	}
	if told == 0 {
		t.Error("nobody would be refused")
	}
}
