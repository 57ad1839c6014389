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

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// fetch gets a path over TLS from one of a server's addresses.
func fetch(t *testing.T, s *servertest.Server, address, path string) (int, servertest.M) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS(), ForceAttemptHTTP2: true}, Timeout: waitTime}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + address + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
		t.Errorf("%s of %s has the type %q", path, address, got)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body servertest.M
	if err := json.Unmarshal(text, &body); err != nil {
		t.Errorf("%s of %s: %v: %s", path, address, err, text)
	}
	return resp.StatusCode, body
}

// baseURL is where a version says that an API is.
func baseURL(body servertest.M, name string) any {
	versions := body["data"].(servertest.M)["apiVersions"].(servertest.M)
	return versions[name].(servertest.M)["v1"].(servertest.M)["apiBaseUrls"].([]any)[0]
}

// TestOneListener checks that one listener serves all APIs unless told
// otherwise.
func TestOneListener(t *testing.T) {
	if shared.ManagementAddress() != shared.Address() {
		t.Errorf("the Management API is at %s, want %s", shared.ManagementAddress(), shared.Address())
	}
	for _, root := range []string{api.ClientRoot, api.ManagementRoot, api.FabricRoot, "/edge/v1", ""} {
		status, body := fetch(t, shared, shared.Address(), root+"/version")
		if status != 200 {
			t.Fatalf("%s answers %d: %v", root, status, body)
		}
		if got, want := baseURL(body, "edge-management"), "https://"+shared.Address()+api.ManagementRoot; got != want {
			t.Errorf("%s: the Management API is at %v, want %s", root, got, want)
		}
	}
}

// TestTwoListeners gives the Management API a listener of its own, where the
// Fabric API is too: each listener has its APIs, not the others, and tells where
// those are.
func TestTwoListeners(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Management.Listen = "127.0.0.1:0" })
	client, management := s.Address(), s.ManagementAddress()
	if client == management {
		t.Fatalf("both APIs are at %s", client)
	}
	for _, test := range []struct {
		address, path string
		status        int
	}{
		{client, api.ClientRoot + "/version", 200},
		{client, "/edge/v1/version", 200},
		{client, "/version", 200},
		{client, api.ManagementRoot + "/version", 404},
		{client, api.ManagementRoot, 404},
		{client, api.ManagementRoot + "/identities", 404},
		{client, api.FabricRoot + "/version", 404},
		{client, api.FabricRoot + "/links", 404},
		{management, api.FabricRoot + "/version", 200},
		{management, api.FabricRoot + "/links", 401},
		{management, api.ManagementRoot + "/version", 200},
		{management, api.ManagementRoot, 200},
		{management, api.ManagementRoot + "/identities", 401},
		{management, api.ManagementRoot + "/nothing", 404},
		{management, api.ClientRoot + "/version", 404},
		{management, "/edge/v1/version", 404},
		{management, "/version", 200},
		{management, "/versions", 404},
		{management, "/current-identity", 404},
		{management, "/enroll", 404},
		{management, "/identities", 404},
		{management, "/", 404},
	} {
		status, body := fetch(t, s, test.address, test.path)
		if status != test.status {
			t.Errorf("%s of %s answers %d, want %d: %v", test.path, test.address, status, test.status, body)
		}
		switch status {
		case 200:
			for name, want := range map[string]string{
				"edge": client + api.ClientRoot, "edge-client": client + api.ClientRoot, "edge-management": management + api.ManagementRoot,
			} {
				if got := baseURL(body, name); got != "https://"+want {
					t.Errorf("%s of %s: %s is at %v, want https://%s", test.path, test.address, name, got, want)
				}
			}
		case 404:
			if code := body["error"].(servertest.M)["code"]; code != "NOT_FOUND" {
				t.Errorf("%s of %s: code %v", test.path, test.address, code)
			}
		}
	}
}

// TestPublicOnBoth finds on either listener what comes before everything else.
func TestPublicOnBoth(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Management.Listen = "127.0.0.1:0" })
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS()}}
	defer client.CloseIdleConnections()
	for _, address := range []string{s.Address(), s.ManagementAddress()} {
		for _, path := range []string{"/version", "/specs", "/specs/edge-client/spec", "/.well-known/est/cacerts"} {
			resp, err := client.Get("https://" + address + path)
			if err != nil {
				t.Fatal(err)
			}
			if resp.Body.Close(); resp.StatusCode != http.StatusOK {
				t.Errorf("%s of %s answers %s", path, address, resp.Status)
			}
		}
	}
}

// TestAdvertisedManagement checks that the certificate is made out to where
// admins are told to go.
func TestAdvertisedManagement(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) {
		c.Management.Listen, c.Management.Advertise = "127.0.0.1:0", "admin.example.org:8443"
	})
	_, body := fetch(t, s, s.Address(), api.ClientRoot+"/version")
	if got, want := baseURL(body, "edge-management"), "https://admin.example.org:8443"+api.ManagementRoot; got != want {
		t.Errorf("the Management API is at %v, want %s", got, want)
	}
	for _, name := range []string{"admin.example.org", "127.0.0.1"} {
		cfg := s.TLS()
		cfg.ServerName = name
		conn, err := tls.Dial("tcp", s.Address(), cfg)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = conn.Close()
	}
}

// TestSizeLimits moves the limits of headers and bodies.
func TestSizeLimits(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Limits.Headers, c.Limits.Body = 8<<10, 64<<10 })
	for size, status := range map[int]int{4 << 10: 200, 32 << 10: 431} {
		conn := wire(t, s)
		fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: x\r\nX-Filler: %s\r\n\r\n", strings.Repeat("x", size))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != status {
			t.Errorf("%d bytes of header: status %d, want %d", size, resp.StatusCode, status)
		}
		_ = resp.Body.Close()
	}
	c := s.Admin(t)
	for size, status := range map[int]int{64 << 10: 201, 64<<10 + 1: 413} {
		head := fmt.Sprintf(`{"name":%q,"type":"User","isAdmin":false,"appData":{"x":"`, servertest.Unique("identity"))
		c.Post("identities", servertest.Raw(head+strings.Repeat("x", size-len(head)-3)+`"}}`)).Want(status)
	}
}

// TestClientTimeouts lets clients be slow: the server hangs up after the time
// that the settings give them. The handshake is bounded by it too, so it is not
// very short.
func TestClientTimeouts(t *testing.T) {
	const short = 2 * time.Second
	s := servertest.Start(t, func(c *config.Config) {
		c.Timeouts.Header, c.Timeouts.Read, c.Timeouts.Body, c.Timeouts.Idle = short, short, short, short
	})
	for name, send := range map[string]string{
		"header": "GET /version HTTP/1.1\r\nHost:",
		"read": "POST " + api.ManagementRoot + "/authenticate?method=password HTTP/1.1\r\n" +
			"Host: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"idle": "GET /version HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := wire(t, s)
			if _, err := io.WriteString(conn, send); err != nil {
				t.Fatal(err)
			}
			// Only a server that hangs up ends this before the deadline.
			if _, err := io.ReadAll(conn); err != nil {
				t.Errorf("the server did not hang up: %v", err)
			}
		})
	}
}
