package fabric

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestOnline has routers of both generations connect, and one leave.
func TestOnline(t *testing.T) {
	s := servertest.Start(t)
	for _, grouped := range []bool{false, true} {
		r := addRouter(t, s)
		shown := func() M { return s.Admin(t).Get(management + "edge-routers/" + r.ID).Want(200).Data() }
		if shown()["isOnline"] != false {
			t.Error("it is online before it connects")
		}
		begun := time.Now().Add(-time.Millisecond) // answers leave out what is less
		c := r.Connect(t, func(o *scripted.Options) { o.Grouped = grouped })
		for _, h := range []int32{message.HeaderOldCapabilities, message.HeaderCapabilities} {
			if mask := c.Welcome[h]; len(mask) != 1 || mask[0] != 0x6e {
				t.Errorf("the controller can do % x", mask)
			}
		}
		servertest.Eventually(t, soon, "it is in step", func() bool { return shown()["syncStatus"] == "SYNC_DONE" })
		got := shown()
		version := got["versionInfo"].(M)
		if got["isOnline"] != true || got["supportedProtocols"].(M)["tls"] != "tls://127.0.0.1:3022" || version["version"] != "v1.6.20" || version["arch"] != "amd64" {
			t.Errorf("it is shown as %v", got)
		}
		since, err := time.Parse(time.RFC3339, fmt.Sprint(got["onlineSince"]))
		if err != nil || since.Before(begun) || since.After(time.Now()) || got["controllerId"] != string(c.Welcome[message.HeaderListenerID]) {
			t.Errorf("it is online since %v at %v", got["onlineSince"], got["controllerId"])
		}
		if grouped {
			secret := c.Welcome[message.HeaderGroupSecret]
			if err := c.Widen(t.Context(), []byte("guessed")); err == nil {
				t.Error("a socket joined with a wrong secret")
			}
			if err := c.Widen(t.Context(), secret); err != nil {
				t.Errorf("a second socket: %v", err)
			}
		}
		c.Close()
		servertest.Eventually(t, soon, "it is offline", func() bool { return shown()["isOnline"] == false })
		got = shown()
		if _, says := got["onlineSince"]; says || got["controllerId"] != nil {
			t.Errorf("offline, it is shown as %v", got)
		}
	}
}

// TestShutOut cuts routers off, and keeps them out with what they had.
func TestShutOut(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	for name, shut := range map[string]func(id string){
		"disabled":    func(id string) { admin.Patch(management+"edge-routers/"+id, M{"disabled": true}).Want(200) },
		"deleted":     func(id string) { admin.Delete(management + "edge-routers/" + id).Want(200) },
		"re-enrolled": func(id string) { admin.Post(management+"edge-routers/"+id+"/re-enroll", nil).Want(200) },
	} {
		t.Run(name, func(t *testing.T) {
			r := addRouter(t, s)
			c := r.Connect(t)
			shut(r.ID)
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			select {
			case <-c.Done():
			case <-ctx.Done():
				t.Fatal("its connection goes on")
			}
			if again, err := scripted.Connect(ctx, r.Options()); err == nil {
				again.Close()
				t.Error("it comes back")
			}
		})
	}
}

// TestRoutersNeedNotGiveWay has more strangers connect than there is room for.
func TestRoutersNeedNotGiveWay(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Limits.Connections = 100 })
	c := addRouter(t, s).Connect(t)
	for range 300 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := c.Request(ctx, &wire.Frame{Type: message.TypePing}); err != nil {
		t.Errorf("the router was cut off: %v", err)
	}
}

// TestOwnPort gives routers a port of their own: they are told of it, and no
// other takes them.
func TestOwnPort(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Routers.Listen = "127.0.0.1:0" })
	r := addRouter(t, s)
	own := s.RouterAddress()
	if own == s.Address() {
		t.Fatalf("routers are to use %s", own)
	}
	invited := s.Admin(t).Post(management+"edge-routers", M{"name": servertest.Unique("router")}).Want(201).ID()
	jwt := s.Admin(t).Get(management + "edge-routers/" + invited).At("data.enrollmentJwt").(string)
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(jwt, ".")[1])
	if err != nil || !strings.Contains(string(claims), `"ctrls":["tls:`+own+`"]`) {
		t.Errorf("an invitation says %s: %v", claims, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := scripted.Connect(ctx, r.Options()); err == nil {
		t.Error("the port of clients takes a router")
	}
	r.Connect(t, func(o *scripted.Options) { o.Address = own })
}

// TestStopWithRouters stops a controller that has routers: it does not wait for
// them. That a stop takes too long is what its end complains of.
func TestStopWithRouters(t *testing.T) {
	for name, address := range map[string]string{"with clients": "", "of their own": "127.0.0.1:0"} {
		var c *scripted.Router
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, func(c *config.Config) { c.Routers.Listen = address })
			opt := addRouter(t, s).Options()
			opt.Address = s.RouterAddress()
			var err error
			if c, err = scripted.Connect(context.Background(), opt); err != nil {
				t.Fatal(err)
			}
		})
		select {
		case <-c.Done():
		case <-time.After(soon):
			t.Errorf("%s: the router is still connected", name)
		}
	}
}

