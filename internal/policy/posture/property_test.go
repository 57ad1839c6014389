package posture_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// Few values, in forms that are to be the same and forms that are not, so that
// they meet.
var (
	osTypes   = rapid.SampledFrom([]string{"Windows", "Linux", "macOS"})
	someTypes = rapid.SampledFrom([]string{"Windows", "WINDOWS", "linux", "macos", "BeOS", ""})
	versions  = rapid.Custom(func(t *rapid.T) string {
		digit := rapid.IntRange(1, 3)
		full := fmt.Sprintf("%d.%d.%d", digit.Draw(t, "major"), digit.Draw(t, "minor"), digit.Draw(t, "patch"))
		return rapid.SampledFrom([]string{full, full, "v" + full, full + "-42-generic", full + ".9", full[:3], full[:1], "Vista", ""}).Draw(t, "version")
	})
	ranges = rapid.Custom(func(t *rapid.T) string {
		digit := rapid.IntRange(1, 3)
		op := rapid.SampledFrom([]string{"<", ">=", "="}).Draw(t, "operator")
		return fmt.Sprintf("%s %d.%d.%d", op, digit.Draw(t, "major"), digit.Draw(t, "minor"), digit.Draw(t, "patch"))
	})
	domains = rapid.SampledFrom([]string{"a.example", "A.Example", "b.example", ""})
	hexes   = rapid.SampledFrom([]string{"aa:bb", "AABB", "aa-bb", "aabb", "aabbcc", "01", "0-1", "", ":"})
	// macs are what checks may list: with digits.
	macs   = rapid.SampledFrom([]string{"aa:bb", "AABB", "aa-bb", "aabbcc", "01", "0-1"})
	paths  = rapid.SampledFrom([]string{"/a", "/b", "/c", ""})
	ids    = rapid.SampledFrom([]string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "other", ""})
	people = rapid.SampledFrom([]string{"s1", "s2"})
)

func few(g *rapid.Generator[string], t *rapid.T, least int, label string) []string {
	return rapid.SliceOfN(g, least, 3).Draw(t, label)
}

// drawCheck draws a check of any type.
func drawCheck(t *rapid.T, id string) model.PostureCheck {
	c := model.PostureCheck{Meta: kind.Meta{ID: id}, TypeID: rapid.SampledFrom([]string{"OS", "DOMAIN", "MAC", "PROCESS", "PROCESS_MULTI", "MFA", "MFA"}).Draw(t, "type")}
	c.Mode = rapid.SampledFrom([]string{"", "enforce", "report"}).Draw(t, "mode")
	switch c.TypeID {
	case "OS":
		for range rapid.IntRange(1, 3).Draw(t, "entries") {
			c.OperatingSystems = append(c.OperatingSystems, model.OperatingSystem{Type: osTypes.Draw(t, "os"), Versions: few(ranges, t, 0, "ranges")})
		}
	case "DOMAIN":
		c.Domains = few(domains, t, 1, "domains")
	case "MAC":
		c.MACAddresses = few(macs, t, 1, "addresses")
	case "PROCESS":
		c.Process = &model.Process{OSType: "Linux", Path: paths.Draw(t, "path"), Hashes: few(hexes, t, 0, "hashes"), SignerFingerprint: hexes.Draw(t, "signer")}
	case "PROCESS_MULTI":
		c.Semantic = rapid.SampledFrom([]string{model.AllOf, model.AnyOf}).Draw(t, "semantic")
		for range rapid.IntRange(1, 3).Draw(t, "programs") {
			c.Processes = append(c.Processes, model.ProcessMulti{
				OSType: "Linux", Path: paths.Draw(t, "path"), Hashes: few(hexes, t, 0, "hashes"), SignerFingerprints: few(hexes, t, 0, "signers"),
			})
		}
	case "MFA":
		c.TimeoutSeconds = rapid.SampledFrom([]int{-1, 1, 200, 600}).Draw(t, "timeout")
		c.PromptOnWake, c.PromptOnUnlock = rapid.Bool().Draw(t, "wake"), rapid.Bool().Draw(t, "unlock")
		c.IgnoreLegacyEndpoints = rapid.Bool().Draw(t, "legacy")
	}
	return c
}

