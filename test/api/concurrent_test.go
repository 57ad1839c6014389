package api_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

// TestOneNameOneWinner creates the same name many times at once.
func TestOneNameOneWinner(t *testing.T) {
	const racers = 64
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		if r.nameless {
			return
		}
		name := servertest.Unique("raced")
		bodies := make([]M, racers) // that are alike in nothing else
		for i := range bodies {
			bodies[i] = joined(r.least(t, c), M{"name": name})
		}
		answers := make([]*servertest.Answer, racers)
		var start, done sync.WaitGroup
		start.Add(1)
		for i := range racers {
			done.Go(func() {
				start.Wait()
				answers[i] = c.Post(r.path, bodies[i])
			})
		}
		start.Done()
		done.Wait()
		var winners []*servertest.Answer
		for _, a := range answers {
			if a.Status == 201 {
				winners = append(winners, a)
			} else {
				a.Fails(400, "COULD_NOT_VALIDATE", "name")
			}
		}
		if len(winners) != 1 {
			t.Fatalf("%d of %d creates won", len(winners), racers)
		}
		a := c.Get(r.path + "?filter=" + query(`name = "%s"`, name))
		if a.Total() != 1 || a.List()[0]["id"] != winners[0].ID() {
			t.Errorf("the list has %d, the winner is %s: %s", a.Total(), winners[0].ID(), a.Raw)
		}
	})
}

// TestPatchesOfOneRecord changes different fields of one record at once, again
// and again: every change stays.
func TestPatchesOfOneRecord(t *testing.T) {
	c := shared.Admin(t)
	id := create(t, c, "identities", nil)
	rounds := 20
	fields := map[string]func(n int) any{
		"name":                     func(n int) any { return fmt.Sprintf("%s-%d", id, n) },
		"externalId":               func(n int) any { return fmt.Sprintf("%s-%d", id, n) },
		"roleAttributes":           func(n int) any { return []any{fmt.Sprintf("r%03d", n)} },
		"appData":                  func(n int) any { return M{"n": float64(n)} },
		"defaultHostingCost":       func(n int) any { return float64(n) },
		"defaultHostingPrecedence": func(n int) any { return []any{"required", "failed"}[n%2] },
		"tags":                     func(n int) any { return M{"n": fmt.Sprint(n)} },
		"isAdmin":                  func(n int) any { return n%2 == 1 },
	}
	var done sync.WaitGroup
	for name, value := range fields {
		done.Go(func() {
			for n := range rounds {
				if a := c.Patch("identities/"+id, M{name: value(n)}); a.Status != 200 {
					t.Errorf("%s: status %d: %s", name, a.Status, a.Raw)
				}
				// Nobody else writes this field, so it must be as just written.
				if diff := cmp.Diff(value(n), c.Get("identities/" + id).Data()[name]); diff != "" {
					t.Errorf("%s differs after its change %d (-want +got):\n%s", name, n, diff)
				}
			}
		})
	}
	done.Wait()
}

// TestCreateAgainstDelete links services to a config while it is deleted: no
// service may end up with a config that is gone.
func TestCreateAgainstDelete(t *testing.T) {
	c := shared.Admin(t)
	for range 10 {
		config := create(t, c, "configs", nil)
		answers := make([]*servertest.Answer, 16)
		var done sync.WaitGroup
		for i := range answers {
			body := joined(resourceAt("services").least(t, c), M{"configs": []any{config}})
			done.Go(func() { answers[i] = c.Post("services", body) })
		}
		var deleted *servertest.Answer
		done.Go(func() { deleted = c.Delete("configs/" + config) })
		done.Wait()
		deleted.Want(200)
		for _, a := range answers {
			if a.Status != 201 {
				a.Fails(404, "NOT_FOUND", "configs")
				continue
			}
			if diff := cmp.Diff([]any{}, c.Get("services/"+a.ID()).At("data.configs")); diff != "" {
				t.Errorf("a service kept a deleted config (-want +got):\n%s", diff)
			}
		}
	}
}
