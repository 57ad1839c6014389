package posture_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// ruleTest is a check and what a device reports. In reports, ID stands for the
// check's id.
type ruleTest struct {
	name    string
	check   model.PostureCheck
	reports []string
	want    bool
}

func run(t *testing.T, tests []ruleTest) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.check(test.check)
			for _, r := range test.reports {
				w.submit("s", strings.ReplaceAll(r, "ID", c.ID))
			}
			want := posture.Result{Passing: test.want, Timeout: -1, TimeoutRemaining: -1}
			if got := w.device(posture.Session{ID: "s"}).Check(c); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func osCheck(entries ...model.OperatingSystem) model.PostureCheck {
	return model.PostureCheck{TypeID: "OS", OperatingSystems: entries}
}

func osReport(typ, version string) string {
	return fmt.Sprintf(`{"id":"x","typeId":"OS","type":%s,"version":%s}`, text(typ), text(version))
}

func TestOS(t *testing.T) {
	type entry = model.OperatingSystem
	any := entry{Type: "Linux"}
	tens := entry{Type: "Windows", Versions: []string{">=10.0.0 <11.0.0"}}
	run(t, []ruleTest{
		{"never reported", osCheck(any), nil, false},
		{"another report", osCheck(any), []string{`{"id":"x","typeId":"DOMAIN","domain":"Linux"}`}, false},
		{"any version", osCheck(any), []string{osReport("Linux", "5.4.0")}, true},
		{"any version, even none", osCheck(any), []string{osReport("Linux", "")}, true},
		{"type in another case", osCheck(any), []string{osReport("LINUX", "x")}, true},
		{"another type", osCheck(any), []string{osReport("Linux2", "5.4.0")}, false},
		{"type is not a prefix", osCheck(entry{Type: "WindowsServer"}), []string{osReport("Windows", "1")}, false},
		{"no type", osCheck(any), []string{osReport("", "5.4.0")}, false},
		{"one of several", osCheck(tens, any), []string{osReport("Linux", "1")}, true},
		{"in range", osCheck(tens), []string{osReport("Windows", "10.5.0")}, true},
		{"below range", osCheck(tens), []string{osReport("Windows", "9.9.9")}, false},
		{"above range", osCheck(tens), []string{osReport("Windows", "11.0.0")}, false},
		{"one of two ranges", osCheck(entry{Type: "Linux", Versions: []string{"<2.0.0", ">5.0.0"}}), []string{osReport("Linux", "6.1.0")}, true},
		{"between two ranges", osCheck(entry{Type: "Linux", Versions: []string{"<2.0.0", ">5.0.0"}}), []string{osReport("Linux", "3.0.0")}, false},
		{"last entry wins, narrow", osCheck(any, entry{Type: "Linux", Versions: []string{">=6.0.0"}}), []string{osReport("Linux", "5.0.0")}, false},
		{"last entry wins, wide", osCheck(entry{Type: "Linux", Versions: []string{">=6.0.0"}}, any), []string{osReport("Linux", "5.0.0")}, true},
		{"last report wins", osCheck(any), []string{osReport("Linux", "1"), osReport("Windows", "1")}, false},
		{"id does not matter", osCheck(any), []string{`{"id":"","typeId":"OS","type":"linux","version":"1"}`}, true},
	})
}

