package posture_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/model"
	"netkeep/internal/policy/posture"
)

func TestOutcome(t *testing.T) {
	w := newWorld(t)
	w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}, Meta: metaOf("one")})
	w.check(model.PostureCheck{TypeID: "PROCESS_MULTI", Semantic: model.AllOf, Processes: []model.ProcessMulti{{OSType: "Linux", Path: "/b"}}, Meta: metaOf("many")})
	w.check(model.PostureCheck{TypeID: "DOMAIN", Domains: []string{"d"}, Meta: metaOf("domain")})
	changed, same := posture.Outcome{Changed: true}, posture.Outcome{}
	process := func(id, path string, running bool, hash string, signers ...string) string {
		return strings.Replace(processReport(path, running, hash, signers...), "ID", id, 1)
	}
	for i, test := range []struct {
		body string
		want posture.Outcome
	}{
		{osReport("", ""), changed}, // a report says more than none
		{osReport("Linux", "1"), changed},
		{osReport("Linux", "1"), same},
		{`{"id":"other","typeId":"OS","type":"Linux","version":"1","build":"7"}`, same},
		{osReport("Linux", "2"), changed},
		{osReport("linux", "2"), changed},
		{`{"id":"x","typeId":"DOMAIN","domain":""}`, changed},
		{`{"id":"x","typeId":"DOMAIN","domain":""}`, same},
		{`{"id":"x","typeId":"DOMAIN","domain":"d"}`, changed},
		{`{"id":"x","typeId":"MAC","macAddresses":[]}`, changed},
		{`{"id":"x","typeId":"MAC","macAddresses":["", "zz"]}`, same},
		{`{"id":"x","typeId":"MAC","macAddresses":["02", "01"]}`, changed},
		{`{"id":"x","typeId":"MAC","macAddresses":["0:1", "02", "0-2"]}`, same},
		{process("one", "/a", false, ""), changed},
		{process("one", "/a", false, ""), same},
		{process("one", "/a", true, ""), changed},
		{process("one", "/a", true, "h"), changed},
		{process("one", "/a", true, "h", "s"), changed},
		{process("one", "/a", true, "h", "s"), same},
		{process("one", "/c", true, "h", "s"), same},
		{process("many", "/b", true, ""), changed},
		{process("many", "/b", true, ""), same},
		{process("many", "/a", true, ""), same}, // a path that it does not name
		{process("domain", "/a", true, ""), same},
		{process("unknown", "/a", true, ""), same},
		{endpointBodies["neither"], same},
		{endpointBodies["wake"], posture.Outcome{Changed: true, Woken: true}},
		{endpointBodies["wake"], posture.Outcome{Changed: true, Woken: true}},
		{endpointBodies["unlock"], posture.Outcome{Changed: true, Unlocked: true}},
		{endpointBodies["both"], posture.Outcome{Changed: true, Woken: true, Unlocked: true}},
	} {
		if got := w.submit("s", test.body); got != test.want {
			t.Errorf("%d. %s: got %+v, want %+v", i, test.body, got, test.want)
		}
	}
	if got := w.submit("s", osReport("Linux", "3"), osReport("Linux", "3"), endpointBodies["unlock"]); got != (posture.Outcome{Changed: true, Unlocked: true}) {
		t.Errorf("several at once: %+v", got)
	}
	if got := w.submit("s"); got != same {
		t.Errorf("none at all: %+v", got)
	}
}

// TestSnapshot checks that facts stay what they were.
func TestSnapshot(t *testing.T) {
	w := newWorld(t)
	w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}, Meta: metaOf("one")})
	bodies := func(v string) []string {
		return []string{
			osReport(v, v), `{"id":"x","typeId":"DOMAIN","domain":"` + v + `"}`, `{"id":"x","typeId":"MAC","macAddresses":["` + v + `"]}`,
			strings.Replace(processReport("/a", true, v, v), "ID", "one", 1), endpointBodies["both"],
		}
	}
	w.submit("s", bodies("1")...)
	first := w.reports.Of("i")
	w.reports.Keep(func(_, apiSessionID string) bool { return apiSessionID == "" })
	if got := posture.DataOf(first, []posture.Session{{ID: "s"}}, w.now); !strings.Contains(string(got.Sessions), "wokenAt") {
		t.Errorf("a sweep changed what was handed out: %s", got.Sessions)
	}
	w.submit("s", bodies("1")...)
	before, then := w.reports.Of("i"), w.now
	want := posture.DataOf(before, []posture.Session{{ID: "s"}}, then)
	w.now = w.now.Add(time.Hour)
	w.submit("s", bodies("2")...)
	w.submit("s", bodies("2")...)
	w.reports.Keep(func(string, string) bool { return false })
	if got := posture.DataOf(before, []posture.Session{{ID: "s"}}, then); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("was %v, is %v", want, got)
	}
}

