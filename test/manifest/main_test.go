// Package manifest_test keeps networks in files: real controllers, random
// networks, and what people write by hand.
package manifest_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/test/servertest"
)

type M = servertest.M

var shared *servertest.Server

func TestMain(m *testing.M) {
	// A run of a property here is some thousand records written; the flag of
	// the command line still wins.
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
	servertest.Main(m, &shared)
}

// controller is one that files are compared with.
type controller struct {
	*servertest.Client
	url  string
	http *http.Client
}

func newController(t *testing.T, s *servertest.Server) controller {
	transport := &http.Transport{TLSClientConfig: s.TLS(), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return controller{s.Admin(t), s.URL, &http.Client{Transport: transport, Timeout: time.Minute}}
}

// call sends a request. What answers look like is the business of other tests.
func (c controller) call(method, path string, body any) (status int, answer []byte, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequest(method, c.url+"/edge/management/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("zt-session", c.Token)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// post sends a list of changes.
func (c controller) post(t failer, changes any) (status int, answer string) {
	t.Helper()
	status, raw, err := c.call(http.MethodPost, "changes", M{"changes": changes})
	if err != nil {
		t.Fatal(err)
	}
	return status, string(raw)
}

// List reads a collection page by page.
func (c controller) List(_ context.Context, path string) (all []jsontext.Value, err error) {
	for {
		status, raw, err := c.call(http.MethodGet, fmt.Sprintf("%s?limit=500&offset=%d", path, len(all)), nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []jsontext.Value `json:"data"`
			Meta struct {
				Pagination struct {
					Total int `json:"totalCount"`
				} `json:"pagination"`
			} `json:"meta"`
		}
		if err := json.Unmarshal(raw, &page); err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("status %d: %w: %s", status, err, raw)
		}
		if all = append(all, page.Data...); len(page.Data) == 0 || len(all) >= page.Meta.Pagination.Total {
			return all, nil
		}
	}
}

// failer is a test, or one run of a property.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// load reads what the controller has.
func (c controller) load(t failer) *manifest.Network {
	t.Helper()
	n, err := manifest.Load(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// text is the controller's records as one file.
func (c controller) text(t failer) string {
	t.Helper()
	text, err := c.load(t).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// read reads one file.
func read(text string) (*manifest.Files, error) {
	return manifest.Read([]string{"-"}, strings.NewReader(text))
}

// plan compares a file with what the controller has.
func (c controller) plan(t failer, text string, opt manifest.Options) (*manifest.Plan, error) {
	t.Helper()
	files, err := read(text)
	if err != nil {
		return nil, err
	}
	return manifest.Compare(files, c.load(t), opt)
}

// apply makes the controller's records those of a file.
func (c controller) apply(t failer, text string, opt manifest.Options) *manifest.Plan {
	t.Helper()
	p, err := c.plan(t, text, opt)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(p.Changes) == 0 {
		return p
	}
	if status, answer := c.post(t, p.Changes); status != 200 {
		t.Fatalf("status %d: %s\n%v\n%s", status, answer, p.Changes, text)
	}
	return p
}
