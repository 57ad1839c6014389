package transit

import (
	"bytes"
	"net"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// reporter is a client that reports of its device through a router.
type reporter struct {
	*raw
	conn    net.Conn
	service string
}

// addChecked makes a service behind checks of every kind that a device reports
// for.
func addChecked(n *networktest.Network) (id string) {
	n.T.Helper()
	id, _ = addChecks(n,
		M{"typeId": "OS", "operatingSystems": []M{{"type": "Linux", "versions": []string{">=5.0.0"}}}},
		M{"typeId": "DOMAIN", "domains": []string{"corp.example.com"}},
		M{"typeId": "MAC", "macAddresses": []string{"00:1A:2b:3c:4d:5e"}},
		M{"typeId": "PROCESS", "process": M{"osType": "Linux", "path": "/usr/bin/agent", "hashes": []string{"abc"}}},
		M{"typeId": "PROCESS_MULTI", "semantic": "AllOf", "processes": []M{{"osType": "Linux", "path": "/usr/bin/agent"}, {"osType": "Linux", "path": "/usr/bin/b", "signerFingerprints": []string{"0304"}}}},
	)
	return id
}

// report says it through the router.
func (r *reporter) report(reports ...message.PostureReport) {
	r.t.Helper()
	r.send(message.Marshal(&message.Posture{Reports: reports}))
}

func (r *reporter) send(body []byte) {
	r.t.Helper()
	_, err := r.conn.Write((&wire.Frame{Type: message.TypePosture, Seq: 7, Body: body}).Append(nil))
	must(r.t, err)
}

// passes reports whether the device may have a session.
func (r *reporter) passes() bool {
	r.t.Helper()
	mine := r.n.Server.Nobody(r.t).Presenting(&r.cert).With("zt-session", r.token)
	a := mine.Post(clientAPI+"sessions", M{"serviceId": r.service, "type": "Dial"})
	if a.Status != 201 {
		a.Fails(409, "INVALID_POSTURE", "")
	}
	return a.Status == 201
}

// programs is a report on the two that are asked for.
func programs(running bool) message.PostureReport {
	return message.PostureReport{Programs: &message.PosturePrograms{List: []message.PostureProgram{
		{Path: "/usr/bin/agent", Running: running, Hash: "ABC"}, {Path: "/usr/bin/b", Running: true, Signers: []string{"0304"}},
		{Path: "/usr/bin/whatever", Running: true},
	}}}
}

// sound is what a device says that passes all checks.
func sound() []message.PostureReport {
	return []message.PostureReport{
		{OS: &message.PostureOS{Type: "linux", Version: "6.1.0"}}, {Domain: &message.PostureDomain{Name: "corp.example.com"}},
		{MACs: &message.PostureMACs{Addresses: []string{"00-1a-2b-3c-4d-5e"}}}, programs(true),
	}
}

// newReporter connects a new identity's client to a router.
func newReporter(t *testing.T, n *networktest.Network, router *networktest.Router, service string) *reporter {
	t.Helper()
	me := login(t, n, n.AddIdentity(servertest.Unique("me")))
	conn, answer, err := me.socket(router, wire.Headers{})
	must(t, err)
	if !answer.Bool(message.HeaderTakesPosture) {
		t.Error("the router does not say that it takes reports")
	}
	return &reporter{me, conn, service}
}

// TestReports passes checks by what a client tells a router, and fails them
// again.
func TestReports(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := addChecked(n)
	me, other := newReporter(t, n, router, service), newReporter(t, n, router, service)
	if me.passes() {
		t.Fatal("a device passes that has said nothing")
	}
	me.report(sound()...)
	n.Eventually("the device passes", me.passes)
	if other.passes() {
		t.Error("another's device passes by that")
	}
	me.report(programs(false))
	n.Eventually("the device passes no more", func() bool { return !me.passes() })
	for name, body := range map[string][]byte{
		"that cannot be read": {0xff},
		"too long":            message.Marshal(&message.Posture{Reports: []message.PostureReport{{OS: &message.PostureOS{Type: string(bytes.Repeat([]byte("x"), 65))}}}}),
		"no text":             message.Marshal(&message.Posture{Reports: []message.PostureReport{{OS: &message.PostureOS{Type: "\xff"}}}}),
	} {
		liar, before := newReporter(t, n, router, service), router.Count("reports of its device was refused")
		for range 3 { // it is said once
			liar.send(body)
		}
		liar.report(sound()...)
		n.Eventually("it goes on after a report "+name, liar.passes)
		if said := router.Count("reports of its device was refused") - before; said != 1 {
			t.Errorf("it is said %d times that a report %s is refused", said, name)
		}
	}
	me.report(programs(true))
	n.Eventually("the device passes again", me.passes)
	me.send(make([]byte, 256<<10+1))
	cut(t, me.conn)
}

// TestReportsWait for a controller that is away, in order; who reports more than
// waits is cut off, since what it said before must not be believed.
func TestReportsWait(t *testing.T) {
	dir := t.TempDir()
	first, err := servertest.Open(dir)
	must(t, err)
	n := networktest.New(t, first)
	router := n.AddRouter("one")
	service := addChecked(n)
	me, flood := newReporter(t, n, router, service), newReporter(t, n, router, service)
	me.report(sound()...)
	n.Eventually("the device passes", me.passes)

	must(t, first.Close())
	n.Eventually("the router has noticed", func() bool { return !router.Status().Connected })
	me.report(message.PostureReport{Domain: &message.PostureDomain{Name: "home"}})
	me.report(programs(true))
	for range 17 {
		_, _ = flood.conn.Write((&wire.Frame{Type: message.TypePosture, Seq: 7}).Append(nil))
	}
	cut(t, flood.conn)
	second, err := servertest.Open(dir, func(c *config.Config) { c.Listen = first.Listening().String() })
	must(t, err)
	t.Cleanup(func() { must(t, second.Close()) })
	n.Server = second
	n.Eventually("what was said meanwhile is heard", func() bool { return !me.passes() })
}
