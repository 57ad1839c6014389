package program_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// M is a JSON object.
type M = map[string]any

// client calls the Management API of a controller.
type client struct {
	base  string
	token string
	bears bool // the token of a machine, not of a session
	http  *http.Client
}

// connect returns a client that trusts the CA in a file.
func connect(t *testing.T, url, caFile string) *client {
	t.Helper()
	return &client{base: url + "/edge/management/v1/", http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: trust(t, caFile), MaxIdleConnsPerHost: 8},
		Timeout:   waitTime,
	}}
}

func trust(t *testing.T, caFile string) *tls.Config {
	t.Helper()
	pool, err := readPool(caFile)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{RootCAs: pool}
}

func readPool(caFile string) (*x509.CertPool, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s holds no certificate", caFile)
	}
	return pool, nil
}

// client returns a client of the controller that is logged in.
func (p *process) client(data string) *client {
	p.t.Helper()
	c := connect(p.t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	if err := c.login("admin", password); err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (c *client) login(username, password string) error {
	a, err := c.do(http.MethodPost, "authenticate?method=password", M{"username": username, "password": password})
	if err != nil {
		return err
	}
	if a.status != http.StatusOK {
		return fmt.Errorf("login answers %d: %v", a.status, a.body)
	}
	c.token = a.body["data"].(M)["token"].(string)
	return nil
}

// answer is what a controller answered.
type answer struct {
	status int
	body   M
}

func (a answer) id() string { return a.body["data"].(M)["id"].(string) }

// url is where a path is: below the API, or below the controller if it begins
// with a slash.
func (c *client) url(path string) string {
	if strings.HasPrefix(path, "/") {
		return strings.TrimSuffix(c.base, "/edge/management/v1/") + path
	}
	return c.base + path
}

// do sends a request. An error leaves open what the controller did.
func (c *client) do(method, path string, body any) (answer, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
	}
	req, err := http.NewRequestWithContext(context.Background(), method, c.url(path), bytes.NewReader(data))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.bears {
		req.Header.Set("Authorization", "Bearer "+c.token)
	} else if c.token != "" {
		req.Header.Set("net-session", c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: resp.StatusCode}
	return a, json.Unmarshal(data, &a.body)
}

// must is do where only one status is right.
func (c *client) must(t *testing.T, status int, method, path string, body any) answer {
	t.Helper()
	a, err := c.do(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != status {
		t.Fatalf("%s %s answers %d, want %d: %v", method, path, a.status, status, a.body)
	}
	return a
}

// list returns all records of a kind by id.
func (c *client) list(t *testing.T, path string) map[string]M {
	t.Helper()
	all := map[string]M{}
	for _, entry := range c.must(t, 200, http.MethodGet, path+"?limit=-1", nil).body["data"].([]any) {
		all[entry.(M)["id"].(string)] = entry.(M)
	}
	return all
}
