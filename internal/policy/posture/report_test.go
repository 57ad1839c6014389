package posture_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
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

// TestSnapshot checks that what is stored stays what it was.
func TestSnapshot(t *testing.T) {
	w := newWorld(t)
	w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}, Meta: metaOf("one")})
	bodies := func(v string) []string {
		return []string{
			osReport(v, v), `{"id":"x","typeId":"DOMAIN","domain":"` + v + `"}`, `{"id":"x","typeId":"MAC","macAddresses":["` + v + `"]}`,
			strings.Replace(processReport("/a", true, v, v), "ID", "one", 1), strings.Replace(processReport("/b", true, v, v), "ID", "none", 1), endpointBodies["both"],
		}
	}
	w.submit("s", bodies("1")...)
	text := func(d *model.Device) string {
		data, err := model.Devices.Def.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before := w.reports["s"]
	want := text(before)
	w.now = w.now.Add(time.Hour)
	w.submit("s", bodies("2")...)
	w.submit("s", bodies("2")...)
	if got := text(before); got != want {
		t.Errorf("was %s, is %s", want, got)
	}
	if w.reports["s"] == before {
		t.Error("nothing was reported")
	}
}

// TestSameAgain has a device report the same again and again, for whichever
// check: it is to be stored once in a while.
func TestSameAgain(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"one", "two"} {
		w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}, Meta: metaOf(id)})
	}
	var bodies []string
	for _, id := range []string{"one", "two", "none"} {
		for _, body := range []string{
			osReport("Linux", "1"), `{"id":"ID","typeId":"DOMAIN","domain":"d"}`, `{"id":"ID","typeId":"MAC","macAddresses":["02","01"]}`, processReport("/a", true, "h", "s"),
		} {
			bodies = append(bodies, strings.Replace(body, "ID", id, 1))
		}
	}
	stored := 0
	for at := 0; at < 60; at++ { // minutes
		w.now = start.Add(time.Duration(at) * time.Minute)
		before := w.reports["s"]
		if outcome := w.submit("s", bodies...); outcome.Changed != (at == 0) {
			t.Fatalf("after %d minutes: %+v", at, outcome)
		}
		if w.reports["s"] == before {
			continue
		}
		if stored++; at > 0 && posture.Differ(before, w.reports["s"]) {
			t.Errorf("after %d minutes checks may come out differently", at)
		}
		// As it comes from the store, it is the same too.
		data, err := model.Devices.Def.Encode(w.reports["s"])
		if err != nil {
			t.Fatal(err)
		}
		rec, err := model.Devices.Def.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		w.reports["s"] = rec.(*model.Device)
	}
	if stored != 6 {
		t.Errorf("in an hour it was stored %d times, want once in ten minutes", stored)
	}
	before := w.reports["s"]
	w.submit("s", processReport("/a", false, "h", "s"), strings.Replace(processReport("/a", false, "h", "s"), "ID", "one", 1))
	if !posture.Differ(before, w.reports["s"]) || posture.Differ(nil, nil) || !posture.Differ(nil, before) {
		t.Error("what differs does not")
	}
}

// TestTooMuch has more programs than are kept of one device: checks on the
// rest fail, and none passes by what was so before.
func TestTooMuch(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 2000)
	var checks []*model.PostureCheck
	for i := range 100 {
		checks = append(checks, w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: fmt.Sprint("/", i, long)}}))
	}
	report := func(c *model.PostureCheck, running bool) {
		w.submit("s", strings.Replace(processReport(c.Process.Path, running, "h"), "ID", c.ID, 1))
	}
	for range 2 {
		for _, c := range checks {
			report(c, true)
		}
	}
	data, err := model.Devices.Def.Encode(w.reports["s"])
	if err != nil || len(data) > 200<<10 {
		t.Errorf("%d bytes are kept: %v", len(data), err)
	}
	passing := 0
	for _, c := range checks {
		if w.device(posture.Session{}).Check(c).Passing {
			passing++
		}
	}
	if passing < 30 || passing == len(checks) {
		t.Errorf("%d of %d checks pass", passing, len(checks))
	}
	for _, c := range checks {
		report(c, false)
		if w.device(posture.Session{}).Check(c).Passing {
			t.Errorf("check %s passes by what was so before", c.ID)
		}
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
		for _, p := range w.dataOf().Processes {
			list = append(list, p.CheckID+p.BinaryHash)
		}
		return strings.Join(list, " ")
	}
	report("b", "/x", "1")
	report("a", "/y", "2")
	first := w.reports["s"]
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
	if n := len(first.Unasked); n != 2 {
		t.Errorf("what was stored now has %d programs", n)
	}
}

// TestTooLong leaves out what Validate refuses, whoever forgot to ask it.
func TestTooLong(t *testing.T) {
	w := newWorld(t)
	long := read(t, fmt.Sprintf(`{"id":"a","typeId":"MAC","macAddresses":["01",%q]}`, strings.Repeat("0", 1000)))
	if got := w.reports.submit(w.st.Snapshot(), "s", []posture.Response{long}, w.now); got != (posture.Outcome{}) {
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
		w.reports.submit(w.st.Snapshot(), "s", []posture.Response{
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

// TestEventOnce has a device say many times when it was woken: it happened once,
// and never later than now.
func TestEventOnce(t *testing.T) {
	w := newWorld(t)
	woken := posture.Response{TypeID: "ENDPOINT_STATE", Woken: true, At: start.Add(-time.Hour)}
	submit := func(after time.Duration, r posture.Response) (posture.Outcome, time.Time) {
		t.Helper()
		outcome := w.reports.submit(w.st.Snapshot(), "s", []posture.Response{r}, start.Add(after))
		return outcome, w.reports["s"].Woken.Last
	}
	if outcome, last := submit(0, woken); !outcome.Woken || !last.Equal(woken.At) {
		t.Errorf("at first %+v at %s", outcome, last)
	}
	if outcome, last := submit(time.Minute, woken); outcome.Woken || outcome.Changed || !last.Equal(woken.At) {
		t.Errorf("once more %+v at %s", outcome, last)
	}
	woken.At = start.Add(time.Hour)
	if outcome, last := submit(2*time.Minute, woken); !outcome.Woken || !last.Equal(start.Add(2*time.Minute)) {
		t.Errorf("by a clock that is ahead %+v at %s", outcome, last)
	}
	for _, seconds := range []int64{math.MinInt64, -1 << 50, 1 << 50, math.MaxInt64} {
		woken.At = time.Unix(seconds, math.MaxInt32)
		if _, last := submit(3*time.Minute, woken); last.Before(start) || last.After(start.Add(3*time.Minute)) {
			t.Errorf("woken %d seconds after 1970 is %s", seconds, last)
		}
	}
}
