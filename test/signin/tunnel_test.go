package signin

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// echo is a server that says what it is told.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// freePort is one that nobody has, of those that the system does not give out by itself.
// Nobody is told the same one before the test ends: it stays taken at another address.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20_000 + rand.IntN(12_000))
		claim, err := net.ListenPacket("udp", "127.0.0.2:"+port)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close()
			t.Cleanup(func() { _ = claim.Close() })
			return port
		}
		_ = claim.Close()
	}
	t.Fatal("there is no port")
	return ""
}

// serve has a service that ann may dial, and somebody who hosts it.
func (w *world) serve() {
	w.t.Helper()
	w.good("admin", "create", "config", "here", "--config-type", "host.v1", "--data", "{protocol: tcp, address: 127.0.0.1, port: "+echo(w.t)+"}")
	w.good("admin", "create", "service", "wiki", "--configs", "here")
	w.good("admin", "create", "service-policy", "dial", "--type", "Dial", "--identity-roles", "#staff", "--service-roles", "@wiki")
	w.good("admin", "create", "service-policy", "host", "--type", "Bind", "--identity-roles", "#servers", "--service-roles", "@wiki")
	token, file := filepath.Join(w.dir, "server.jwt"), filepath.Join(w.dir, "server.json")
	w.good("admin", "invite", "server", "--roles", "servers", "--save", token)
	w.good("admin", "enroll", token, "-o", file)
	w.command("server", false, "tunnel", "host", "--identity", file).says(`is hosted`)
}

// dial connects through a port of a tunneler.
func dial(t *testing.T, port string) (net.Conn, *bufio.Reader) {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); ; {
		conn, lines, err := attempt(port)
		if err == nil {
			t.Cleanup(func() { _ = conn.Close() })
			if said(conn, lines, "hello") == nil {
				return conn, lines
			}
			_ = conn.Close()
		}
		if time.Now().After(late) {
			t.Fatalf("the port %s leads nowhere: %v", port, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// attempt is dial, once.
func attempt(port string) (net.Conn, *bufio.Reader, error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		return nil, nil, err
	}
	return conn, bufio.NewReader(conn), nil
}

// said tells an echo something and hears it.
func said(conn net.Conn, lines *bufio.Reader, text string) error {
	if _, err := io.WriteString(conn, text+"\n"); err != nil {
		return err
	}
	got, err := lines.ReadString('\n')
	if err == nil && got != text+"\n" {
		err = fmt.Errorf("the echo is %q", got)
	}
	return err
}

// TestTunnel uses a service as somebody who has signed in and has no file. What is
// connected goes on when the token ends that it was connected with.
func TestTunnel(t *testing.T) {
	const life = 12 * time.Second // which are over once in this test
	w := start(t, life)
	w.serve()
	port := freePort(t)
	began := time.Now()
	tunnel := w.command("ann", true, "tunnel", "proxy", "--sso", w.address, "--ca", filepath.Join(w.data(), "pki", "root.crt"), "--poll", "500ms", "wiki:"+port)
	tunnel.says(`an identity is in use`)
	conn, lines := dial(t, port)
	for time.Since(began) < life+3*time.Second {
		if err := said(conn, lines, "still there"); err != nil {
			t.Fatalf("after %v: %v\n%s", time.Since(began), err, tunnel.said)
		}
		<-time.After(100 * time.Millisecond)
	}
	if n := w.p.store.renewed.Load(); n == 0 {
		t.Error("the provider was not asked for newer tokens")
	}
	if ids := w.sessions("ann"); len(ids) != 1 {
		t.Errorf("there are %d sessions", len(ids))
	}
	if at := jwt.FindString(tunnel.said.String()); at != "" {
		t.Errorf("a token is in the tunneler's log: %s", at)
	}
	w.good("admin", "disable", "identity", "ann")
	if err := said(conn, lines, "and now"); err == nil {
		for late := time.Now().Add(time.Minute); said(conn, lines, "and now") == nil; {
			if time.Now().After(late) {
				t.Fatal("it goes on for who was disabled")
			}
		}
	}
}

// TestSignedOut has somebody sign out while a tunneler acts for them: what is connected ends,
// and begins again when they sign in.
func TestSignedOut(t *testing.T) {
	w := start(t, time.Hour)
	w.serve()
	port := freePort(t)
	tunnel := w.command("ann", true, "tunnel", "proxy", "--sso", w.address, "--ca", filepath.Join(w.data(), "pki", "root.crt"), "--poll", "500ms", "wiki:"+port)
	tunnel.says(`an identity is in use`)
	conn, lines := dial(t, port)
	w.good("ann", "logout")
	for late := time.Now().Add(time.Minute); said(conn, lines, "and now") == nil; <-time.After(50 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it goes on for who has signed out\n%s", tunnel.said)
		}
	}
	if ids := w.sessions("ann"); len(ids) != 0 {
		t.Errorf("there are %d sessions", len(ids))
	}
	tunnel.says(`you are not signed in; run: netkeep login \S+ --sso`)
	if text, code := w.signIn("ann"); code != 0 {
		t.Fatalf("%d: %s", code, text)
	}
	dial(t, port)
}

// TestSecond logs in with a certificate where the policy wants a token besides.
func TestSecond(t *testing.T) {
	w := start(t, 20*time.Second)
	w.serve()
	w.good("admin", "create", "auth-policy", "both", "--primary-cert-allowed=true", "--secondary-require-ext-jwt-signer", "Corp")
	token, file := filepath.Join(w.dir, "ann.jwt"), filepath.Join(w.dir, "ann.json")
	w.good("admin", "delete", "identity", "ann", "--yes")
	w.good("admin", "invite", "ann", "--roles", "staff", "--save", token)
	w.good("admin", "enroll", token, "-o", file)
	w.good("admin", "update", "identity", "ann", "--auth-policy", "both", "--external-id", person, "--is-admin=true")
	port := freePort(t)
	if text, _ := w.command("ann", false, "tunnel", "proxy", "--identity", file, "wiki:"+port).end(); !strings.Contains(text, "netkeep login --identity") {
		t.Errorf("without it: %s", text)
	}
	text, code := w.command("ann", true, "login", "--identity", file).end()
	if code != 0 {
		t.Fatalf("%d: %s", code, text)
	}
	if text := w.good("ann", "whoami"); !strings.Contains(text, "ann, an admin") {
		t.Error(text)
	}
	w.command("ann", false, "tunnel", "proxy", "--identity", file, "wiki:"+port).says(`an identity is in use`)
	dial(t, port)
}