// TestUnasked has a device report programs that no check looks at: the latest
// are shown, and never more than a few.
func TestUnasked(t *testing.T) {
	w := newWorld(t)
	report := func(id, path, hash string) {
		w.now = w.now.Add(time.Second)
		if got := w.submit("s", strings.Replace(processReport(path, true, hash), "ID", id, 1)); got != (posture.Outcome{}) {
			t.Errorf("a report that decides nothing gave %+v", got)
		}
	}
	hashes := func() string {
		var list []string
		for _, p := range posture.DataOf(w.reports.Of("i"), nil, w.now).Processes {
			list = append(list, p.CheckID+p.BinaryHash)
		}
		return strings.Join(list, " ")
	}
	report("b", "/x", "1")
	report("a", "/y", "2")
	first := w.reports.Of("i")
	report("a", "/x", "3")
	report("b", "/x", "4") // in the place of the first
	if got := hashes(); got != "a3 a2 b4" {
		t.Errorf("programs are %s", got)
	}
	for i := range 100 {
		report(fmt.Sprintf("c%03d", i), "/x", "")
	}
	if got := strings.Fields(hashes()); len(got) != 16 || got[0] != "c084" || got[15] != "c099" {
		t.Errorf("of a hundred programs these are left: %s", got)
	}
	if n := len(posture.DataOf(first, nil, w.now).Processes); n != 2 {
		t.Errorf("facts that were handed out now have %d programs", n)
	}
}

// TestTooLong leaves out what Validate refuses, whoever forgot to ask it.
func TestTooLong(t *testing.T) {
	w := newWorld(t)
	long := read(t, fmt.Sprintf(`{"id":"a","typeId":"MAC","macAddresses":["01",%q]}`, strings.Repeat("0", 1000)))
	if got := w.reports.Submit(w.st.Snapshot(), "i", "s", []posture.Response{long}, w.now); got != (posture.Outcome{}) {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(w.data(), "01\"") {
		t.Errorf("kept in %s", w.data())
	}
}

// TestEndless submits without end, and looks at what is kept.
func TestEndless(t *testing.T) {
	w := newWorld(t)
	w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}, Meta: metaOf("one")})
	w.check(model.PostureCheck{TypeID: "PROCESS_MULTI", Semantic: model.AllOf, Meta: metaOf("many"), Processes: []model.ProcessMulti{
		{OSType: "Linux", Path: "/b"}, {OSType: "Linux", Path: "/c"},
	}})
	filler := strings.Repeat("f", 200)
	before := heap()
	for i := range 20_000 {
		v := fmt.Sprint(i, filler)
		w.now = w.now.Add(time.Second)
		w.reports.Submit(w.st.Snapshot(), "i", "s", []posture.Response{
			{ID: v, TypeID: "OS", Type: v, Version: v, Build: v},
			{ID: v, TypeID: "DOMAIN", Domain: v},
			{ID: v, TypeID: "MAC", MACAddresses: []string{fmt.Sprintf("%012x", i), fmt.Sprintf("%012x", i+1)}},
			{ID: v, TypeID: "PROCESS", Path: v, IsRunning: true, Hash: v, SignerFingerprints: []string{v}},
			{ID: "one", TypeID: "PROCESS", Path: v, IsRunning: true, Hash: v, SignerFingerprints: []string{v}},
			{ID: "many", TypeID: "PROCESS", Path: v, IsRunning: true, Hash: v},
			{ID: "many", TypeID: "PROCESS", Path: []string{"/b", "/c", "/d"}[i%3], IsRunning: true, Hash: v},
			{ID: v, TypeID: "ENDPOINT_STATE", Woken: true, Unlocked: true},
			{ID: v, TypeID: "FUTURE", Domain: v},
		}, w.now)
	}
	grown := int64(heap()) - int64(before)
	if data := w.data(posture.Session{ID: "s"}); len(data) > 15_000 {
		t.Errorf("%d bytes of posture data: %s", len(data), data)
	} else if processes := parse(t, data).(map[string]any)["processes"].([]any); len(processes) != 3+16 { // that checks look at, and the latest others
		t.Errorf("%d programs: %v", len(processes), processes)
	}
	if grown > 256<<10 {
		t.Errorf("%d bytes are kept", grown)
	}
	runtime.KeepAlive(w)
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools hold survives one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestChecksComeAndGo checks that reports go with the last check that looks at
// them.
func TestChecksComeAndGo(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		id, path := fmt.Sprint("c", i), fmt.Sprint("/", i)
		w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: path}, Meta: metaOf(id)})
		w.submit("s", strings.Replace(processReport(path, true, "kept"), "ID", id, 1))
		w.write(func(tx *state.Tx) error { return model.PostureChecks.Delete(tx, id) })
	}
	if got := strings.Count(w.data(), "kept"); got != 1 {
		t.Errorf("%d reports are kept for checks that are gone", got)
	}

	single := w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/shared"}})
	multi := w.check(model.PostureCheck{TypeID: "PROCESS_MULTI", Semantic: model.AllOf, Processes: []model.ProcessMulti{{OSType: "Linux", Path: "/shared"}}})
	other := w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/other"}})
	w.submit("s", strings.Replace(processReport("/shared", true, ""), "ID", single.ID, 1))
	w.write(func(tx *state.Tx) error { return model.PostureChecks.Delete(tx, single.ID) })
	w.submit("s", strings.Replace(processReport("/other", true, ""), "ID", other.ID, 1))
	if !w.device(posture.Session{}).Check(multi).Passing {
		t.Error("a report is gone although a check names its program")
	}
}

