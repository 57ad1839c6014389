package posture_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

func metaOf(id string) kind.Meta { return kind.Meta{ID: id} }

// kinds is a check of each type. Nothing passes them.
func (w *world) kinds() []*model.PostureCheck {
	return []*model.PostureCheck{
		w.check(model.PostureCheck{Meta: kind.Meta{ID: "os", Tags: kind.Tags{"a": true}}, TypeID: "OS",
			OperatingSystems: []model.OperatingSystem{{Type: "Linux", Versions: []string{">=5.0.0"}}, {Type: "iOS"}}}),
		w.check(model.PostureCheck{Meta: metaOf("domain"), TypeID: "DOMAIN", Domains: []string{"a", "b"}}),
		w.check(model.PostureCheck{Meta: metaOf("mac"), TypeID: "MAC", MACAddresses: []string{"00:00"}}),
		w.check(model.PostureCheck{Meta: metaOf("process"), TypeID: "PROCESS",
			Process: &model.Process{OSType: "Linux", Path: "/p", Hashes: []string{"aa"}, SignerFingerprint: "bb"}}),
		w.check(model.PostureCheck{Meta: metaOf("multi"), TypeID: "PROCESS_MULTI", Semantic: model.AllOf, Processes: []model.ProcessMulti{
			{OSType: "Linux", Path: "/a", SignerFingerprints: []string{"cc"}}, {OSType: "macOS", Path: "/b"},
		}}),
		w.check(model.PostureCheck{Meta: metaOf("mfa"), TypeID: "MFA", TimeoutSeconds: 900, PromptOnWake: true, PromptOnUnlock: true}),
	}
}

func (w *world) at(seconds int) { w.now = start.Add(time.Duration(seconds) * time.Second) }

func TestQueries(t *testing.T) {
	w := newWorld(t)
	checks := w.kinds()
	w.at(10)
	w.pass("s", true)
	w.submit("s", `{"id":"domain","typeId":"DOMAIN","domain":"B"}`)
	w.at(20)
	w.submit("s", endpointBodies["wake"])
	w.at(30)
	e := w.device(w.session("s"))
	got := string(e.AppendQueries([]byte("["), "p1", model.Dial, checks))
	got = string(e.AppendQueries([]byte(got+","), "p2", model.Bind, nil)) + "]"
	base := func(id, typ string) string {
		return `"id":"` + id + `","queryType":"` + typ + `","createdAt":"2024-05-06T07:08:09.000Z","_links":{"self":{"href":"./posture-checks/` + id + `"}}`
	}
	const old = `,"updatedAt":"2024-05-06T07:08:09.000Z"`
	none := old + `,"timeout":-1,"timeoutRemaining":-1,"isPassing":false`
	sameJSON(t, "queries", `[
		{"policyId":"p1","policyType":"Dial","isPassing":false,"postureQueries":[
			{`+base("os", "OS")+none+`,"processes":[],"tags":{"a":true}},
			{`+base("domain", "DOMAIN")+strings.Replace(none, "false", "true", 1)+`,"processes":[],"tags":{}},
			{`+base("mac", "MAC")+none+`,"processes":[],"tags":{}},
			{`+base("process", "PROCESS")+none+`,"processes":[],"tags":{},"process":{"osType":"Linux","path":"/p"}},
			{`+base("multi", "PROCESS_MULTI")+none+`,"tags":{},"processes":[{"osType":"Linux","path":"/a"},{"osType":"macOS","path":"/b"}]},
			{`+base("mfa", "MFA")+`,"updatedAt":"2024-05-06T07:08:29.000Z","timeout":900,"timeoutRemaining":290,"isPassing":true,"processes":[],"tags":{}}
		]},
		{"policyId":"p2","policyType":"Bind","isPassing":true,"postureQueries":[]}
	]`, got)
	conforms(t, compile(kind.ListOf(posture.QueriesSchema())), got)
}

// TestRemembered checks that a check is judged and written once, however many
// policies have it.
func TestRemembered(t *testing.T) {
	w := newWorld(t)
	checks := w.kinds()
	e := w.device(posture.Session{})
	dst := e.AppendQueries(nil, "p", model.Dial, checks)
	if n := testing.AllocsPerRun(100, func() { dst = e.AppendQueries(dst[:0], "p", model.Dial, checks) }); n > 0 {
		t.Errorf("%v allocations for what is known", n)
	}
	first, again := e.Failure(policy, checks), e.Failure(policy, checks)
	if !slices.Equal(first.Checks, again.Checks) {
		t.Error("the failures of two policies do not share those of checks")
	}
}

