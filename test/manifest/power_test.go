package manifest_test

import (
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/test/servertest"
)

// guarded is a network with who may administer what, what ends by itself, what can be
// asked for and what must hold; BEGIN and END are times.
const guarded = `
admin-roles:
  - name: web-team
    allows: ["service:*", "service-policy:read"]
    onlyAttributes: [web]
  - name: deployers
    allows: ["service:read"]
    onlyTags: {team: shop}
role-bindings:
  - name: leads
    roleId: web-team
    identityRoles: ["#leads"]
  - name: pipelines
    roleId: deployers
    signerId: ci
    claims: {repository: shop}
external-jwt-signers:
  - name: ci
    issuer: https://ci.example
    audience: netkeep
    jwksEndpoint: https://ci.example/keys
auth-policies:
  - name: no-machines
    machineTokens: forbid
identities:
  - name: ann
    type: User
    authPolicyId: no-machines
    adminRoles: [viewer, web-team]
    roleAttributes: [staff]
services:
  - name: payroll
    roleAttributes: [finance]
    requests: {attribute: payroll-now, approvers: leads, approvals: 2, longestMinutes: 60}
posture-checks:
  - name: linux
    typeId: OS
    mode: report
    operatingSystems: [{type: Linux, versions: []}]
grants:
  - name: quarter end
    identityId: ann
    attribute: finance
    reason: quarter end
    validFrom: BEGIN
    validUntil: END
service-policies:
  - name: contract
    type: Dial
    identityRoles: ["#staff"]
    serviceRoles: ["#finance"]
    validUntil: END
edge-router-policies:
  - name: for now
    identityRoles: ["#staff"]
    edgeRouterRoles: ["#all"]
    validFrom: BEGIN
assertions:
  - name: staff stay in
    expect: always
    identityRoles: ["#staff"]
    serviceRoles: ["@payroll"]
`

// TestPowerInFiles keeps all of it in files: they are a network's, make another the same,
// and show what differs.
func TestPowerInFiles(t *testing.T) {
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	network := strings.NewReplacer("BEGIN", at(24*time.Hour), "END", at(48*time.Hour)).Replace(guarded)
	all := manifest.Options{Prune: true}
	c, other := newController(t, servertest.Start(t)), newController(t, servertest.Start(t))
	c.apply(t, network, manifest.Options{})
	if p := c.apply(t, network, all); len(p.Changes) > 0 {
		t.Errorf("the same file changes %v", p.Changes)
	}
	text := c.text(t)
	for _, part := range []string{"onlyAttributes: [web]", "team: shop", "repository: shop", "machineTokens: forbid", "approvers: leads", "mode: report", "attribute: finance", "validFrom:", "validUntil:", "expect: always"} {
		if !strings.Contains(text, part) {
			t.Errorf("the export does not have %s:\n%s", part, text)
		}
	}
	other.apply(t, text, manifest.Options{})
	if got := other.text(t); got != text {
		t.Errorf("the other network is\n%s\nand not\n%s", got, text)
	}
	for was, is := range map[string]string{
		"mode: report": "mode: enforce", "approvals: 2": "approvals: 1", "onlyAttributes: [web]": "onlyAttributes: [shop]",
		"identityRoles: [\"#leads\"]": "identityRoles: [\"#bosses\"]", "machineTokens: forbid": "machineTokens: allow", "expect: always": "expect: somebody",
		"reason: quarter end": "reason: another", "adminRoles: [viewer, web-team]": "adminRoles: [viewer]",
	} {
		if p, err := c.plan(t, strings.Replace(network, was, is, 1), all); err != nil || len(p.Changes) != 1 {
			t.Errorf("with %s the plan is %v, %v", is, p, err)
		}
	}
}
