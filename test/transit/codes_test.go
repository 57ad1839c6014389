package transit

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/networktest"
)

// isRefusal holds a frame to a refusal, in all headers that clients of others
// read.
func isRefusal(t *testing.T, what string, f *wire.Frame, want *message.Refusal) {
	t.Helper()
	code, _ := f.Headers.Uint32(1014)
	var said struct {
		Message   string
		Code      uint32
		RetryHint uint32
		Cause     json.RawMessage
	}
	if err := json.Unmarshal(f.Headers[1033], &said); err != nil || said.Message != string(f.Body) || said.Cause != nil {
		t.Errorf("%s: the structured error is %q, beside %q", what, f.Headers[1033], f.Body)
	}
	got := message.RefusalIn(f)
	if f.Type != message.TypeClosed || code != uint32(want.Code) || said.Code != code || said.RetryHint != uint32(want.Retry) || got.Name() != want.Name() {
		t.Errorf("%s: answered with %d, code %d, %s (%s), want %+v", what, f.Type, code, f.Headers[1033], got.Name(), want)
	}
}

// deleteSessions ends all sessions of a kind for a service.
func deleteSessions(n *networktest.Network, service, typ string) {
	n.T.Helper()
	for _, s := range n.Admin.Get(networktest.Management + "sessions?limit=500").Want(200).List() {
		if s["type"] == typ && s["service"].(M)["name"] == service {
			n.Admin.Delete(networktest.Management + "sessions/" + s["id"].(string)).Want(200)
		}
	}
}

// answering hosts a service in which every dial meets the same fate.
func answering(n *networktest.Network, c *sdk.Client, service string, decide func(*sdk.Pending)) {
	n.T.Helper()
	l, err := c.Listen(n.T.Context(), service, sdk.ListenOptions{})
	if err != nil {
		n.T.Fatal(err)
	}
	n.T.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			p, err := l.AcceptPending()
			if err != nil {
				return
			}
			decide(p)
		}
	}()
}

// TestRefusedDials has the controller, and hosts, refuse dials for every reason:
// a client of whoever's hears it from our router in the headers that it reads,
// and ours shows the same.
func TestRefusedDials(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	empty, sealed, shy, broken := n.AddService("empty", false), n.AddService("sealed", true), n.AddService("shy", false), n.AddService("broken", false)
	dead := leaves(n, router, "dead", "tcp:127.0.0.1:"+machine.Port(t))
	host := n.Client(n.AddIdentity("host"))
	n.Echo(host, sealed)
	answering(n, host, shy, func(p *sdk.Pending) { p.Refuse("not you") })
	answering(n, host, broken, func(p *sdk.Pending) { p.Fail("not today") })
	user := n.AddIdentity("user")
	r, other := login(t, n, user), login(t, n, n.AddIdentity("other"))
	conn, err := r.connect(router, r.token)
	must(t, err)
	seq := int32(4)
	for what, test := range map[string]struct {
		token string
		want  *message.Refusal
	}{
		"nobody hosts":                {r.session(empty, "Dial"), message.Refuse(message.CodeInvalidTerminator, "")},
		"a session to host":           {r.session(sealed, "Bind"), message.Refuse(message.CodeWrongSessionType, "")},
		"no session at all":           {"nonsense", message.Refuse(message.CodeInvalidSession, "")},
		"the session of another":      {other.session(sealed, "Dial"), message.Refuse(message.CodeInvalidAPISession, "")},
		"no encryption":               {r.session(sealed, "Dial"), message.Refuse(message.CodeEncryptionMissing, "")},
		"the host does not want it":   {r.session(shy, "Dial"), message.Unreached(message.RouteRejected, "")},
		"the host cannot take it":     {r.session(broken, "Dial"), message.Unreached(message.RouteRefused, "")},
		"nothing listens":             {r.session(dead, "Dial"), message.Unreached(message.RouteRefused, "")},
		"a token that cannot be":      {strings.Repeat("x", 5000), &message.Refusal{Code: message.CodeInternal, Retry: message.RetryNever}},
		"a number that nobody may be": {"", &message.Refusal{Code: message.CodeInternal, Retry: message.RetryNever}},
	} {
		seq++
		id := uint32(seq)
		if test.token == "" {
			id = message.FirstAssigned
		}
		answer := ask(t, conn, &wire.Frame{Type: message.TypeConnect, Seq: seq, Headers: numbered(id), Body: []byte(test.token)})
		isRefusal(t, what, answer, test.want)
		if test.want.Code == message.CodeInvalidSession && string(answer.Body) != "Invalid Session" {
			t.Errorf("%s: the words are %q", what, answer.Body)
		}
	}
	c := n.Client(user)
	for service, want := range map[string]struct {
		kind       error
		code, says string
	}{
		empty:  {sdk.ErrNoHost, "INVALID_TERMINATOR", "nobody hosts the service " + empty + " at present"},
		shy:    {sdk.ErrRefused, "HOST_REJECTED", "not you (HOST_REJECTED)"},
		broken: {sdk.ErrUnreachable, "HOST_UNREACHABLE", "not today (HOST_UNREACHABLE)"},
		dead:   {sdk.ErrUnreachable, "HOST_UNREACHABLE", "(HOST_UNREACHABLE)"},
	} {
		_, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
		if !errors.Is(err, want.kind) || sdk.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
			t.Errorf("a dial of %s: %v (%s), want %+v", service, err, sdk.CodeOf(err), want)
		}
	}
}