// TestUpdatedAt checks which queries a wake and an unlock move forward.
func TestUpdatedAt(t *testing.T) {
	for _, test := range []struct {
		name  string
		check model.PostureCheck
		want  string
	}{
		{"wake", model.PostureCheck{TypeID: "MFA", PromptOnWake: true}, "2024-05-06T07:08:19.000Z"},
		{"unlock", model.PostureCheck{TypeID: "MFA", PromptOnUnlock: true}, "2024-05-06T07:08:29.000Z"},
		{"both", model.PostureCheck{TypeID: "MFA", PromptOnUnlock: true, PromptOnWake: true}, "2024-05-06T07:08:29.000Z"},
		{"neither", model.PostureCheck{TypeID: "MFA"}, "2024-05-06T07:08:09.000Z"},
		{"another type", model.PostureCheck{TypeID: "DOMAIN", Domains: []string{"a"}}, "2024-05-06T07:08:09.000Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			checks := []*model.PostureCheck{w.check(test.check)}
			w.at(10)
			w.submit("s", endpointBodies["wake"])
			w.at(20)
			w.submit("s", endpointBodies["unlock"])
			w.submit("other", endpointBodies["both"])
			updated := func() any {
				entry := parse(t, string(w.device(w.session("s")).AppendQueries(nil, "p", "Dial", checks)))
				return entry.(map[string]any)["postureQueries"].([]any)[0].(map[string]any)["updatedAt"]
			}
			if got := updated(); got != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
			newer := *checks[0]
			newer.UpdatedAt = kind.MomentOf(start.Add(time.Minute))
			checks[0] = &newer
			if got := updated(); got != "2024-05-06T07:09:09.000Z" {
				t.Errorf("after a change of the check: %v", got)
			}
		})
	}
}

var policy = &model.ServicePolicy{Meta: metaOf("p"), Name: "the policy"}

// failed renders a failed request with these checks.
func (w *world) failed(checks []*model.PostureCheck) string {
	r := posture.FailedRequest{When: w.now, APISessionID: "s", ServiceID: "v", ServiceName: "the service", SessionType: model.Dial}
	r.PolicyFailures = append(r.PolicyFailures, w.device(w.session("s")).Failure(policy, checks))
	return string(r.Append(nil))
}

func TestFailureWithoutReports(t *testing.T) {
	w := newWorld(t)
	checks := w.kinds()
	got := w.failed(checks)
	const never = "0001-01-01T00:00:00.000Z"
	sameJSON(t, "failure", `{
		"when":"2024-05-06T07:08:09.000Z","apiSessionId":"s","serviceId":"v","serviceName":"the service","sessionType":"Dial",
		"policyFailures":[{"policyId":"p","policyName":"the policy","checks":[
			{"postureCheckId":"os","postureCheckName":"check os","postureCheckType":"OS",
				"expectedValue":[{"type":"Linux","versions":[">=5.0.0"]},{"type":"iOS","versions":[]}],"actualValue":{"type":"","version":""}},
			{"postureCheckId":"domain","postureCheckName":"check domain","postureCheckType":"DOMAIN","expectedValue":["a","b"],"actualValue":""},
			{"postureCheckId":"mac","postureCheckName":"check mac","postureCheckType":"MAC","expectedValue":["0000"],"actualValue":[]},
			{"postureCheckId":"process","postureCheckName":"check process","postureCheckType":"PROCESS",
				"expectedValue":{"osType":"Linux","path":"/p","hashes":["aa"],"signerFingerprint":"bb"},
				"actualValue":{"osType":"Linux","path":"/p","isRunning":false,"hash":"","signerFingerprints":[]}},
			{"postureCheckId":"multi","postureCheckName":"check multi","postureCheckType":"PROCESS_MULTI","semantic":"AllOf",
				"expectedValue":[{"osType":"Linux","path":"/a","hashes":[],"signerFingerprints":["cc"]},{"osType":"macOS","path":"/b","hashes":[],"signerFingerprints":[]}],
				"actualValue":[{"osType":"Linux","path":"/a","isRunning":false,"hash":"","signerFingerprints":[]},
					{"osType":"macOS","path":"/b","isRunning":false,"hash":"","signerFingerprints":[]}]},
			{"postureCheckId":"mfa","postureCheckName":"check mfa","postureCheckType":"MFA",
				"expectedValue":{"passedMfa":true,"passedOnWake":true,"passedOnUnlock":true,"timedOut":false},
				"actualValue":{"passedMfa":false,"passedOnWake":false,"passedOnUnlock":false,"timedOut":false},
				"criteria":{"passedMfaAt":"`+never+`","wokenAt":"`+never+`","unlockedAt":"`+never+`","timeoutSeconds":900,"timeoutRemainingSeconds":0}}
		]}]}`, got)
	conforms(t, failedSchema, got)
}