// drawResponse draws what a device may report.
func drawResponse(t *rapid.T) posture.Response {
	r := posture.Response{ID: ids.Draw(t, "id"), TypeID: rapid.SampledFrom([]string{"OS", "DOMAIN", "MAC", "PROCESS", "PROCESS", "ENDPOINT_STATE"}).Draw(t, "type")}
	switch r.TypeID {
	case "OS":
		r.Type, r.Version = someTypes.Draw(t, "os"), versions.Draw(t, "version")
	case "DOMAIN":
		r.Domain = domains.Draw(t, "domain")
	case "MAC":
		r.MACAddresses = few(hexes, t, 0, "addresses")
	case "PROCESS":
		r.Path, r.IsRunning = paths.Draw(t, "path"), rapid.IntRange(0, 3).Draw(t, "running") > 0
		r.Hash, r.SignerFingerprints = hexes.Draw(t, "hash"), few(hexes, t, 0, "signers")
	case "ENDPOINT_STATE":
		r.Woken, r.Unlocked = rapid.Bool().Draw(t, "woken"), rapid.Bool().Draw(t, "unlocked")
	}
	return r
}

// story is a world and the naive view of it.
type story struct {
	*world
	n naive
}

// TestStories lets devices report and sessions pass their second factor at
// random, and compares every verdict with the naive one.
func TestStories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &story{world: newWorld(t)}
		for i := range rapid.IntRange(1, 8).Draw(t, "checks") {
			s.n.checks = append(s.n.checks, s.check(drawCheck(t, fmt.Sprint("k", i))))
		}
		s.pass("s1", false)
		s.pass("s2", false)
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			s.now = s.now.Add(time.Duration(rapid.IntRange(0, 350_000).Draw(t, "milliseconds")) * time.Millisecond)
			s.step(t)
			s.compare(t)
		}
	})
}

func (s *story) step(t *rapid.T) {
	session := people.Draw(t, "session")
	if rapid.IntRange(0, 3).Draw(t, "pass") == 0 {
		s.pass(session, true)
		s.n.log = append(s.n.log, happening{at: s.now, session: session, pass: true})
		return
	}
	before := s.verdicts()
	reported := rapid.SliceOfN(rapid.Custom(drawResponse), 1, 3).Draw(t, "responses")
	outcome := s.reports.submit(s.st.Snapshot(), session, reported, s.now)
	var woken, unlocked bool
	for _, r := range reported {
		s.n.log = append(s.n.log, happening{at: s.now, session: session, response: r})
		woken, unlocked = woken || r.Woken, unlocked || r.Unlocked
	}
	if outcome.Woken != woken || outcome.Unlocked != unlocked || (woken || unlocked) && !outcome.Changed {
		t.Fatalf("%+v came of %+v", outcome, reported)
	}
	if after := s.verdicts(); !outcome.Changed && fmt.Sprint(after) != fmt.Sprint(before) {
		t.Fatalf("nothing changed by %+v, but the verdicts did:\n%v\n%v", reported, before, after)
	}
}

// current returns the sessions as they are now.
func (s *story) current() []posture.Session {
	s1, s2 := s.session("s1"), s.session("s2")
	s1.SDK = model.SDKInfo{Type: "any-sdk-c", Version: "0.25.0"}
	return []posture.Session{s1, s2}
}

// verdicts is what comes of all checks in all sessions.
func (s *story) verdicts() (all []posture.Result) {
	for _, session := range s.current() {
		for _, c := range s.n.checks {
			all = append(all, s.device(session).Check(c))
		}
	}
	return all
}

func (s *story) compare(t *rapid.T) {
	for _, session := range s.current() {
		e, all, met := s.device(session), true, true
		for round := range 2 { // judged, and remembered
			for _, c := range s.n.checks {
				want := s.n.judge(c, session, s.now)
				if got := e.Check(c); got != want {
					t.Fatalf("round %d: %s says %+v of %+v, want %+v", round, session.ID, got, *c, want)
				}
				all, met = all && want.Passing, met && want.Passing && !want.WouldRefuse
			}
		}
		if got := e.Passing(s.n.checks); got != all {
			t.Fatalf("%s: all pass is %t", session.ID, got)
		}
		if got := e.Meeting(s.n.checks); got != met {
			t.Fatalf("%s: all would pass is %t", session.ID, got)
		}
		failed := posture.FailedRequest{SessionType: model.Dial, PolicyFailures: []posture.PolicyFailure{e.Failure(policy, s.n.checks)}}
		conforms(t, failedSchema, string(failed.Append(nil)))
		conforms(t, queriesSchema, string(e.AppendQueries(nil, "p", model.Bind, s.n.checks)))
		for i, c := range s.n.checks {
			judged := e.Check(c)
			if got := len(e.Failure(policy, s.n.checks[i:i+1]).Checks); (got == 0) != (judged.Passing && !judged.WouldRefuse) {
				t.Fatalf("%d failures of a check: %+v", got, judged)
			}
			if c.Mode == "report" && (posture.Outcome{Woken: true, Unlocked: true}).Prompts(c) {
				t.Fatalf("%+v asks for a code and only tells", *c)
			}
		}
	}
}
