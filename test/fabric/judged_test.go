package fabric

import (
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// checkedNetwork is a network where a device must be of a domain for its user to dial, who
// comes with an access token.
type checkedNetwork struct {
	*network
	check string
	user  *servertest.Client // who dials
}

func addCheckedNetwork(t *testing.T, s *servertest.Server) *checkedNetwork {
	t.Helper()
	n := &checkedNetwork{network: addNetwork(t, s)}
	admin := s.Admin(t)
	n.check = admin.Post(management+"posture-checks", M{"name": servertest.Unique("check"), "typeId": "DOMAIN", "domains": []string{"corp"}}).Want(201).ID()
	admin.Patch(management+"service-policies/"+n.dialPolicy, M{"postureCheckRoles": []string{"@" + n.check}}).Want(200)
	n.user = s.Bear(t, n.dialUser)
	n.user.Post(client+"current-api-session/certificates", M{"csr": csrOf(t, newKey(t))}).Want(201)
	n.dialing = n.session(t, n.user, "Dial")
	n.dialer = s.Nobody(t)
	n.dialer.Token = strings.TrimPrefix(n.user.Header.Get("Authorization"), "Bearer ")
	return n
}

// report has a router pass on which domain a device says it is of.
func (n *checkedNetwork) report(t *testing.T, c *scripted.Router, domain string) {
	t.Helper()
	f := &wire.Frame{
		Type: message.TypeDeviceReport, Headers: wire.Headers{},
		Body: message.Marshal(&message.Posture{Reports: []message.PostureReport{{Domain: &message.PostureDomain{Name: domain}}}}),
	}
	f.Headers.SetText(message.HeaderAPISessionToken, n.dialer.Token)
	answer, err := c.Request(t.Context(), f)
	must(t, err)
	if !answer.Headers.Bool(message.HeaderSuccess) {
		t.Fatalf("a report was refused: %s", answer.Body)
	}
}

// wantFailed checks that an admin sees of dials over routers on what they were refused, of
// the last on how many checks.
func (n *checkedNetwork) wantFailed(t *testing.T, admin *servertest.Client, dials, checks int) {
	t.Helper()
	failed := admin.Get(management + "identities/" + n.dialUser.ID + "/failed-service-requests").Want(200).List()
	if len(failed) != dials || failed[0]["serviceId"] != n.service || failed[0]["sessionType"] != "Dial" || failed[0]["reportedOnly"] != nil {
		t.Fatalf("the failed requests are %v", failed)
	}
	policies := failed[0]["policyFailures"].([]any)
	if len(policies) != 1 || policies[0].(M)["policyId"] != n.dialPolicy || len(policies[0].(M)["checks"].([]any)) != checks {
		t.Errorf("what stood against it is %v", policies)
	}
}

// TestReportedByRouter has a client with an access token get its session before anybody
// knows its device, report to a router of ours, dial, and lose what it made with a worse
// report.
func TestReportedByRouter(t *testing.T) {
	s := servertest.Start(t, withOIDC)
	ours := addRouter(t, s, M{"takesDigests": true}).Connect(t, grouped)
	n := addCheckedNetwork(t, s)
	n.hostOn(t, ours, "terminator1")
	denied := func(what string, code message.ErrorCode) {
		t.Helper()
		if _, _, err := n.dialOn(t, ours); !isRefused(err, code) {
			t.Errorf("%s: %v", what, err)
		}
	}
	denied("nothing is known of the device", message.CodePostureFailed)
	n.report(t, ours, "elsewhere")
	denied("it is of another domain", message.CodePostureFailed)
	n.wantFailed(t, s.Admin(t), 2, 1)
	n.report(t, ours, "corp")
	id, _, err := n.dialOn(t, ours)
	if err != nil {
		t.Fatalf("the device passes: %v", err)
	}
	await(t, ours, "the circuit is there", func(k scripted.Known) bool { return k.Circuits[id] != nil })
	n.report(t, ours, "elsewhere")
	await(t, ours, "the circuit ends", func(k scripted.Known) bool { return k.Circuits[id] == nil })
	denied("its session is over", message.CodeInvalidSession)
	n.dialing = n.session(t, n.user, "Dial")
	denied("another session waits too", message.CodePostureFailed)
	n.report(t, ours, "corp")
	if _, _, err := n.dialOn(t, ours); err != nil {
		t.Errorf("it passes once more: %v", err)
	}
}

// TestJudgedByRouter has a router of OpenZiti 2 judge a device that reports to it alone: it
// is told the check, and who it is for. A router of ours judges nothing.
func TestJudgedByRouter(t *testing.T) {
	s := servertest.Start(t, withOIDC)
	theirs, ours := addRouter(t, s).Connect(t, grouped), addRouter(t, s, M{"takesDigests": true}).Connect(t, grouped)
	for _, c := range []*scripted.Router{theirs, ours} {
		subscribe(t, c, message.SubscribeToDataModel{Seconds: 300})
	}
	n := addCheckedNetwork(t, s)
	n.hostOn(t, theirs, "terminator1")
	goesBy := func(k scripted.Known) bool {
		for _, p := range k.Model.Policies {
			if p.Identities[n.dialUser.ID] && p.Services[n.service] && len(p.Checks) == 1 && p.Checks[n.check] {
				return true
			}
		}
		return false
	}
	await(t, theirs, "it is told the check", func(k scripted.Known) bool {
		check := k.Model.Checks[n.check]
		return goesBy(k) && check.Name == "" && check.Domains != nil && slices.Equal(check.Domains.Domains, []string{"corp"})
	})
	await(t, ours, "it is told who comes", func(k scripted.Known) bool {
		_, told := k.Model.Identities[n.dialUser.ID]
		return told && len(k.Model.Checks) == 0 && !goesBy(k)
	})
	id, _, err := n.dialOn(t, theirs)
	if err != nil {
		t.Fatalf("a dial through a router that judges: %v", err)
	}
	if _, _, err := n.dialOn(t, ours); !isRefused(err, message.CodePostureFailed) {
		t.Errorf("a dial through one that does not: %v", err)
	}
	await(t, theirs, "the circuit stays", func(k scripted.Known) bool { return k.Circuits[id] != nil })

	// What the controller knows by itself it judges by itself.
	admin := s.Admin(t)
	factor := admin.Post(management+"posture-checks", M{"name": servertest.Unique("check"), "typeId": "MFA"}).Want(201).ID()
	admin.Patch(management+"service-policies/"+n.dialPolicy, M{"postureCheckRoles": []string{"@" + n.check, "@" + factor}}).Want(200)
	await(t, theirs, "it is told the other check", func(k scripted.Known) bool { return k.Model.Checks[factor].Factor != nil })
	if _, _, err := n.dialOn(t, theirs); !isRefused(err, message.CodePostureFailed) {
		t.Errorf("a dial without the second factor: %v", err)
	}
	n.wantFailed(t, admin, 2, 2)
	// And what was reported here counts, whoever judges.
	admin.Patch(management+"service-policies/"+n.dialPolicy, M{"postureCheckRoles": []string{"@" + n.check}}).Want(200)
	n.report(t, ours, "elsewhere")
	if _, _, err := n.dialOn(t, theirs); !isRefused(err, message.CodePostureFailed) {
		t.Errorf("a dial of a device that fails: %v", err)
	}
}