func TestFailureWithReports(t *testing.T) {
	w := newWorld(t)
	checks := w.kinds()
	w.pass("s", true)
	w.at(10)
	w.submit("s",
		osReport("Windows", "10.0.1"), `{"id":"x","typeId":"DOMAIN","domain":"c"}`, `{"id":"x","typeId":"MAC","macAddresses":["00:02","0-0-0-1"]}`,
		strings.Replace(processReport("/other", true, "FF", "11"), "ID", "process", 1), strings.Replace(processReport("/b", true, "ee"), "ID", "multi", 1),
		endpointBodies["both"],
	)
	w.at(1000)
	got := w.failed(checks)
	sameJSON(t, "failure", `{
		"when":"2024-05-06T07:24:49.000Z","apiSessionId":"s","serviceId":"v","serviceName":"the service","sessionType":"Dial",
		"policyFailures":[{"policyId":"p","policyName":"the policy","checks":[
			{"postureCheckId":"os","postureCheckName":"check os","postureCheckType":"OS",
				"expectedValue":[{"type":"Linux","versions":[">=5.0.0"]},{"type":"iOS","versions":[]}],"actualValue":{"type":"Windows","version":"10.0.1"}},
			{"postureCheckId":"domain","postureCheckName":"check domain","postureCheckType":"DOMAIN","expectedValue":["a","b"],"actualValue":"c"},
			{"postureCheckId":"mac","postureCheckName":"check mac","postureCheckType":"MAC","expectedValue":["0000"],"actualValue":["0001","0002"]},
			{"postureCheckId":"process","postureCheckName":"check process","postureCheckType":"PROCESS",
				"expectedValue":{"osType":"Linux","path":"/p","hashes":["aa"],"signerFingerprint":"bb"},
				"actualValue":{"osType":"Linux","path":"/p","isRunning":true,"hash":"FF","signerFingerprints":["11"]}},
			{"postureCheckId":"multi","postureCheckName":"check multi","postureCheckType":"PROCESS_MULTI","semantic":"AllOf",
				"expectedValue":[{"osType":"Linux","path":"/a","hashes":[],"signerFingerprints":["cc"]},{"osType":"macOS","path":"/b","hashes":[],"signerFingerprints":[]}],
				"actualValue":[{"osType":"Linux","path":"/a","isRunning":false,"hash":"","signerFingerprints":[]},
					{"osType":"macOS","path":"/b","isRunning":true,"hash":"ee","signerFingerprints":[]}]},
			{"postureCheckId":"mfa","postureCheckName":"check mfa","postureCheckType":"MFA",
				"expectedValue":{"passedMfa":true,"passedOnWake":true,"passedOnUnlock":true,"timedOut":false},
				"actualValue":{"passedMfa":true,"passedOnWake":false,"passedOnUnlock":false,"timedOut":true},
				"criteria":{"passedMfaAt":"2024-05-06T07:08:09.000Z","wokenAt":"2024-05-06T07:08:19.000Z","unlockedAt":"2024-05-06T07:08:19.000Z",
					"timeoutSeconds":900,"timeoutRemainingSeconds":0}}
		]}]}`, got)
	conforms(t, failedSchema, got)
}