// TestRefusedHosts has the controller refuse hosts: clients of others learn what
// to do about it, and ours does not try for ever what cannot be.
func TestRefusedHosts(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("echo", false)
	r := login(t, n, n.AddIdentity("evil"))
	conn, err := r.connect(router, r.token)
	must(t, err)
	host := func(seq int32, id uint32, token string) *wire.Frame {
		t.Helper()
		h := numbered(id)
		if answer := ask(t, conn, &wire.Frame{Type: message.TypeBind, Seq: seq, Headers: h, Body: []byte(token)}); answer.Type != message.TypeConnected {
			return answer
		}
		return next(t, conn)
	}
	isRefusal(t, "a session to dial", host(5, 5, r.session(service, "Dial")), message.Refuse(message.CodeWrongSessionType, ""))
	isRefusal(t, "no session", host(6, 6, "nonsense"), message.Refuse(message.CodeInvalidSession, ""))
	token := r.session(service, "Bind")
	bound(t, conn, 7, 7, token, "listener", wire.Headers{})
	isRefusal(t, "a number that is taken", host(8, 7, token), &message.Refusal{Code: message.CodeInternal, Retry: message.RetryNever})

	named := sdk.ListenOptions{Instance: "me", Secret: []byte("mine")}
	l, err := n.Client(n.AddIdentity("first")).Listen(within(t, networktest.Soon), service, named)
	must(t, err)
	defer l.Close()
	named.Secret = []byte("yours")
	began := time.Now()
	_, err = n.Client(n.AddIdentity("second")).Listen(within(t, networktest.Soon), service, named)
	if !errors.Is(err, sdk.ErrRefused) || sdk.CodeOf(err) != "INVALID_INSTANCE" || !strings.Contains(err.Error(), "another host has this name") {
		t.Errorf("a name that another host has: %v (%s), after %s", err, sdk.CodeOf(err), time.Since(began))
	}
}

// TestSessionOver takes sessions away from who dials and hosts with them: clients
// of others are told to begin anew, and a program of ours that reads does not
// take it for the end of what was sent.
func TestSessionOver(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	hosting := n.Client(n.AddIdentity("host"))
	user := n.AddIdentity("user")
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			service := n.AddService("over "+name, true)
			n.Echo(hosting, service)
			conn, err := n.Client(user, mode).Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
			must(t, err)
			defer conn.Close()
			must(t, conn.SetDeadline(time.Now().Add(networktest.Soon)))
			send(t, conn, "before")
			buf := make([]byte, 10)
			if got, err := conn.Read(buf); err != nil || string(buf[:got]) != "before" {
				t.Fatalf("heard %q: %v", buf[:got], err)
			}
			deleteSessions(n, service, "Dial")
			if _, err := conn.Read(buf); !errors.Is(err, sdk.ErrSession) || sdk.CodeOf(err) != "INVALID_SESSION" {
				t.Errorf("the session is over, and a read says %v (%s)", err, sdk.CodeOf(err))
			}
		})
	}
	service := n.AddService("hosted", false)
	r := login(t, n, n.AddIdentity("other"))
	conn, err := r.connect(router, r.token)
	must(t, err)
	bound(t, conn, 5, 1, r.session(service, "Bind"), "listener", wire.Headers{})
	deleteSessions(n, service, "Bind")
	isRefusal(t, "the session to host is over", next(t, conn), message.Refuse(message.CodeInvalidSession, ""))
}

