package posture_test

import (
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// mfaTest lets things happen at some seconds after the start, and judges a
// check at others.
type mfaTest struct {
	name   string
	check  model.PostureCheck
	happen []moment
}

// moment is something that happens: "pass", "wake", "unlock" or "both" in the
// API session, "foreign" in another one, or a look at what came of it.
type moment struct {
	at   float64
	what string
	want posture.Result
}

func look(at float64, passing bool, timeout, remaining int) moment {
	return moment{at, "", posture.Result{Passing: passing, Timeout: timeout, TimeoutRemaining: remaining}}
}

func do(at float64, what string) moment { return moment{at: at, what: what} }

var endpointBodies = map[string]string{
	"wake":    `{"id":"anything","typeId":"ENDPOINT_STATE","woken":true}`,
	"unlock":  `{"id":"","typeId":"ENDPOINT_STATE","unlocked":true,"woken":false}`,
	"both":    `{"id":"x","typeId":"ENDPOINT_STATE","unlocked":true,"woken":true}`,
	"foreign": `{"id":"x","typeId":"ENDPOINT_STATE","unlocked":true,"woken":true}`,
	"neither": `{"id":"x","typeId":"ENDPOINT_STATE"}`,
}

func TestMFA(t *testing.T) {
	plain := model.PostureCheck{TypeID: "MFA"}
	timed := model.PostureCheck{TypeID: "MFA", TimeoutSeconds: 600}
	wake := model.PostureCheck{TypeID: "MFA", PromptOnWake: true}
	unlock := model.PostureCheck{TypeID: "MFA", PromptOnUnlock: true}
	all := model.PostureCheck{TypeID: "MFA", TimeoutSeconds: 600, PromptOnWake: true, PromptOnUnlock: true}
	tests := []mfaTest{
		{"never passed", plain, []moment{look(0, false, -1, 0), look(1e6, false, -1, 0)}},
		{"never passed with a timeout", timed, []moment{look(0, false, 600, 0)}},
		{"a wake is no pass", wake, []moment{do(0, "wake"), look(0, false, -1, 0)}},
		{"passed for good", plain, []moment{do(0, "pass"), look(0, true, -1, -1), do(1, "both"), look(1e6, true, -1, -1)}},
		{"times out", timed, []moment{
			do(0, "pass"), look(0, true, 600, 600), look(0.5, true, 600, 600), look(1, true, 600, 599),
			look(599, true, 600, 1), look(599.9, true, 600, 1), look(600, false, 600, 0), look(1e6, false, 600, 0),
		}},
		{"passes again", timed, []moment{do(0, "pass"), look(700, false, 600, 0), do(701, "pass"), look(702, true, 600, 599)}},
		{"passed by another clock", timed, []moment{do(100, "pass"), look(0, true, 600, 600)}},
		{"grace after a wake", wake, []moment{
			do(0, "pass"), do(100, "wake"), look(100, true, -1, 300), look(399.9, true, -1, 1), look(400, false, -1, 0), look(1e6, false, -1, 0),
			do(2e6, "pass"), look(2e6, true, -1, -1),
		}},
		{"grace after an unlock", unlock, []moment{do(0, "pass"), do(100, "unlock"), look(399, true, -1, 1), look(400, false, -1, 0)}},
		{"a wake does not matter", unlock, []moment{do(0, "pass"), do(100, "wake"), look(1000, true, -1, -1)}},
		{"an unlock does not matter", wake, []moment{do(0, "pass"), do(100, "unlock"), look(1000, true, -1, -1)}},
		{"neither does not matter", all, []moment{do(0, "pass"), do(100, "neither"), look(500, true, 600, 100)}},
		{"another session's", wake, []moment{do(0, "pass"), do(100, "foreign"), look(1000, true, -1, -1)}},
		{"at the same moment", wake, []moment{do(0, "wake"), do(0, "pass"), look(1000, true, -1, -1)}},
		{"passed within the grace", wake, []moment{do(0, "pass"), do(100, "wake"), do(200, "pass"), look(1000, true, -1, -1)}},
		{"lower of timeout and grace", all, []moment{
			do(0, "pass"), do(200, "wake"), look(200, true, 600, 300), do(250, "unlock"), look(300, true, 600, 200), look(500, false, 600, 0),
		}},
		{"timeout within the grace", all, []moment{do(0, "pass"), do(400, "both"), look(400, true, 600, 200), look(600, false, 600, 0)}},
		{"another wake gives no more time", wake, []moment{
			do(0, "pass"), do(100, "wake"), do(300, "wake"), look(300, true, -1, 100), look(400, false, -1, 0),
			do(500, "wake"), look(500, false, -1, 0),
		}},
		{"time starts again after a pass", wake, []moment{
			do(0, "pass"), do(100, "wake"), do(200, "pass"), do(300, "wake"), do(350, "wake"), look(350, true, -1, 250), look(600, false, -1, 0),
		}},
		{"woken before the first pass", wake, []moment{do(0, "wake"), do(10, "pass"), look(20, true, -1, -1), do(30, "wake"), look(31, true, -1, 299)}},
		{"a timeout of centuries", model.PostureCheck{TypeID: "MFA", TimeoutSeconds: 1 << 40}, []moment{do(0, "pass"), look(1, true, 1<<40, 1<<40-1)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.check(test.check)
			w.pass("s", false)
			for _, m := range test.happen {
				w.now = start.Add(time.Duration(m.at * float64(time.Second)))
				switch m.what {
				case "":
					if got := w.device(w.session("s")).Check(c); got != m.want {
						t.Errorf("at %v: got %+v, want %+v", m.at, got, m.want)
					}
				case "pass":
					w.pass("s", true)
				case "foreign":
					w.submit("s2", endpointBodies[m.what])
				default:
					w.submit("s", endpointBodies[m.what])
				}
			}
		})
	}
}

// TestStaleSession reports wakes with a snapshot that has not seen the pass
// between them, and then with one that has.
func TestStaleSession(t *testing.T) {
	w := newWorld(t)
	c := w.check(model.PostureCheck{TypeID: "MFA", PromptOnWake: true})
	w.pass("s", true)
	stale := w.st.Snapshot()
	at := func(s int) { w.now = start.Add(time.Duration(s) * time.Second) }
	wake := []posture.Response{read(t, endpointBodies["wake"])}
	at(10)
	w.reports.submit(stale, "s", wake, w.now)
	at(20)
	w.pass("s", true)
	at(30)
	w.reports.submit(stale, "s", wake, w.now)
	if got := w.device(w.session("s")).Check(c).TimeoutRemaining; got != 300 {
		t.Errorf("%d s remain after the second wake, want 300", got)
	}
	at(130)
	w.submit("s", endpointBodies["wake"])
	if got := w.device(w.session("s")).Check(c).TimeoutRemaining; got != 200 {
		t.Errorf("%d s remain after the third wake, want 200", got)
	}
}

func TestLegacyEndpoints(t *testing.T) {
	const cLibrary = "some-sdk-c"
	for _, test := range []struct {
		sdk       model.SDKInfo
		remaining int
	}{
		{model.SDKInfo{}, -1},
		{model.SDKInfo{Type: cLibrary}, -1},
		{model.SDKInfo{Type: cLibrary, Version: "unknown"}, -1},
		{model.SDKInfo{Type: cLibrary, Version: "0.24.9"}, -1},
		{model.SDKInfo{Type: cLibrary, Version: "0.25.0"}, 500},
		{model.SDKInfo{Type: cLibrary, Version: "v0.25.3-7-gabc"}, 500},
		{model.SDKInfo{Type: cLibrary, Version: "1.0.0"}, 500},
		{model.SDKInfo{Type: "some-sdk-golang", Version: "1.0.0"}, -1},
	} {
		w := newWorld(t)
		c := w.check(model.PostureCheck{TypeID: "MFA", TimeoutSeconds: 600, IgnoreLegacyEndpoints: true})
		strict := w.check(model.PostureCheck{TypeID: "MFA", TimeoutSeconds: 600})
		s := w.pass("s", true)
		s.SDK = test.sdk
		w.now = start.Add(100 * time.Second)
		if got, want := w.device(s).Check(c), (posture.Result{Passing: true, Timeout: 600, TimeoutRemaining: test.remaining}); got != want {
			t.Errorf("%+v: got %+v, want %+v", test.sdk, got, want)
		}
		if got := w.device(s).Check(strict).TimeoutRemaining; got != 500 {
			t.Errorf("%+v: a check that does not care says %d", test.sdk, got)
		}
		w.now = start.Add(600 * time.Second)
		if w.device(s).Check(c).Passing {
			t.Errorf("%+v: passes after the timeout", test.sdk)
		}
	}
}

func TestPrompts(t *testing.T) {
	wake := &model.PostureCheck{TypeID: "MFA", PromptOnWake: true}
	unlock := &model.PostureCheck{TypeID: "MFA", PromptOnUnlock: true}
	other := &model.PostureCheck{TypeID: "OS", PromptOnWake: true, PromptOnUnlock: true}
	for _, test := range []struct {
		outcome posture.Outcome
		want    [3]bool
	}{
		{posture.Outcome{Changed: true}, [3]bool{}},
		{posture.Outcome{Woken: true}, [3]bool{true, false, false}},
		{posture.Outcome{Unlocked: true}, [3]bool{false, true, false}},
		{posture.Outcome{Woken: true, Unlocked: true}, [3]bool{true, true, false}},
	} {
		got := [3]bool{test.outcome.Prompts(wake), test.outcome.Prompts(unlock), test.outcome.Prompts(other)}
		if got != test.want {
			t.Errorf("%+v: got %v, want %v", test.outcome, got, test.want)
		}
	}
}

// TestAnotherFactor replaces a second factor that a session has shown, within
// one moment.
func TestAnotherFactor(t *testing.T) {
	w := newWorld(t)
	check := w.check(model.PostureCheck{TypeID: "MFA"})
	if !w.device(w.pass("s", true)).Check(check).Passing {
		t.Fatal("the factor that was shown does not count")
	}
	w.write(func(tx *state.Tx) error {
		m, _ := model.MFAOf(tx, "i")
		if err := model.MFAs.Delete(tx, m.ID); err != nil {
			return err
		}
		return model.MFAs.Create(tx, &model.MFA{IdentityID: "i", IsVerified: true})
	})
	if w.device(w.session("s")).Check(check).Passing {
		t.Error("what was shown of one factor counts for the next")
	}
	if !w.device(w.pass("s", true)).Check(check).Passing {
		t.Error("the new factor does not count")
	}
}
