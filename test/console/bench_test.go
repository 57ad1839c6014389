package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// fill writes identities, a tenth as many services, and a policy for every hundred of
// those, a thousand records at a time.
func fill(b *testing.B, s *servertest.Server, identities int) {
	b.Helper()
	many := func(n int, add func(tx *state.Tx, i int) error) {
		const each = 1000
		for from := 0; from < n; from += each {
			err := s.State().Update(b.Context(), state.Program("bench"), func(tx *state.Tx) error {
				for i := from; i < min(from+each, n); i++ {
					if err := add(tx, i); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	many(identities/10, func(tx *state.Tx, i int) error {
		rec := model.Services.New()
		rec.Name, rec.EncryptionRequired, rec.RoleAttributes = fmt.Sprintf("service-%05d.branch-%d.example", i, i%97), true, []string{fmt.Sprint("group-", i%50)}
		return model.Services.Create(tx, rec)
	})
	many(identities/1000, func(tx *state.Tx, i int) error {
		rec := model.ServicePolicies.New()
		rec.Name, rec.Type, rec.Semantic = fmt.Sprintf("policy-%05d", i), "Dial", "AnyOf"
		rec.IdentityRoles, rec.ServiceRoles = []string{fmt.Sprint("#branch-", i%97)}, []string{fmt.Sprint("#group-", i%50)}
		return model.ServicePolicies.Create(tx, rec)
	})
	many(identities, func(tx *state.Tx, i int) error {
		rec := model.Identities.New()
		rec.Name, rec.Type = fmt.Sprintf("device-%07d.branch-%d.example", i, i%97), []string{"Device", "User", "Service"}[i%3]
		rec.RoleAttributes = []string{fmt.Sprint("branch-", i%97), fmt.Sprint("half-", i%2), "all-devices"}
		return model.Identities.Create(tx, rec)
	})
}

// used is the time that processors have spent on this process.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPages asks for pages of networks of two sizes, and prints how long the middle
// one takes, and the slowest of a hundred, with the connection in it, and the time of
// processors, which others on the machine do not make longer.
func BenchmarkPages(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := servertest.Start(b)
			fill(b, s, n)
			visitor := admin(b, s)
			row := strings.Split(visitor.get("/console/identities?filter=device-0000777").is(http.StatusOK).body, `class="row" href="`)
			record, _, _ := strings.Cut(row[1], `"`)
			table := func(filter, sort string, from int) string {
				return "/console/identities?" + url.Values{"filter": {filter}, "sort": {sort}, "from": {fmt.Sprint(from)}}.Encode()
			}
			for _, page := range []struct{ name, path string }{
				{"overview", "/console/"},
				{"table", "/console/identities"},
				{"name", table("branch-13", "name desc", 0)},
				{"role", table(`anyOf(roleAttributes) = "branch-13"`, "createdAt", 0)},
				{"several", table(`type = "User" and name contains "77"`, "createdAt desc", 0)},
				{"middle", table(`name contains "device"`, "createdAt desc", n/2)},
				{"end", table("", "createdAt", n-60)},
				{"search", "/console/search?q=device-0000777"},
				{"common", "/console/search?q=example"},
				{"record", record},
				{"new", "/console/identities/new"},
				{"edit", record + "/edit"},
				{"delete", record + "/delete"},
			} {
				b.Run(page.name, func(b *testing.B) {
					var took []time.Duration
					began := used(b)
					for b.Loop() {
						start := time.Now()
						visitor.get(page.path).is(http.StatusOK)
						took = append(took, time.Since(start))
					}
					slices.Sort(took)
					ms := func(share int) float64 { return float64(took[(len(took)-1)*share/100].Microseconds()) / 1000 }
					b.ReportMetric(ms(50), "p50-ms")
					b.ReportMetric(ms(99), "p99-ms")
					b.ReportMetric(float64((used(b)-began).Microseconds())/1000/float64(len(took)), "cpu-ms")
					b.ReportMetric(0, "ns/op")
				})
			}
		})
	}
}