func TestVersions(t *testing.T) {
	tests := []struct {
		version, within string
		want            bool
	}{
		{"10.0.19041", ">=10.0.19041", true},
		{"10.0.19041.388", "=10.0.19041", true},
		{"10.0.19040", ">=10.0.19041", false},
		{"5.4.0-42-generic", ">=5.4.0", true},
		{"5.4.0-42-generic", "=5.4.0", true},
		{"5.4.0-42-generic", ">5.4.0", false},
		{"5.4.0-42-generic", "<5.4.0", false},
		{"5.15.0+build.7", "~5.15", true},
		{"6.1.0_rc1", "^6.0.0", true},
		{"11", "11.x", true},
		{"10.15", ">=10.15.0", true},
		{"10.04", "=10.4.0", true},
		{"v1.2.3", "1.2.3", true},
		{" 1.2.3 ", "1.2.3", true},
		{"1.2.", "1.2.0", true},
		{"1..3", "1.0.0", true},
		{"14.5 (23F79)", "14.5.0", true},
		{"Vista", ">=0.0.0", false},
		{"", ">=0.0.0", false},
		{".1", ">=0.0.0", false},
		{"-1", ">=0.0.0", false},
		{"18446744073709551615", ">=1.0.0", true},
		{"18446744073709551616", ">=1.0.0", false},
		{"1.18446744073709551616", ">=1.0.0", false},
	}
	for _, test := range tests {
		t.Run(test.version+" in "+test.within, func(t *testing.T) {
			w := newWorld(t)
			c := w.check(osCheck(model.OperatingSystem{Type: "Linux", Versions: []string{test.within}}))
			w.submit("s", osReport("Linux", test.version))
			if got := w.device(posture.Session{}).Check(c).Passing; got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// TestManyRanges checks that ranges keep their meaning when there are more
// than are remembered, and that what is no range holds nothing.
func TestManyRanges(t *testing.T) {
	w := newWorld(t)
	w.submit("s", osReport("Linux", "1000.0.0"))
	before := heap()
	for i := range 3_000 {
		within := fmt.Sprintf(">=%d.0.0%s", i%1500, strings.Repeat(" !=1.2.3", 1+i/1500))
		c := osCheck(model.OperatingSystem{Type: "Linux", Versions: []string{"no range", within}})
		if got := w.device(posture.Session{}).Check(&c).Passing; got != (i%1500 <= 1000) {
			t.Fatalf("1000.0.0 in %s is %t", within, got)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 5<<18 {
		t.Errorf("%d bytes are remembered", grown)
	}
	runtime.KeepAlive(w)
}

func TestDomain(t *testing.T) {
	check := model.PostureCheck{TypeID: "DOMAIN", Domains: []string{"corp.example", "Lab.Example"}}
	report := func(s string) []string { return []string{`{"id":"ID","typeId":"DOMAIN","domain":` + text(s) + `}`} }
	run(t, []ruleTest{
		{"never reported", check, nil, false},
		{"listed", check, report("corp.example"), true},
		{"in another case", check, report("LAB.eXAMPLE"), true},
		{"not listed", check, report("example"), false},
		{"longer", check, report("corp.example."), false},
		{"none", check, report(""), false},
		{"last report wins", check, append(report("corp.example"), report("x")...), false},
		{"other letters", model.PostureCheck{TypeID: "DOMAIN", Domains: []string{"ÄRZTE"}}, report("ärzte"), true},
	})
}

func TestMAC(t *testing.T) {
	check := func(list ...string) model.PostureCheck { return model.PostureCheck{TypeID: "MAC", MACAddresses: list} }
	report := func(list ...string) []string {
		for i := range list {
			list[i] = text(list[i])
		}
		return []string{`{"id":"ID","typeId":"MAC","macAddresses":[` + strings.Join(list, ",") + `]}`}
	}
	run(t, []ruleTest{
		{"never reported", check("0123456789ab"), nil, false},
		{"same", check("0123456789ab"), report("0123456789ab"), true},
		{"separators and case", check("01:23:45:67:89:AB"), report("01-23-45-67-89-ab"), true},
		{"dots", check("0123.4567.89ab"), report("01 23 45 67 89 AB"), true},
		{"one of several", check("000000000001", "0123456789ab"), report("000000000002", "0123456789AB", "x"), true},
		{"none of several", check("000000000001", "0123456789ab"), report("000000000002", "0123456789AC"), false},
		{"prefix", check("0123456789ab"), report("0123456789"), false},
		{"empty list", check("0123456789ab"), report(), false},
		{"no digits", check("01"), report("--", ""), false},
		{"long in the check", check(strings.Repeat("0:", 40)), report(strings.Repeat("0", 40)), true},
		{"last report wins", check("0123456789ab"), append(report("0123456789ab"), report("1")...), false},
	})
}

func processReport(path string, running bool, hash string, signers ...string) string {
	for i := range signers {
		signers[i] = text(signers[i])
	}
	return fmt.Sprintf(`{"id":"ID","typeId":"PROCESS","path":%s,"isRunning":%t,"hash":%s,"signerFingerprints":[%s]}`,
		text(path), running, text(hash), strings.Join(signers, ","))
}

func TestProcess(t *testing.T) {
	check := func(signer string, hashes ...string) model.PostureCheck {
		return model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/bin/a", Hashes: hashes, SignerFingerprint: signer}}
	}
	run(t, []ruleTest{
		{"never reported", check(""), nil, false},
		{"runs", check(""), []string{processReport("/bin/a", true, "")}, true},
		{"does not run", check(""), []string{processReport("/bin/a", false, "")}, false},
		{"nothing said", check(""), []string{`{"id":"ID","typeId":"PROCESS"}`}, false},
		{"path does not matter", check(""), []string{processReport("", true, "")}, true},
		{"report for another check", check(""), []string{strings.Replace(processReport("/bin/a", true, ""), "ID", "other", 1)}, false},
		{"hash listed", check("", "AA:bb", "cc"), []string{processReport("", true, "aabb")}, true},
		{"hash with separators", check("", "aabb"), []string{processReport("", true, " AA-BB ")}, true},
		{"hash not listed", check("", "aabb"), []string{processReport("", true, "aabbcc")}, false},
		{"hash too short", check("", "aabb"), []string{processReport("", true, "aab")}, false},
		{"no hash", check("", "aabb"), []string{processReport("", true, "")}, false},
		{"empty hashes are not the same", check("", ""), []string{processReport("", true, "")}, false},
		{"separators are no hash", check("", "::"), []string{processReport("", true, "-")}, false},
		{"letters beyond f count", check("", "xaabb"), []string{processReport("", true, "aabb")}, false},
		{"hash matters only if configured", check(""), []string{processReport("", true, "ff")}, true},
		{"signer listed", check("AABB"), []string{processReport("", true, "", "00", "aa:bb")}, true},
		{"signer not listed", check("AABB"), []string{processReport("", true, "", "00")}, false},
		{"no signers", check("AABB"), []string{processReport("", true, "")}, false},
		{"hash without signer", check("aa", "bb"), []string{processReport("", true, "bb")}, false},
		{"signer without hash", check("aa", "bb"), []string{processReport("", true, "", "aa")}, false},
		{"hash and signer", check("aa", "bb"), []string{processReport("", true, "bb", "aa")}, true},
		{"signed but not running", check("aa"), []string{processReport("", false, "", "aa")}, false},
		{"last report wins", check(""), []string{processReport("", true, ""), processReport("", false, "")}, false},
	})
}

func TestProcessMulti(t *testing.T) {
	a := model.ProcessMulti{OSType: "Linux", Path: "/a"}
	b := model.ProcessMulti{OSType: "Linux", Path: "/b", Hashes: []string{"aa", "bb"}, SignerFingerprints: []string{"11", "22"}}
	check := func(semantic string, list ...model.ProcessMulti) model.PostureCheck {
		return model.PostureCheck{TypeID: "PROCESS_MULTI", Semantic: semantic, Processes: list}
	}
	runsA, runsB := processReport("/a", true, ""), processReport("/b", true, "BB", "3", "22")
	run(t, []ruleTest{
		{"never reported, all", check(model.AllOf, a, b), nil, false},
		{"never reported, any", check(model.AnyOf, a, b), nil, false},
		{"all of both", check(model.AllOf, a, b), []string{runsA, runsB}, true},
		{"all of one", check(model.AllOf, a, b), []string{runsA}, false},
		{"any of one", check(model.AnyOf, a, b), []string{runsB}, true},
		{"any of stopped ones", check(model.AnyOf, a, b), []string{processReport("/a", false, ""), processReport("/b", false, "aa", "11")}, false},
		{"wrong hash", check(model.AllOf, b), []string{processReport("/b", true, "cc", "22")}, false},
		{"wrong signer", check(model.AllOf, b), []string{processReport("/b", true, "aa", "33")}, false},
		{"another path", check(model.AnyOf, a), []string{processReport("/A", true, "")}, false},
		{"no path", check(model.AnyOf, a), []string{processReport("", true, "")}, false},
		{"last report of a path wins", check(model.AllOf, a, b), []string{runsA, runsB, processReport("/a", false, "")}, false},
		{"one path in two entries", check(model.AllOf, a, model.ProcessMulti{OSType: "Linux", Path: "/a", Hashes: []string{"aa"}}), []string{runsA}, false},
	})
}

// TestSharedPath reports a program once for checks that all name it, as clients
// do: those of OpenZiti's C SDK mention whichever check comes first.
func TestSharedPath(t *testing.T) {
	w := newWorld(t)
	multi := w.check(model.PostureCheck{TypeID: "PROCESS_MULTI", Semantic: model.AllOf, Processes: []model.ProcessMulti{{OSType: "Linux", Path: "/a"}}})
	again := w.check(model.PostureCheck{TypeID: "PROCESS_MULTI", Semantic: model.AllOf, Processes: multi.Processes})
	single := w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}})
	twin := w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}})
	all := []*model.PostureCheck{multi, again, single, twin}
	passing := func() (ids []string) {
		e := w.device(posture.Session{})
		for _, c := range all {
			if e.Check(c).Passing {
				ids = append(ids, c.ID)
			}
		}
		return ids
	}
	w.submit("s", strings.Replace(processReport("/a", true, ""), "ID", again.ID, 1))
	if got := passing(); len(got) != len(all) {
		t.Errorf("reported for one of several programs: %v", got)
	}
	w.submit("s", strings.Replace(processReport("/a", false, ""), "ID", single.ID, 1))
	if got := passing(); len(got) != 0 {
		t.Errorf("reported as stopped for the single program: %v", got)
	}
	w.submit("s", strings.Replace(processReport("/a", true, ""), "ID", twin.ID, 1))
	if got := passing(); len(got) != len(all) {
		t.Errorf("reported for the other single program: %v", got)
	}
	all = append(all, w.check(model.PostureCheck{TypeID: "PROCESS", Process: &model.Process{OSType: "Linux", Path: "/a"}}))
	if got := passing(); len(got) != len(all) {
		t.Errorf("with a check that came later: %v", got)
	}
	w.submit("s", strings.Replace(processReport("/a", false, ""), "ID", single.ID, 1))
	if got := passing(); len(got) != 0 {
		t.Errorf("reported as stopped for the first single program: %v", got)
	}
}

