package fabric

import (
	"slices"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestExplanationIsWhatHappens dials after each change, and asks why it works
// or does not.
func TestExplanationIsWhatHappens(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	admin, host, dialer := s.Admin(t), identityOf(t, n.host), identityOf(t, n.dialer)
	broken := func(want ...string) {
		t.Helper()
		var got []string
		e := admin.Get(management + "identities/" + dialer + "/explain/" + n.service).Want(200).Data()
		for _, l := range e["links"].([]any) {
			if l.(M)["passed"] != true {
				got = append(got, l.(M)["link"].(string))
			}
		}
		if !slices.Equal(got, want) || e["allowed"] != (len(want) == 0) {
			t.Errorf("allowed: %v; %v do not hold, want %v", e["allowed"], got, want)
		}
	}
	broken("router", "terminator")
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(*message.Route) (wire.Headers, error) { return nil, nil }
	})
	broken("terminator")
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("a service that nobody hosts: %v", err)
	}
	n.hostOn(t, c, "terminator1")
	broken()
	if _, _, err := n.dialOn(t, c); err != nil {
		t.Errorf("a service that is hosted: %v", err)
	}
	admin.Post(management+"identities/"+host+"/disable", M{"durationMinutes": 0}).Want(200)
	broken("terminator")
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("a service whose host is disabled: %v", err)
	}
	admin.Delete(management + "service-policies/" + n.dialPolicy).Want(200)
	broken("service-policy", "terminator")
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidSession) {
		t.Errorf("a service that no policy gives: %v", err)
	}
	c.Close()
	servertest.Eventually(t, soon, "the router is not connected", func() bool {
		return admin.Get(management + "edge-routers/" + r.ID).Want(200).Data()["isOnline"] == false
	})
	broken("service-policy", "router", "terminator")
}