// TestSkewedClock has routers connect whose clocks are minutes behind or ahead.
func TestSkewedClock(t *testing.T) {
	s := servertest.Start(t)
	for _, skew := range []time.Duration{-9 * time.Minute, 9 * time.Minute} {
		r := addRouter(t, s)
		r.Connect(t, func(o *scripted.Options) {
			o.TLS.Time = func() time.Time { return time.Now().Add(skew) }
		})
	}
}

// TestFormerConnection has a router of the first generation connect once more for a
// connection that it has given up: it goes on to dial for one that was lost, also when
// it has another since, and then neither reads from it nor says anything. The one that
// it uses stays.
func TestFormerConnection(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	// again connects for the channel with an id, and only says hello.
	again := func(id string) (_ *tls.Conn, now string) {
		t.Helper()
		opt := r.Options()
		opt.TLS.NextProtos = []string{message.ALPN}
		conn, err := tls.Dial("tcp", opt.Address, opt.TLS)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		h := wire.Headers{}
		h.SetText(message.HeaderVersion, "v1.6.0|abc|2025-05-12 15:08:20|linux|amd64")
		h.SetText(message.HeaderConnectionID, id)
		welcome, err := channel.Greet(conn, time.Now().Add(soon), channel.Hello{ID: r.ID, Headers: h})
		if err != nil {
			t.Fatal(err)
		}
		return conn, welcome.Text(message.HeaderConnectionID)
	}
	say := func(conn *tls.Conn, typ int32) {
		t.Helper()
		if _, err := conn.Write((&wire.Frame{Type: typ, Seq: 1}).Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
	over := func(done <-chan struct{}, what string) {
		t.Helper()
		select {
		case <-done:
		case <-time.After(soon):
			t.Fatal(what)
		}
	}
	gone := func(conn *tls.Conn) {
		t.Helper()
		_ = conn.SetReadDeadline(time.Now().Add(soon))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection stays that was continued")
		}
	}
	answers := func(what string) {
		t.Helper()
		got := s.Admin(t).Post(fabricAPI+"inspections", M{"appRegex": r.ID, "requestedValues": []string{"links"}}).Want(200)
		if values, _ := got.JSON.(M)["values"].([]any); len(values) != 1 {
			t.Fatalf("%s: the router says %v", what, got.JSON)
		}
	}
	used := r.Connect(t)
	answers("before")
	former, _ := again("one of before")
	say(former, message.TypeProbe) // which is all that one may say that nobody uses
	answers("with a connection that was given up")

	say(former, message.TypeRouterLinks)
	over(used.Done(), "a connection stays after its router has used another")

	// One that is lost is continued at once, as is one whose welcome was lost.
	used = r.Connect(t)
	answers("anew")
	id := used.Welcome.Text(message.HeaderConnectionID)
	second, _ := again(id)
	over(used.Done(), "a connection stays that was continued")
	third, now := again(id)
	gone(second)
	again(now)
	gone(third)

	// Nobody has more than one that it does not use, nor keeps it when it is shut out.
	used = r.Connect(t)
	left := make(chan error, 2)
	for _, id := range []string{"one of before", "another of before"} {
		conn, _ := again(id)
		_ = conn.SetReadDeadline(time.Now().Add(soon))
		go func() {
			_, err := io.Copy(io.Discard, conn)
			left <- err
		}()
	}
	if err := <-left; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a router has two connections that it does not use")
	}
	s.Admin(t).Patch("edge-routers/"+r.ID, M{"disabled": true}).Want(200)
	if err := <-left; errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("a connection stays of a router that was shut out")
	}
	over(used.Done(), "a router stays that was shut out")
}
