package api_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// wire opens a connection on which a test writes requests itself.
func wire(t *testing.T, s *servertest.Server) *tls.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", s.Address(), s.TLS())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(waitTime)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestHugeContentLength announces a body and never sends it: the answer comes
// all the same.
func TestHugeContentLength(t *testing.T) {
	token := shared.Admin(t).Token
	for _, path := range []string{"/identities", "/authenticate?method=password"} {
		conn := wire(t, shared)
		fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: x\r\nnet-session: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			api.ManagementRoot, path, token, int64(1)<<40)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 413 || !strings.Contains(string(body), "BODY_TOO_LARGE") {
			t.Errorf("%s: status %d, error %v: %s", path, resp.StatusCode, err, body)
		}
	}
}

// TestSlowBodies begins bodies and does not end them: they are not waited for,
// whoever sends them and whether anybody wants them. One that keeps coming is.
func TestSlowBodies(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Timeouts.Body, c.Timeouts.Read = 2*time.Second, 2*time.Minute })
	token := s.Admin(t).Token
	begin := func(t *testing.T, method, path, token string, length int) net.Conn {
		t.Helper()
		conn := wire(t, s)
		fmt.Fprintf(conn, "%s %s%s HTTP/1.1\r\nHost: x\r\nnet-session: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{",
			method, api.ManagementRoot, path, token, length)
		return conn
	}
	// read returns the answer and how long it took to hang up after it.
	read := func(t *testing.T, conn net.Conn) (*http.Response, string, time.Duration) {
		t.Helper()
		start := time.Now()
		r := bufio.NewReader(conn)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r)
		return resp, string(body), time.Since(start)
	}
	t.Run("slow", func(t *testing.T) {
		for _, test := range []struct {
			what, method, path, token string
			status                    int
			code                      string
		}{
			{"a stranger's", "POST", "/authenticate?method=password", "", 408, "BODY_TOO_SLOW"},
			{"an admin's", "POST", "/identities", token, 408, "BODY_TOO_SLOW"},
			{"one that nobody wants", "GET", "/version", "", 408, "BODY_TOO_SLOW"},
			{"one of somebody who may not", "POST", "/identities", "", 401, "UNAUTHORIZED"},
			{"one to nowhere", "POST", "/nowhere", "", 404, "NOT_FOUND"},
		} {
			t.Run(test.what, func(t *testing.T) {
				t.Parallel()
				resp, body, took := read(t, begin(t, test.method, test.path, test.token, 1000))
				if resp.StatusCode != test.status || !strings.Contains(body, test.code) {
					t.Errorf("%s: status %d: %s", test.what, resp.StatusCode, body)
				}
				// The usual time for a whole request is much longer.
				if took > s.Config.Timeouts.Read/2 {
					t.Errorf("%s is waited for %v", test.what, took)
				}
			})
		}
	})
	rest := fmt.Sprintf(`"name":%q,"type":"User","isAdmin":false,"appData":{"x":"%s"}}`, servertest.Unique("identity"), strings.Repeat("x", 160<<10))
	conn := begin(t, "POST", "/identities", token, 1+len(rest))
	tick := time.NewTicker(150 * time.Millisecond)
	defer tick.Stop()
	for len(rest) > 0 {
		n := min(8<<10, len(rest))
		if _, err := io.WriteString(conn, rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
		<-tick.C
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("a body that takes a second: status %d", resp.StatusCode)
	}
}

// TestSlowBodyOfAnEndedSession ends a session while a body of it arrives.
func TestSlowBodyOfAnEndedSession(t *testing.T) {
	user := shared.AddUser(t, true)
	me := shared.Login(t, user.Username, user.Password)
	body := fmt.Sprintf(`{"name":%q,"type":"User","isAdmin":false}`, servertest.Unique("identity"))
	conn := wire(t, shared)
	// Whoever is told to go on was let in.
	fmt.Fprintf(conn, "POST %s/identities HTTP/1.1\r\nHost: x\r\nnet-session: %s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n",
		api.ManagementRoot, me.Token, len(body))
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	me.Delete("current-api-session").Want(200)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := range body {
		if _, err := io.WriteString(conn, body[i:i+1]); err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("the rest of a body is taken after the end of its session: status %d", resp.StatusCode)
	}
}

// TestEndlessBody sends chunks until the server has had enough.
func TestEndlessBody(t *testing.T) {
	token := shared.Admin(t).Token
	conn := wire(t, shared)
	fmt.Fprintf(conn, "POST %s/identities HTTP/1.1\r\nHost: x\r\nnet-session: %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
		api.ManagementRoot, token)
	sent := make(chan int, 1)
	go func() {
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10))
		n := 0
		for ; n < 64<<20; n += 64 << 10 {
			if _, err := io.WriteString(conn, chunk); err != nil {
				break
			}
		}
		sent <- n
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 413 || !strings.Contains(string(body), "BODY_TOO_LARGE") {
		t.Errorf("status %d: %s", resp.StatusCode, body)
	}
	_ = conn.Close()
	if n := <-sent; n >= 64<<20 {
		t.Errorf("the server read all %d bytes", n)
	}
}

// TestBodyCap sends bodies of the largest size and one byte more.
func TestBodyCap(t *testing.T) {
	c := shared.Admin(t)
	largest := int(shared.Config.Limits.Body)
	for _, test := range []struct{ size, status int }{{largest, 201}, {largest + 1, 413}} {
		head := fmt.Sprintf(`{"name":%q,"type":"User","isAdmin":false,"appData":{"x":"`, servertest.Unique("identity"))
		body := head + strings.Repeat("x", test.size-len(head)-3) + `"}}`
		c.Post("identities", servertest.Raw(body)).Want(test.status)
	}
	// Strangers are refused before their body is read.
	shared.Nobody(t).Post("identities", servertest.Raw(strings.Repeat("x", 1000))).Fails(401, "UNAUTHORIZED", "")
	c.Post("authenticate?method=password", servertest.Raw(strings.Repeat("x", 64<<10+1))).
		Fails(413, "BODY_TOO_LARGE", "")
}
