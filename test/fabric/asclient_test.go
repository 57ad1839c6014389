package fabric

import (
	"slices"
	"testing"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// addSecond is addTunnel with a router of the second generation, which knows
// nothing of sessions.
func addSecond(t *testing.T, s *servertest.Server) *tunnel {
	t.Helper()
	w := addTunnel(t, s)
	w.conn.Close()
	<-w.conn.Done()
	w.conn = w.Connect(t, grouped)
	return w
}

// hostAsClient has the router host, and wants it to end in some way.
func (w *tunnel) hostAsClient(t *testing.T, service, address string, want message.TerminatorResult, code message.ErrorCode) {
	t.Helper()
	got, err := w.conn.HostAsClient(within(t), message.HostAsClient{ServiceID: service, Address: address, Cost: 7, Started: 5})
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != address || got.Started != 5 || got.Result != want || got.ErrorCode != code || (got.Message == "") != (want == message.TerminatorOK) {
		t.Errorf("hosting is answered with %+v, want result %d and code %d", got, want, code)
	}
}

// TestAsClient has a router of the second generation host and dial: what it may
// is decided as for others.
func TestAsClient(t *testing.T) {
	s := servertest.Start(t)
	w, other := addSecond(t, s), addSecond(t, s)
	admin := s.Admin(t)
	id := servertest.Unique("t")
	w.hostAsClient(t, w.n.service, id, message.TerminatorOK, 0)
	w.hostAsClient(t, w.n.service, id, message.TerminatorOK, 0)
	list := w.terminators(t)
	if len(list) != 1 || list[0]["binding"] != "tunnel" || list[0]["address"] != id || list[0]["routerId"] != w.ID || list[0]["cost"] != 7.0 {
		t.Fatalf("terminators are %v", list)
	}
	if _, _, err := w.n.dialOn(t, w.conn); err != nil {
		t.Errorf("a client dials: %v", err)
	}
	made, err := w.conn.DialAsClient(within(t), message.DialAsClient{ServiceName: w.service, PeerData: map[uint32][]byte{message.PeerAppData: []byte("hello")}})
	if err != nil || made.CircuitID == "" || made.Address == "" {
		t.Fatalf("it dials: %+v, %v", made, err)
	}
	await(t, w.conn, "its circuit", func(k scripted.Known) bool {
		route := k.Circuits[made.CircuitID]
		return route != nil && route.Egress.Destination == id && string(route.Egress.PeerData[message.PeerAppData]) == "hello"
	})
	other.hostAsClient(t, other.n.service, id, message.TerminatorConflict, message.CodeInvalidTerminator)
	w.hostAsClient(t, other.n.service, "another", message.TerminatorFailed, message.CodeInvalidService)
	w.hostAsClient(t, "missing", "another", message.TerminatorFailed, message.CodeInvalidService)
	if _, err := w.conn.DialAsClient(within(t), message.DialAsClient{ServiceName: other.service}); !isRefused(err, message.CodeInvalidService) {
		t.Errorf("it dials what it may not: %v", err)
	}

	check := admin.Post(management+"posture-checks", M{"name": servertest.Unique("check"), "typeId": "DOMAIN", "domains": []string{"d"}}).Want(201).ID()
	admin.Patch(management+"service-policies/"+w.policy[model.Bind], M{"postureCheckRoles": []string{"@" + check}}).Want(200)
	eventually(t, "a check ends what it hosts", func() bool { return len(w.terminators(t)) == 0 })
	w.hostAsClient(t, w.n.service, id, message.TerminatorFailed, message.CodeAccessDenied)
	admin.Patch(management+"edge-routers/"+w.ID, M{"isTunnelerEnabled": false}).Want(200)
	w.hostAsClient(t, w.n.service, id, message.TerminatorFailed, message.CodeTunnelingNotEnabled)
	if _, err := w.conn.DialAsClient(within(t), message.DialAsClient{ServiceName: w.service}); !isRefused(err, message.CodeTunnelingNotEnabled) {
		t.Errorf("it dials: %v", err)
	}
}

// TestAsClientGoesOn ends the sessions of a router that knows of none, and that
// has said on another connection what it hosts: it goes on as long as it may.
func TestAsClientGoesOn(t *testing.T) {
	s := servertest.Start(t)
	w := addSecond(t, s)
	admin := s.Admin(t)
	id := servertest.Unique("t")
	w.hostAsClient(t, w.n.service, id, message.TerminatorOK, 0)
	before := w.apiSessions(t)
	if len(before) != 1 {
		t.Fatalf("it has the API sessions %q", before)
	}
	w.conn.Close()
	<-w.conn.Done()
	w.conn = w.Connect(t, grouped)
	admin.Delete(management + "api-sessions/" + before[0]).Want(200)
	eventually(t, "it has another API session", func() bool { return len(w.apiSessions(t)) == 1 && !slices.Equal(w.apiSessions(t), before) })
	eventually(t, "a client dials it", func() bool {
		_, _, err := w.n.dialOn(t, w.conn)
		return err == nil
	})
	if list := w.terminators(t); len(list) != 1 || list[0]["id"] != id || list[0]["cost"] != 7.0 {
		t.Errorf("it hosts otherwise: %v", list)
	}
	admin.Delete(management + "service-policies/" + w.policy[model.Bind]).Want(200)
	eventually(t, "it hosts no more", func() bool { return len(w.terminators(t)) == 0 })
}
