package transit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/networktest"
)

// modes are who holds the flow of connections.
var modes = map[string]func(*sdk.Options){
	"held here":       func(o *sdk.Options) { o.Plain = false },
	"held by routers": func(o *sdk.Options) { o.Plain = true },
}

// pairOf returns both ends of a connection.
func pairOf(t *testing.T, c *sdk.Client, l *sdk.Listener, service string) (near, far *sdk.Conn) {
	t.Helper()
	came := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept()
		came <- conn
	}()
	near, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{Caller: "Default Admin", Data: []byte("data")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	conn := <-came
	if conn == nil {
		t.Fatal("nobody came")
	}
	t.Cleanup(func() { _ = conn.Close() })
	return near, conn.(*sdk.Conn)
}

// TestConn holds connections to what net.Conn promises.
func TestConn(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			service := n.AddService("conn "+name, true)
			c := n.Client(user, mode)
			l, err := n.Client(host, mode).Listen(within(t, networktest.Soon), service, sdk.ListenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			near, far := pairOf(t, c, l, service)
			if i := far.Info(); i.Caller != "Default Admin" || string(i.Data) != "data" || i.Service != service || i.Circuit == "" || i.Circuit != near.Info().Circuit {
				t.Errorf("the host knows %+v", i)
			}
			if i := far.Info(); i.Dialer != user.ID || far.RemoteAddr().String() != user.Name {
				t.Errorf("%s (%s) calls itself %q, and the host is told of %q (%q)", user.Name, user.ID, i.Caller, far.RemoteAddr(), i.Dialer)
			}
			buf := make([]byte, 100)
			_ = near.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := near.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a read that took too long: %v", err)
			}
			_ = near.SetReadDeadline(time.Time{})
			send(t, far, "after all")
			if got, err := near.Read(buf[:5]); string(buf[:got]) != "after" || err != nil {
				t.Errorf("read %q, %v", buf[:got], err)
			}
			if got, err := near.Read(buf); string(buf[:got]) != " all" || err != nil {
				t.Errorf("then %q, %v", buf[:got], err)
			}
			if err := near.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if _, err := near.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a write behind the end: %v", err)
			}
			if got, err := far.Read(buf); got != 0 || err != io.EOF {
				t.Errorf("the other end reads %q, %v", buf[:got], err)
			}
			send(t, far, "the other way")
			if got, err := near.Read(buf); string(buf[:got]) != "the other way" || err != nil {
				t.Errorf("read %q, %v", buf[:got], err)
			}
			waits := make(chan error, 1)
			go func() {
				_, err := near.Read(make([]byte, 1))
				waits <- err
			}()
			if err := near.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-waits; !errors.Is(err, net.ErrClosed) {
				t.Errorf("who waits for a connection that is closed: %v", err)
			}
			// Who was left learns of it.
			n.Eventually("a write fails", func() bool {
				_, err := far.Write(buf)
				return err != nil
			})
		})
	}
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// TestLostIsNoEnd takes the router away in the middle, or who speaks: nobody takes
// what came for all.
func TestLostIsNoEnd(t *testing.T) {
	lost := map[string]func(*networktest.Network, *networktest.Router, networktest.Identity){
		"the router": func(_ *networktest.Network, r *networktest.Router, _ networktest.Identity) { r.Stop() },
		"its API session": func(n *networktest.Network, _ *networktest.Router, host networktest.Identity) {
			if endSessions(n, host) == 0 {
				n.T.Fatal("there was no API session")
			}
		},
	}
	for name, mode := range modes {
		for what, lose := range lost {
			t.Run(name+"/"+what, func(t *testing.T) {
				n := networktest.New(t, shared)
				r := n.AddRouter("one")
				user, host := n.AddIdentity("user"), n.AddIdentity("host")
				service := n.AddService("lost", true)
				l, err := n.Client(host, mode).Listen(within(t, networktest.Soon), service, sdk.ListenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				near, far := pairOf(t, n.Client(user, mode), l, service)
				send(t, far, "half of it")
				buf := make([]byte, 100)
				if got, err := near.Read(buf); string(buf[:got]) != "half of it" || err != nil {
					t.Fatalf("read %q, %v", buf[:got], err)
				}
				lose(n, r, host)
				_ = near.SetReadDeadline(time.Now().Add(networktest.Soon))
				if _, err := near.Read(buf); err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("that %s is gone is read as %v", what, err)
				}
			})
		}
	}
}

