package fabric

import (
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// audited waits for the audit entries that match a filter.
func audited(t *testing.T, s *servertest.Server, filter string) (entries []M) {
	t.Helper()
	admin := s.Admin(t)
	servertest.Eventually(t, soon, filter, func() bool {
		entries = admin.Get(management + "audit-entries?filter=" + url.QueryEscape(filter)).Want(200).List()
		return len(entries) > 0
	})
	return entries
}

// TestAudited has a router come and go, dials succeed and fail, and reads what the
// audit log tells of it.
func TestAudited(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Audit.Circuits = true })
	r, n := addRouter(t, s), addNetwork(t, s)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(*message.Route) (wire.Headers, error) { return nil, nil }
	})
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidTerminator) {
		t.Errorf("a service that nobody hosts: %v", err)
	}
	n.hostOn(t, c, "terminator1")
	id, _, err := n.dialOn(t, c)
	if err != nil {
		t.Fatal(err)
	}
	n.host.For(t).Post(client+"sessions", M{"serviceId": n.service, "type": "Dial"}).Want(400)
	connected := audited(t, s, `event = "router-connected"`)[0]
	if connected["actorId"] != r.ID || connected["targetName"] != r.Name || connected["address"] != "127.0.0.1" {
		t.Errorf("it connected: %v", connected)
	}
	for event, reason := range map[string]string{"circuit-refused": "nobody hosts the service", "circuit-made": "circuit " + id} {
		e := audited(t, s, `event = "`+event+`"`)[0]
		if e["actorId"] != n.dialUser.ID || e["targetId"] != n.service || !strings.Contains(e["reason"].(string), reason) {
			t.Errorf("%s is %v", event, e)
		}
	}
	refused := audited(t, s, `event = "session-refused"`)[0]
	if refused["actorId"] != n.hostUser.ID || refused["targetId"] != n.service || refused["reason"] != "Dial: no policy gives the permission to Dial it" {
		t.Errorf("the session was refused: %v", refused)
	}
	c.Close()
	if lost := audited(t, s, `event = "router-lost"`)[0]; lost["actorId"] != r.ID || lost["outcome"] != "failed" {
		t.Errorf("it was lost: %v", lost)
	}
	s.Admin(t).Patch(management+"edge-routers/"+r.ID, M{"disabled": true}).Want(200)
	if _, err := scripted.Connect(t.Context(), r.Options()); err == nil {
		t.Fatal("a disabled router was let in")
	}
	if shut := audited(t, s, `event = "router-refused"`)[0]; shut["address"] != "127.0.0.1" || !strings.Contains(shut["reason"].(string), "disabled") {
		t.Errorf("it was refused: %v", shut)
	}
}
