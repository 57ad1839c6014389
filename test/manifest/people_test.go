package manifest_test

import (
	"strings"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/test/servertest"
)

const provider = `
external-jwt-signers:
  - name: company
    issuer: https://login.corp.example
    audience: netkeep
    jwksEndpoint: https://login.corp.example/keys
    useExternalId: true
    enrollToTokenEnabled: true
    enrollAuthPolicyId: staff
    enrollNameClaimsSelector: name
    enrollAttributeClaimsSelector: /realm/roles
    enrollAttributePrefix: "idp:"
    enrollAttributeAllow: [eng-*, ops]
    enrollEmailDomains: [corp.example]
    enrollGroups: [staff]
    enrollClaims: {/org/id: "7"}
    enrollLimit: 50
auth-policies:
  - name: staff
    primary:
      extJwt: {allowed: true, allowedSigners: [company]}
`

// TestPeopleInFiles keeps a signer in files, and leaves those alone who came by it.
func TestPeopleInFiles(t *testing.T) {
	server := servertest.Start(t)
	c := newController(t, server)
	c.apply(t, provider, manifest.Options{})
	all := manifest.Options{Prune: true}
	if p := c.apply(t, provider, all); len(p.Changes) > 0 {
		t.Errorf("the same file changes %v", p.Changes)
	}
	if p := c.apply(t, c.text(t), all); len(p.Changes) > 0 {
		t.Errorf("the export changes %v", p.Changes)
	}
	err := server.State().Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		signer, _ := model.ExtJWTSigners.Find(tx, "name", "company")
		i := model.Identities.New()
		i.Name, i.Type, i.EnrolledBy, i.ExternalID = "ann", "User", signer.ID, "a"
		i.RoleAttributes = []string{"own"}
		i.Provide(model.Provided{SignerID: signer.ID, Attributes: []string{"idp:ops"}})
		return model.Identities.Create(tx, i)
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := c.apply(t, provider, all); len(p.Changes) > 0 {
		t.Errorf("files that do not have her change %v", p.Changes)
	}
	if text := c.text(t); strings.Contains(text, "idp:ops") || !strings.Contains(text, "own") {
		t.Errorf("the export is\n%s", text)
	}
	for attributes, changes := range map[string]int{"[own]": 0, "[own, 'idp:ops']": 0, "['idp:ops', own, more]": 1} {
		ann := "identities:\n  - name: ann\n    type: User\n    externalId: a\n    roleAttributes: " + attributes + "\n"
		p, err := c.plan(t, provider+ann, all)
		if err != nil || len(p.Changes) != changes {
			t.Errorf("%s: %v, %v", attributes, p, err)
		}
	}
}