// TestRefusedByCode has a router refuse dials with every code, whatever it says in
// words, and as routers of others do, with none: only the code counts.
func TestRefusedByCode(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	empty, user := n.AddService("empty", false), n.AddIdentity("user")
	f := forge(t, router, login(t, n, user))
	c := n.Client(user)
	const words = "nobody hosts the service at present: Invalid Session"
	for _, test := range []struct {
		said *message.Refusal
		kind error
		code string
	}{
		{&message.Refusal{}, sdk.ErrRefused, ""},
		{message.Refuse(message.CodeInternal, ""), sdk.ErrRefused, "INTERNAL"},
		{message.Busy(""), sdk.ErrBusy, "BUSY"},
		{message.Refuse(message.CodeInvalidAPISession, ""), sdk.ErrSession, "INVALID_API_SESSION"},
		{message.Refuse(message.CodeInvalidSession, ""), sdk.ErrSession, "INVALID_SESSION"},
		{message.Refuse(message.CodeWrongSessionType, ""), sdk.ErrSession, "WRONG_SESSION_TYPE"},
		{message.Refuse(message.CodeRouterNotAllowed, ""), sdk.ErrDenied, "ROUTER_NOT_ALLOWED"},
		{message.Refuse(message.CodeInvalidService, ""), sdk.ErrNoService, "INVALID_SERVICE"},
		{message.Refuse(message.CodeTunnelingNotEnabled, ""), sdk.ErrDenied, "TUNNELING_NOT_ENABLED"},
		{message.Refuse(message.CodeInvalidTerminator, ""), sdk.ErrNoHost, "INVALID_TERMINATOR"},
		{message.Refuse(message.CodeInvalidPrecedence, ""), sdk.ErrRefused, "INVALID_PRECEDENCE"},
		{message.Refuse(message.CodeInvalidCost, ""), sdk.ErrRefused, "INVALID_COST"},
		{message.Refuse(message.CodeEncryptionMissing, ""), sdk.ErrRefused, "ENCRYPTION_MISSING"},
		{message.Refuse(message.CodeInvalidAPIType, ""), sdk.ErrSession, "INVALID_API_SESSION_TYPE"},
		{message.Refuse(message.CodeInvalidInstance, ""), sdk.ErrRefused, "INVALID_INSTANCE"},
		{message.Refuse(message.CodeAccessDenied, ""), sdk.ErrDenied, "ACCESS_DENIED"},
		{message.Refuse(message.CodePostureFailed, ""), sdk.ErrDenied, "POSTURE_FAILED"},
		{message.Refuse(99, ""), sdk.ErrRefused, "CODE_99"},
		{message.Unreached(message.RouteFailed, ""), sdk.ErrUnreachable, "HOST_FAILED"},
		{message.Unreached(message.RouteInvalidTerminator, ""), sdk.ErrNoHost, "HOST_UNKNOWN"},
		{message.Unreached(message.RouteMisconfigured, ""), sdk.ErrRefused, "HOST_MISCONFIGURED"},
		{message.Unreached(message.RouteTimeout, ""), sdk.ErrUnreachable, "HOST_TIMED_OUT"},
		{message.Unreached(message.RouteRefused, ""), sdk.ErrUnreachable, "HOST_UNREACHABLE"},
		{message.Unreached(message.RouteRejected, ""), sdk.ErrRefused, "HOST_REJECTED"},
		{message.Unreached(message.RouteNoName, ""), sdk.ErrUnreachable, "HOST_NAME_UNKNOWN"},
		{message.Unreached(message.RoutePortNotAllowed, ""), sdk.ErrRefused, "HOST_PORT_NOT_ALLOWED"},
		{message.Unreached(message.RouteInvalidLink, ""), sdk.ErrBusy, "NO_LINK"},
		{message.Unreached(message.RouteNoRoom, ""), sdk.ErrBusy, "HOST_FULL"},
	} {
		f.does(func(frame *wire.Frame) {
			if frame.Type != message.TypeClosed {
				return
			}
			for _, key := range []int32{1014, 1033, 1104} {
				delete(frame.Headers, key)
			}
			maps.Copy(frame.Headers, test.said.Closed(true).Headers)
			frame.Body = []byte(words)
		})
		_, err := c.Dial(within(t, networktest.Soon), empty, sdk.DialOptions{})
		if !errors.Is(err, test.kind) || sdk.CodeOf(err) != test.code {
			t.Errorf("code %q is shown as %v (%s)", test.code, err, sdk.CodeOf(err))
		}
		for _, kind := range []error{sdk.ErrNoHost, sdk.ErrSession, sdk.ErrBusy, sdk.ErrDenied, sdk.ErrNoService, sdk.ErrRefused, sdk.ErrUnreachable} {
			if kind != test.kind && errors.Is(err, kind) {
				t.Errorf("code %q is %v too", test.code, kind)
			}
		}
		if test.code == "" && !strings.Contains(err.Error(), words) {
			t.Errorf("a refusal without a code does not show its words: %v", err)
		}
	}
}
