package posture_test

import (
	"fmt"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// page is what a listing of services needs: for each its policies, and for
// each of those its checks.
func page(b *testing.B, services int) (*world, [][][]*model.PostureCheck) {
	w := newWorld(b)
	var checks []*model.PostureCheck
	for i := range 10 {
		checks = append(checks,
			w.check(osCheck(model.OperatingSystem{Type: "Linux", Versions: []string{fmt.Sprint(">=", i%3, ".0.0")}})),
			w.check(model.PostureCheck{TypeID: "DOMAIN", Domains: []string{"a.example", "b.example"}}),
			w.check(model.PostureCheck{TypeID: "MAC", MACAddresses: []string{"00:00:00:00:00:01", "00:00:00:00:00:02"}}),
			w.check(model.PostureCheck{TypeID: "PROCESS_MULTI", Semantic: model.AllOf, Processes: []model.ProcessMulti{{OSType: "Linux", Path: "/a", Hashes: []string{"aa"}}}}),
			w.check(model.PostureCheck{TypeID: "MFA", TimeoutSeconds: 600, PromptOnWake: true}),
		)
	}
	w.pass("s", true)
	w.submit("s", osReport("Linux", "5.4.0-42-generic"), `{"id":"x","typeId":"DOMAIN","domain":"B.example"}`,
		`{"id":"x","typeId":"MAC","macAddresses":["000000000002"]}`, fmt.Sprintf(`{"id":%q,"typeId":"PROCESS","path":"/a","isRunning":true,"hash":"AA"}`, checks[3].ID))
	all := make([][][]*model.PostureCheck, services)
	for i := range all {
		for j := range 3 {
			at := (i + j) % 10 * 5
			all[i] = append(all[i], checks[at:at+5])
		}
	}
	return w, all
}

// BenchmarkServices judges 1,000 services with 3 policies of 5 checks each.
func BenchmarkServices(b *testing.B) {
	w, services := page(b, 1000)
	session := w.session("s")
	b.Run("judged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e := w.device(session)
			for _, policies := range services {
				for _, checks := range policies {
					if !e.Passing(checks) {
						b.Fatal("a policy fails")
					}
				}
			}
		}
	})
	b.Run("rendered", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			e := w.device(session)
			dst = dst[:0]
			for _, policies := range services {
				for _, checks := range policies {
					dst = e.AppendQueries(dst, "policy", model.Dial, checks)
				}
			}
		}
		b.SetBytes(int64(len(dst)))
	})
	b.Run("one by one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, policies := range services {
				if !w.device(session).Passing(policies[0]) {
					b.Fatal("a policy fails")
				}
			}
		}
	})
}

func BenchmarkSubmit(b *testing.B) {
	w, _ := page(b, 1)
	snap, now := w.st.Snapshot(), start
	report := []posture.Response{
		{TypeID: "OS", Type: "Linux", Version: "5.4.0-42-generic"}, {TypeID: "DOMAIN", Domain: "a.example"},
		{TypeID: "MAC", MACAddresses: []string{"00:00:00:00:00:01"}}, {ID: "c4", TypeID: "PROCESS", Path: "/a", IsRunning: true, Hash: "aa"},
		{TypeID: "ENDPOINT_STATE", Woken: true},
	}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		w.reports.submit(snap, "s", report, now)
	}
}
