package fabric

import (
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// shortly is a moment that is not over before a test has prepared what ends then,
// and how it is written.
func shortly() (time.Time, string) {
	at := time.Now().Add(5 * time.Second).UTC().Truncate(time.Millisecond)
	return at, at.Format(time.RFC3339Nano)
}

// carrying is a network with a circuit.
func carrying(t *testing.T, s *servertest.Server) (n *network, c *scripted.Router, circuit string) {
	t.Helper()
	r := addRouter(t, s)
	n = addNetwork(t, s)
	c = r.Connect(t)
	n.hostOn(t, c, servertest.Unique("t"))
	circuit, _, err := n.dialOn(t, c)
	must(t, err)
	return n, c, circuit
}

// over waits until a circuit is, which must not be before its moment.
// refused is how a dial is answered from then on.
func (n *network) over(t *testing.T, c *scripted.Router, circuit string, moment time.Time, refused message.ErrorCode) {
	t.Helper()
	await(t, c, "the circuit ends", func(k scripted.Known) bool { return k.Circuits[circuit] == nil })
	late := time.Since(moment)
	t.Logf("ended %s after the moment", late)
	if late < 0 {
		t.Errorf("the circuit ended %s before the moment", -late)
	}
	if _, _, err := n.dialOn(t, c); !isRefused(err, refused) {
		t.Errorf("a dial after the moment: %v", err)
	}
	n.dialer.For(t).Post(client+"sessions", M{"serviceId": n.service, "type": "Dial"}).Want(404)
	if seen := n.dialer.For(t).Get(client + "services").Want(200).List(); len(seen) > 0 {
		t.Errorf("services are seen after the moment: %v", seen)
	}
}

// TestPolicyEnds has a connection end with the policy that it rests on.
func TestPolicyEnds(t *testing.T) {
	s := servertest.Start(t)
	n, c, circuit := carrying(t, s)
	moment, until := shortly()
	s.Admin(t).Patch(management+"service-policies/"+n.dialPolicy, M{"validUntil": until}).Want(200)
	n.over(t, c, circuit, moment, message.CodeInvalidSession)
	got := s.Admin(t).Get(management + "service-policies/" + n.dialPolicy).Data()
	if got["standing"] != "over" {
		t.Errorf("the policy is %v", got)
	}
	// And begins again when somebody says so.
	s.Admin(t).Patch(management+"service-policies/"+n.dialPolicy, M{"validUntil": nil}).Want(200)
	n.dialing = n.session(t, n.dialer, "Dial")
	_, _, err := n.dialOn(t, c)
	must(t, err)
}

// TestGrantEnds has a connection end with the membership that it rests on, and the
// identity's own attributes stay.
func TestGrantEnds(t *testing.T) {
	s := servertest.Start(t)
	n, c, circuit := carrying(t, s)
	admin := s.Admin(t)
	admin.Patch(management+"identities/"+n.dialUser.ID, M{"roleAttributes": []string{"staff"}}).Want(200)
	moment, until := shortly()
	id := admin.Post(management+"grants", M{"identityId": n.dialUser.ID, "attribute": "finance", "reason": "quarter end", "validUntil": until}).Want(201).ID()
	admin.Patch(management+"service-policies/"+n.dialPolicy, M{"identityRoles": []string{"#finance"}}).Want(200)
	got := admin.Get(management + "identities/" + n.dialUser.ID).Data()
	if len(got["roleAttributes"].([]any)) != 2 || len(got["grantedAttributes"].([]any)) != 1 {
		t.Errorf("with a grant the identity is %v", got)
	}
	n.over(t, c, circuit, moment, message.CodeInvalidSession)
	got = admin.Get(management + "identities/" + n.dialUser.ID).Data()
	if own := got["roleAttributes"].([]any); len(own) != 1 || own[0] != "staff" {
		t.Errorf("after the grant the identity has %v", own)
	}
	if g := admin.Get(management + "grants/" + id).Data(); g["standing"] != "over" || g["grantedBy"] != "Default Admin" {
		t.Errorf("the grant is %v", g)
	}
	for field, body := range map[string]M{
		"validUntil": {"identityId": n.dialUser.ID, "attribute": "a", "reason": "r", "validUntil": "2020-01-01T00:00:00Z"},
		"attribute":  {"identityId": n.dialUser.ID, "attribute": "#a", "reason": "r", "validUntil": "2999-01-01T00:00:00Z"},
	} {
		admin.Post(management+"grants", body).Fails(400, "COULD_NOT_VALIDATE", field)
	}
}

// TestEndsWithoutStore has the moment come while the store is away: nobody can write
// that the policy is over, and the connection ends.
func TestEndsWithoutStore(t *testing.T) {
	etcd := etcdtest.Start(t)
	line := etcd.NewLine(t)
	s := servertest.Start(t, func(c *config.Config) {
		etcd.Settings(c, line)
		c.Store.Grace = 10 * time.Minute
	})
	n, c, circuit := carrying(t, s)
	moment, until := shortly()
	s.Admin(t).Patch(management+"service-policies/"+n.dialPolicy, M{"validUntil": until}).Want(200)
	line.Cut()
	// Nobody can tell whether another controller has a session that this one lacks.
	n.over(t, c, circuit, moment, message.CodeInternal)
	line.Mend()
	servertest.Eventually(t, time.Minute, "the end is written", func() bool {
		return s.Admin(t).Get(management + "service-policies/" + n.dialPolicy).Data()["standing"] == "over"
	})
}
