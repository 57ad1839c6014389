package manifest

import (
	"strings"
	"testing"

	"netkeep.internal/internal/model"
)

// TestNulls reads lists that OpenZiti's export writes as null although its API has to be told
// them, and tags that are numbers, which its API lets through.
func TestNulls(t *testing.T) {
	f := newFiles()
	f.add("f.json", []byte(`{
  "postureChecks": [{"name": "os", "typeId": "OS", "tags": {"n": 7, "list": [1], "yes": true}, "operatingSystems": [{"type": "Linux", "versions": null}]}],
  "certificateAuthorities": [{"name": "ca", "certPem": "x", "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false, "isOttCaEnrollmentEnabled": false, "identityRoles": null,
    "externalIdClaim": {"index": 0, "location": "", "matcher": "", "matcherCriteria": "", "parser": "", "parserCriteria": ""}}],
  "servicePolicies": [{"name": "p", "type": "Dial", "semantic": "AnyOf", "identityRoles": null, "serviceRoles": ["#all"]}]
}`))
	if err := f.mistakes.asError(); err != nil {
		t.Fatal(err)
	}
	said := func(w *wish) string { return string(w.said.json()) }
	for _, w := range f.records[model.PostureChecks.Def] {
		for _, want := range []string{`"n":"7"`, `"list":"[1]"`, `"yes":true`, `"versions":[]`} {
			if !strings.Contains(said(w), want) {
				t.Errorf("it does not hold %s: %s", want, said(w))
			}
		}
	}
	for _, w := range f.records[model.ServicePolicies.Def] {
		if strings.Contains(said(w), "null") {
			t.Errorf("it holds %s", said(w))
		}
	}
	for _, w := range f.records[model.CAs.Def] {
		if strings.Contains(said(w), "externalIdClaim") {
			t.Errorf("a claim that is none is %s", said(w))
		}
	}
	if len(f.records[model.CAs.Def]) != 1 || len(f.records[model.PostureChecks.Def]) != 1 || len(f.records[model.ServicePolicies.Def]) != 1 {
		t.Errorf("it holds %v", f.records)
	}
	if notes := strings.Join(f.Notes, "\n"); !strings.Contains(notes, `the tag "n" was no text`) {
		t.Errorf("nothing is said of the tag: %s", notes)
	}
}