// TestFailureStays checks that a failure tells of the moment when it happened,
// and only of what failed.
func TestFailureStays(t *testing.T) {
	w := newWorld(t)
	passes := w.check(model.PostureCheck{Meta: metaOf("passes"), TypeID: "DOMAIN", Domains: []string{"was"}})
	fails := w.check(model.PostureCheck{Meta: metaOf("fails"), TypeID: "DOMAIN", Domains: []string{"expected"}})
	w.submit("s", `{"id":"x","typeId":"DOMAIN","domain":"was"}`)
	var failures posture.Failures
	failures.Add("i", posture.FailedRequest{PolicyFailures: []posture.PolicyFailure{
		w.device(w.session("s")).Failure(policy, []*model.PostureCheck{passes, fails}),
		w.device(w.session("s")).Failure(policy, []*model.PostureCheck{passes}),
	}})
	w.submit("s", `{"id":"x","typeId":"DOMAIN","domain":"is"}`)
	sameJSON(t, "failure", `{"when":"0001-01-01T00:00:00.000Z","apiSessionId":"","serviceId":"","serviceName":"","sessionType":"","policyFailures":[
		{"policyId":"p","policyName":"the policy","checks":[
			{"postureCheckId":"fails","postureCheckName":"check fails","postureCheckType":"DOMAIN","expectedValue":["expected"],"actualValue":"was"}]},
		{"policyId":"p","policyName":"the policy","checks":[]}]}`, string(failures.Of("i")[0].Append(nil)))
}

func TestData(t *testing.T) {
	w := newWorld(t)
	const never = "0001-01-01T00:00:00.000Z"
	const none = `"postureCheckId":"","timedOut":false,"lastUpdatedAt":"` + never + `"`
	empty := `{"mac":{` + none + `,"addresses":[]},"domain":{` + none + `,"domain":""},"os":{` + none + `,"type":"","version":"","build":""},
		"processes":[],"apiSessionPostureData":{}}`
	nothing := posture.DataOf(nil)
	sameJSON(t, "nothing", empty, string(dataOutput.Append(nil, &nothing)))
	conforms(t, dataSchema, w.data())

	w.kinds()
	w.pass("s1", true)
	w.pass("s2", false)
	w.at(10)
	w.submit("s1", `{"id":"os","typeId":"OS","type":"Linux","version":"5","build":"b"}`, `{"id":"domain","typeId":"DOMAIN","domain":"d"}`,
		`{"id":"mac","typeId":"MAC","macAddresses":["0B","0-A"]}`, strings.Replace(processReport("/p", true, "AA", "BB"), "ID", "process", 1),
		strings.Replace(processReport("/b", false, ""), "ID", "multi", 1), strings.Replace(processReport("/a", true, "h"), "ID", "multi", 1))
	w.at(20)
	w.submit("s1", `{"id":"again","typeId":"DOMAIN","domain":"d"}`, endpointBodies["wake"])
	s1, s2 := w.session("s1"), w.session("s2")
	s1.SDK = model.SDKInfo{Type: "t", Version: "1"}
	stamp := func(id, second string) string {
		return `"postureCheckId":"` + id + `","timedOut":false,"lastUpdatedAt":"2024-05-06T07:08:` + second + `.000Z"`
	}
	sessions := func(onWake string) string {
		return `{"s1":{"mfa":{"apiSessionId":"s1","passedMfa":true,"passedAt":"2024-05-06T07:08:09.000Z","passedOnWake":` + onWake + `,"passedOnUnlock":true},
			"endpointState":{"wokenAt":"2024-05-06T07:08:29.000Z","unlockedAt":"` + never + `"},"sdkInfo":{"type":"t","version":"1"}},
		"s2":{"mfa":{"apiSessionId":"s2","passedMfa":false,"passedAt":"` + never + `","passedOnWake":false,"passedOnUnlock":false}}}`
	}
	want := func(onWake string) string {
		return `{"mac":{` + stamp("mac", "19") + `,"addresses":["0a","0b"]},"domain":{` + stamp("domain", "19") + `,"domain":"d"},
			"os":{` + stamp("os", "19") + `,"type":"Linux","version":"5","build":"b"},
			"processes":[{` + stamp("multi", "19") + `,"isRunning":true,"binaryHash":"h","signerFingerprints":[]},
				{` + stamp("multi", "19") + `,"isRunning":false,"binaryHash":"","signerFingerprints":[]},
				{` + stamp("process", "19") + `,"isRunning":true,"binaryHash":"AA","signerFingerprints":["BB"]}],
			"apiSessionPostureData":` + sessions(onWake) + `}`
	}
	sameJSON(t, "all", want("true"), w.data(s1, s2))
	w.at(20 + 300)
	sameJSON(t, "all, when the grace is over", want("false"), w.data(s1, s2))
	conforms(t, dataSchema, w.data(s1, s2))
}
