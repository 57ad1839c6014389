package program_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDrain stops a controller while a request is on its way: it is answered,
// and what it wrote is there afterwards.
func TestDrain(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		t.Run(signal.String(), func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			p := controller(t, data)
			c := p.client(data)
			address := strings.TrimPrefix(p.ready(), "https://")
			conn, err := tls.Dial("tcp", address, c.http.Transport.(*http.Transport).TLSClientConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(waitTime)); err != nil {
				t.Fatal(err)
			}
			body := `{"name":"in flight","type":"User","isAdmin":false}`
			fmt.Fprintf(conn, "POST /edge/management/v1/identities HTTP/1.1\r\nHost: x\r\nnet-session: %s\r\n"+
				"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", c.token, len(body))
			// The controller asks for the body once the request is with its
			// handler, so from there on it is in flight.
			reader := bufio.NewReader(conn)
			if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
				t.Fatalf("got %q, error %v", line, err)
			}
			if line, err := reader.ReadString('\n'); err != nil || line != "\r\n" {
				t.Fatalf("got %q, error %v", line, err)
			}
			p.signal(signal)
			refuses(t, address)
			fmt.Fprint(conn, body)
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				t.Errorf("the request in flight was answered %s", resp.Status)
			}
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, p.stderr.String())
			}
			if got := complaints(p.stderr.String()); got != "" {
				t.Errorf("it complained: %s", got)
			}

			again := controller(t, data)
			found := false
			for _, identity := range again.client(data).list(t, "identities") {
				found = found || identity["name"] == "in flight"
			}
			if !found {
				t.Error("what the request in flight wrote is gone")
			}
			again.stop()
		})
	}
}

// refuses waits until nobody listens at the address any more.
func refuses(t *testing.T, address string) {
	t.Helper()
	deadline := time.After(waitTime)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = conn.Close()
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s still accepts connections after %s", address, waitTime)
		}
	}
}

// TestSecondInstance starts another controller on the same data.
func TestSecondInstance(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := controller(t, data)
	second := launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}})
	second.fails(data, "in use")
	first.client(data).must(t, 200, http.MethodGet, "identities", nil) // the first does not mind
	first.stop()
	controller(t, data).stop() // and the lock is gone with it
}

// TestLockGoesWithTheProcess kills a controller and starts another at once.
func TestLockGoesWithTheProcess(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := controller(t, data)
	first.signal(os.Kill)
	first.wait()
	controller(t, data).stop()
}

// TestStopBeforeReady stops a controller that waits for its store: it ends as if
// it had been told later.
func TestStopBeforeReady(t *testing.T) {
	p := launch(t, settings{args: []string{"run", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--store-endpoints", "http://127.0.0.1:1"}})
	p.logs("the store cannot be reached")
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 || complaints(p.stderr.String()) != "" {
		t.Errorf("exit code %d: %s", code, complaints(p.stderr.String()))
	}
	p.logs("stopped before it was ready")
}

// TestStartLine finds in one line of the log what started, and where it is.
func TestStartLine(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	p.logs(`"msg":"ready","version":"v`)
	for line := range strings.Lines(p.stderr.String()) {
		if strings.Contains(line, `"msg":"ready"`) && (!strings.Contains(line, strings.TrimPrefix(p.ready(), "https://")) || !strings.Contains(line, data)) {
			t.Errorf("it says %s", line)
		}
	}
	p.logs(`"msg":"certificate made","subject":"CN=Netkeep Root CA`)
	p.signal(syscall.SIGHUP)
	p.logs("TLS certificate reloaded")
	p.stop()
}