// TestIncomplete judges checks that no body can create.
func TestIncomplete(t *testing.T) {
	w := newWorld(t)
	w.submit("s", osReport("", ""), `{"id":"","typeId":"DOMAIN","domain":""}`, `{"id":"","typeId":"MAC","macAddresses":[""]}`)
	for _, c := range []model.PostureCheck{
		{}, {TypeID: "FUTURE"}, {TypeID: "ENDPOINT_STATE"}, {TypeID: "OS"}, {TypeID: "DOMAIN"}, {TypeID: "MAC"}, {TypeID: "PROCESS"},
		{TypeID: "PROCESS_MULTI"}, {TypeID: "PROCESS_MULTI", Semantic: model.AllOf}, {TypeID: "PROCESS_MULTI", Semantic: model.AnyOf},
		{TypeID: "MFA"},
	} {
		e := w.device(posture.Session{})
		if e.Check(&c).Passing {
			t.Errorf("%+v passes", c)
		}
		failure := e.Failure(&model.ServicePolicy{}, []*model.PostureCheck{&c})
		if len(failure.Checks) != 1 {
			t.Errorf("%+v has no failure", c)
		}
	}
}

func TestPolicy(t *testing.T) {
	w := newWorld(t)
	passes := w.check(model.PostureCheck{TypeID: "DOMAIN", Domains: []string{"a"}})
	fails := w.check(model.PostureCheck{TypeID: "DOMAIN", Domains: []string{"b"}})
	w.submit("s", `{"id":"x","typeId":"DOMAIN","domain":"a"}`)
	e := w.device(posture.Session{})
	for _, test := range []struct {
		checks []*model.PostureCheck
		want   bool
	}{
		{nil, true}, {[]*model.PostureCheck{passes}, true}, {[]*model.PostureCheck{passes, passes}, true},
		{[]*model.PostureCheck{passes, fails}, false}, {[]*model.PostureCheck{fails, passes}, false}, {[]*model.PostureCheck{fails}, false},
	} {
		if got := e.Passing(test.checks); got != test.want {
			t.Errorf("%d checks pass: %t", len(test.checks), got)
		}
	}
}
