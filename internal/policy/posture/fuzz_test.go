package posture_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

// FuzzResponse reads any bytes as a response. Whatever is accepted can be
// judged and shown, and says nothing new the second time.
func FuzzResponse(f *testing.F) {
	for _, body := range []string{
		`{}`, `null`, osReport("Linux", "5.4.0-42-generic"), `{"id":"x","typeId":"DOMAIN","domain":"corp.example"}`,
		`{"id":"x","typeId":"MAC","macAddresses":["01:23:45:67:89:ab",""]}`, strings.Replace(processReport("/p", true, "aa", "bb"), "ID", "process", 1),
		strings.Replace(processReport("/a", true, "", "cc"), "ID", "multi", 1), endpointBodies["both"], `{"id":"x","typeId":"MFA"}`,
	} {
		f.Add([]byte(body))
	}
	w := newWorld(f)
	checks := w.kinds()
	snap := w.st.Snapshot()
	passed := start
	session := posture.Session{ID: "s", MFAPassedAt: &passed}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := accept(string(data))
		if err != nil {
			if _, ok := errors.AsType[*fault.Error](err); !ok {
				t.Fatalf("%s: %v", data, err)
			}
			return
		}
		reports := reports{}
		now := start.Add(time.Hour)
		reports.submit(snap, "s", []posture.Response{r}, now)
		if got := reports.submit(snap, "s", []posture.Response{r}, now); got.Changed != (got.Woken || got.Unlocked) {
			t.Errorf("%s changes something twice: %+v", data, got)
		}
		e := posture.NewEvaluator(posture.FactsOf(reports["s"]), session, now)
		conforms(t, queriesSchema, string(e.AppendQueries(nil, "p", model.Dial, checks)))
		failed := posture.FailedRequest{SessionType: model.Dial, PolicyFailures: []posture.PolicyFailure{e.Failure(policy, checks)}}
		conforms(t, failedSchema, string(failed.Append(nil)))
		shown := posture.DataOf([]*posture.Evaluator{e})
		conforms(t, dataSchema, string(dataOutput.Append(nil, &shown)))
	})
}

// FuzzVersion compares any version with any range. A version of three plain
// numbers is in it exactly if the library says so.
func FuzzVersion(f *testing.F) {
	for _, pair := range [][2]string{
		{"10.0.19041", ">=10.0.0"}, {"5.4.0-42-generic", "~5.4"}, {"1.2", "1.x || >=2.0.0 <3.0.0"}, {"Vista", "*"}, {"", ""}, {"1.2.3", "1.2.3-beta - 2"},
		{"v1.2.3.4", "^1"}, {"99999999999999999999.1", "!=1"}, {"1.2.3", "no range"},
	} {
		f.Add(pair[0], pair[1])
	}
	w := newWorld(f)
	snap := w.st.Snapshot()
	plain := regexp.MustCompile(`^(0|[1-9][0-9]{0,17})(\.(0|[1-9][0-9]{0,17})){2}$`)
	f.Fuzz(func(t *testing.T, version, within string) {
		reports := reports{}
		reports.submit(snap, "s", []posture.Response{{TypeID: "OS", Type: "Linux", Version: version}}, start)
		check := osCheck(model.OperatingSystem{Type: "Linux", Versions: []string{within}})
		judge := func() bool {
			return posture.NewEvaluator(posture.FactsOf(reports["s"]), posture.Session{}, start).Check(&check).Passing
		}
		got := judge()
		if judge() != got {
			t.Errorf("%q in %q is %t only once", version, within, got)
		}
		constraint, err := semver.NewConstraint(within)
		if err != nil && got {
			t.Errorf("%q is in %q, which is no range", version, within)
		}
		if err != nil || !plain.MatchString(version) {
			return
		}
		if want := constraint.Check(semver.MustParse(version)); got != want {
			t.Errorf("%q in %q: got %t, want %t", version, within, got, want)
		}
	})
}