// TestManyAtOnce dials often over one socket.
func TestManyAtOnce(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	service := n.AddService("many", true)
	l := n.Echo(n.Client(host), service)
	if got := l.Addr().String(); got != service {
		t.Errorf("the address is %q", got)
	}
	c := n.Client(user)
	var all sync.WaitGroup
	for range 40 { // fewer than may wait to be accepted
		all.Go(func() {
			if err := exchange(within(t, networktest.Soon), c, service, 20_000); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// endSessions ends whatever API sessions an identity has.
func endSessions(n *networktest.Network, i networktest.Identity) int {
	n.T.Helper()
	list := n.Admin.Get(networktest.Management + "api-sessions?filter=" + url.QueryEscape(fmt.Sprintf("identity=%q", i.ID))).Want(200).List()
	for _, s := range list {
		n.Admin.Delete(networktest.Management + "api-sessions/" + s["id"].(string)).Want(200)
	}
	return len(list)
}

// TestSessionsEnded has an admin end the API sessions of both ends: they log in
// again, and go on.
func TestSessionsEnded(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	service := n.AddService("again", true)
	n.Echo(n.Client(host), service)
	c := n.Client(user)
	for range 2 {
		if err := exchange(within(t, networktest.Soon), c, service, 1000); err != nil {
			t.Fatal(err)
		}
		if ended := endSessions(n, user) + endSessions(n, host); ended < 2 {
			t.Fatalf("there were %d API sessions", ended)
		}
		n.Eventually("it works again", func() bool { return exchange(within(t, networktest.Soon), c, service, 1000) == nil })
	}
	if got := len(n.Admin.Get(networktest.Management + "terminators?filter=" + url.QueryEscape(fmt.Sprintf("service.name=%q", service))).Want(200).List()); got != 1 {
		t.Errorf("the service is hosted %d times", got)
	}
}

// TestHostedAtSeveral hosts at three of four routers, and at others when one is
// lost.
func TestHostedAtSeveral(t *testing.T) {
	n := networktest.New(t, shared)
	var routers []*networktest.Router
	for _, name := range []string{"a", "b", "c", "d"} {
		routers = append(routers, n.AddRouter(name))
	}
	host := n.AddIdentity("host")
	service := n.AddService("several", true)
	n.Echo(n.Client(host), service)
	at := func() map[string]bool {
		all := map[string]bool{}
		for _, term := range n.Admin.Get(networktest.Management + "terminators?filter=" + url.QueryEscape(fmt.Sprintf("service.name=%q", service))).Want(200).List() {
			all[term["routerId"].(string)] = true
		}
		return all
	}
	n.Eventually("it is hosted at three", func() bool { return len(at()) == 3 })
	for _, r := range routers {
		if at()[r.ID] {
			r.Stop()
			// What the controller knows of a router that is away may stay.
			n.Eventually("it is hosted at three others", func() bool { now := at(); delete(now, r.ID); return len(now) == 3 })
			break
		}
	}
}

// TestSeldomAsked has a client host several services at fewer routers than it
// would: it does not ask for leave again and again, and yet finds a router that is
// new.
func TestSeldomAsked(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	host := n.AddIdentity("host")
	services := []string{n.AddService("first", true), n.AddService("second", true)}
	c := n.Client(host, func(o *sdk.Options) { o.Poll = 20 * time.Millisecond })
	for _, service := range services {
		n.Echo(c, service)
	}
	at := func() (all int) {
		for _, service := range services {
			all += len(n.Admin.Get(networktest.Management + "terminators?filter=" + url.QueryEscape(fmt.Sprintf("service.name=%q", service))).Want(200).List())
		}
		return all
	}
	asked := func(operation string) (times int) {
		for _, line := range shared.Log() {
			if strings.Contains(line, fmt.Sprintf(`"operation":%q`, operation)) && strings.Contains(line, "identity:"+host.ID) {
				if times++; operation != "createSession" && !strings.Contains(line, `"level":"DEBUG"`) {
					t.Fatalf("of a poll the log says %s", line)
				}
			}
		}
		return times
	}
	looks := func(more int) {
		t.Helper()
		enough := asked("getCurrentIdentityEdgeRouters") + more
		n.Eventually("it has looked several times", func() bool { return asked("getCurrentIdentityEdgeRouters") >= enough })
	}
	n.Eventually("both are hosted", func() bool { return at() == 2 })
	looks(3)
	before := asked("createSession")
	looks(10)
	if now := asked("createSession"); now != before {
		t.Errorf("it asked for leave %d times more", now-before)
	}
	asked("listServiceUpdates")
	n.AddRouter("two")
	n.Eventually("both are hosted at both", func() bool { return at() == 4 })
}

// TestLeavingRouter dials while the router that a client is connected to is about
// to stop: what is connected stays, and what is new goes over another.
func TestLeavingRouter(t *testing.T) {
	n := networktest.New(t, shared)
	one := n.AddRouter("one")
	service := n.AddService("echo", true)
	host := n.Client(n.AddIdentity("host"), func(o *sdk.Options) { o.Poll = 20 * time.Millisecond })
	n.Echo(host, service)
	c := n.Client(n.AddIdentity("dialer"))
	dial := func() *sdk.Conn {
		t.Helper()
		conn, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		send(t, conn, "hello")
		if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	begins := func(conn *sdk.Conn) string {
		t.Helper()
		path := n.Admin.Get("/fabric/v1/circuits/" + conn.Info().Circuit).Want(200).At("data.path.nodes").([]any)
		return path[0].(M)["id"].(string)
	}
	first := dial()
	two := n.AddRouter("two")
	n.Eventually("it is hosted at both", func() bool {
		return len(n.Admin.Get(networktest.Management+"terminators?filter="+url.QueryEscape(fmt.Sprintf("service.name=%q", service))).Want(200).List()) == 2
	})
	if err := shared.State().Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		return model.Routers.Edit(tx, one.ID, func(r *model.Router) error { r.Quiesced = true; return nil })
	}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if at := begins(dial()); at != two.ID {
			t.Errorf("a new circuit begins at %s", at)
		}
	}
	send(t, first, "still")
	if _, err := io.ReadFull(first, make([]byte, 5)); err != nil {
		t.Errorf("what was connected has ended: %v", err)
	}
}

// TestFollowed sees services come and go.
func TestFollowed(t *testing.T) {
	n := networktest.New(t, shared)
	user := n.AddIdentity("user")
	c := n.Client(user)
	none, changed := c.Services()
	if len(none) != 0 {
		t.Fatalf("there are %d services", len(none))
	}
	service := n.AddService("new", true)
	n.Eventually("it is seen", func() bool {
		if all, _ := c.Services(); len(all) != 1 || !all[0].Dial || !all[0].Bind {
			return false
		}
		select {
		case <-changed:
			return true
		default:
			return false
		}
	})
	if _, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{}); !errors.Is(err, sdk.ErrNoRouter) {
		t.Errorf("a dial without routers: %v", err)
	}
}

// TestSecondFactor has an identity that needs more than its certificate.
func TestSecondFactor(t *testing.T) {
	n := networktest.New(t, shared)
	user := n.AddIdentity("user")
	policy := n.Admin.Post(networktest.Management+"auth-policies", M{
		"name": n.Word,
		"primary": M{
			"cert":   M{"allowed": true, "allowExpiredCerts": false},
			"updb":   M{"allowed": false, "lockoutDurationMinutes": 0, "maxAttempts": 0, "minPasswordLength": 5, "requireMixedCase": false, "requireNumberChar": false, "requireSpecialChar": false},
			"extJwt": M{"allowed": false, "allowedSigners": []string{}},
		},
		"secondary": M{"requireTotp": true, "requireExtJwtSigner": nil},
	}).Want(201).ID()
	n.Admin.Patch(networktest.Management+"identities/"+user.ID, M{"authPolicyId": policy}).Want(200)
	_, err := sdk.Open(t.Context(), sdk.Options{Identity: user.File, Now: time.Now})
	if !errors.Is(err, sdk.ErrFactor) || !strings.Contains(err.Error(), "needs a second factor") {
		t.Errorf("%v", err)
	}
	n.Admin.Delete(networktest.Management + "identities/" + user.ID).Want(200)
	if _, err := sdk.Open(t.Context(), sdk.Options{Identity: user.File, Now: time.Now}); !errors.Is(err, sdk.ErrDenied) || !strings.Contains(err.Error(), "does not let the identity in") {
		t.Errorf("an identity that was deleted: %v", err)
	}
}

// TestNothingStays closes a client with all that it does: no goroutine of it is
// left.
func TestNothingStays(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	service := n.AddService("left", true)
	n.Echo(n.Client(host), service)
	for name, mode := range modes {
		before := goleak.IgnoreCurrent()
		opt := sdk.Options{Identity: user.File, Now: time.Now}
		mode(&opt)
		c, err := sdk.Open(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := exchange(within(t, networktest.Soon), c, service, 100_000); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{}); err != nil { // and never closed
			t.Fatal(err)
		}
		if _, err := c.Listen(within(t, networktest.Soon), service, sdk.ListenOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		n.Eventually("nothing is left: "+name, func() bool { return ours(goleak.Find(before)) == "" })
	}
}

// ours is what goroutines of clients do that are left.
func ours(err error) string {
	if err == nil || !strings.Contains(err.Error(), "transit/client.") {
		return ""
	}
	return err.Error()
}

// TestMadeAgain deletes a service that is hosted and makes it again under its
// name, open this time: who listens hosts that.
func TestMadeAgain(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	service := n.AddService("again", true)
	n.Echo(n.Client(host), service)
	c := n.Client(user)
	works := func() bool { return exchange(within(t, networktest.Soon), c, service, 1000) == nil }
	n.Eventually("it works", works)
	for _, kind := range []string{"service-policies", "services"} {
		for _, rec := range n.Admin.Get(networktest.Management + kind + "?filter=" + url.QueryEscape(fmt.Sprintf("name contains %q", service))).Want(200).List() {
			n.Admin.Delete(networktest.Management + kind + "/" + rec["id"].(string)).Want(200)
		}
	}
	n.Eventually("it is gone", func() bool { all, _ := c.Services(); return len(all) == 0 })
	n.AddService("again", false)
	n.Eventually("it works again", works)
}
