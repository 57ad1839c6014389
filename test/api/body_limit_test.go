package api_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"netkeep/internal/web/api"
	"netkeep/test/servertest"
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