func TestKeep(t *testing.T) {
	w := newWorld(t)
	snap := w.st.Snapshot()
	domain := []posture.Response{{TypeID: "DOMAIN", Domain: "d"}}
	wake := []posture.Response{{TypeID: "ENDPOINT_STATE", Woken: true}}
	for _, who := range []string{"stays", "goes"} {
		w.reports.Submit(snap, who, "s1", domain, w.now)
		w.reports.Submit(snap, who, "s1", wake, w.now)
		w.reports.Submit(snap, who, "s2", wake, w.now)
	}
	asked := map[string]bool{}
	w.reports.Keep(func(identityID, apiSessionID string) bool {
		asked[identityID+"."+apiSessionID] = true
		return identityID == "stays" && apiSessionID != "s2"
	})
	if want := (map[string]bool{"stays.": true, "stays.s1": true, "stays.s2": true, "goes.": true}); fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	known := func(id string) string {
		d := posture.DataOf(w.reports.Of(id), []posture.Session{{ID: "s1"}, {ID: "s2"}}, w.now)
		return fmt.Sprint(d.Domain.Domain, strings.Count(string(d.Sessions), "endpointState"))
	}
	if got := known("stays"); got != "d1" {
		t.Errorf("of who stays: %s", got)
	}
	if got := known("goes"); got != "0" {
		t.Errorf("of who goes: %s", got)
	}
	if w.reports.Of("nobody") == nil {
		t.Error("of nobody: nil")
	}
}

// TestConcurrent checks that no report is lost when many come at once.
func TestConcurrent(t *testing.T) {
	w := newWorld(t)
	const writers, rounds = 8, 50
	var checks []*model.PostureCheck
	for i := range writers {
		checks = append(checks, w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}, Meta: metaOf(fmt.Sprint("c", i))}))
	}
	ranged := w.check(osCheck(model.OperatingSystem{Type: "Linux", Versions: []string{">=1.0.0"}}))
	snap := w.st.Snapshot()
	var failures posture.Failures
	var group sync.WaitGroup
	for i := range writers {
		own := fmt.Sprint("own", i)
		group.Go(func() {
			for round := range rounds {
				session := fmt.Sprintf("s%d.%d", i, round)
				now := start.Add(time.Duration(round) * time.Second)
				report := []posture.Response{
					{ID: checks[i].ID, TypeID: "PROCESS", IsRunning: true}, {TypeID: "ENDPOINT_STATE", Woken: true},
					{TypeID: "OS", Type: "Linux", Version: fmt.Sprint(round + 1)},
				}
				w.reports.Submit(snap, "i", session, report, now)
				w.reports.Submit(snap, own, session, report, now)
				e := posture.NewEvaluator(w.reports.Of("i"), posture.Session{ID: session}, now)
				if !e.Passing([]*model.PostureCheck{checks[i], ranged}) {
					t.Errorf("round %d of %s: what was just reported is not known", round, session)
					return
				}
				failures.Add("i", posture.FailedRequest{PolicyFailures: []posture.PolicyFailure{e.Failure(&model.ServicePolicy{}, checks)}})
				if len(failures.Of("i")) == 0 {
					t.Error("a failure that was just added is not known")
				}
			}
		})
	}
	group.Go(func() {
		for range rounds {
			w.reports.Keep(func(identityID, _ string) bool { return identityID == "i" })
			failures.Keep(func(identityID string) bool { return identityID == "i" })
		}
	})
	group.Wait()
	e := w.device(posture.Session{})
	if !e.Passing(checks) {
		t.Error("a report was lost")
	}
	var sessions []posture.Session
	for i := range writers * rounds {
		sessions = append(sessions, posture.Session{ID: fmt.Sprintf("s%d.%d", i/rounds, i%rounds)})
	}
	if got := strings.Count(w.data(sessions...), "wokenAt"); got != len(sessions) {
		t.Errorf("%d of %d wakes are known", got, len(sessions))
	}
}
