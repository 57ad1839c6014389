package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// newClient returns a client of a controller that answers as it is told.
func newClient(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	c, err := New(Account{Address: server.URL, CA: PEM(server.Certificate()), Token: "old"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// pageOf writes a page of so many records, of a list that has total.
func pageOf(w http.ResponseWriter, records int, total int64) {
	data := strings.TrimSuffix(strings.Repeat(`{"id":"x"},`, records), ",")
	fmt.Fprintf(w, `{"data":[%s],"meta":{"pagination":{"totalCount":%d}}}`, data, total)
}

// TestEmptyPage reads a list of a controller that says it had more than it has:
// the list ends where there is nothing more.
func TestEmptyPage(t *testing.T) {
	var asked atomic.Int64
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		records := page
		if asked.Add(1); r.URL.Query().Get("offset") != "" {
			records = 0
		}
		pageOf(w, records, 1<<60)
	})
	got := 0
	_, err := c.Each(t.Context(), List{Path: "/identities"}, func(jsontext.Value) error { got++; return nil })
	if err != nil || got != page {
		t.Errorf("%d records came (%v)", got, err)
	}
	if n := asked.Load(); n > 1+2*ahead {
		t.Errorf("%d pages were asked for", n)
	}
}

// TestLargeAnswer has a controller answer without end.
func TestLargeAnswer(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"data":%q}`, strings.Repeat("x", 1<<20))
	})
	c.most = 1 << 16
	var text []byte
	var said string
	for what, err := range map[string]error{
		"bytes":   c.Call(t.Context(), Request{Method: http.MethodGet, Path: "/x"}, &text),
		"data":    c.Get(t.Context(), "/x", nil, &said),
		"nothing": c.Get(t.Context(), "/x", nil, nil),
		"a list":  func() error { _, err := c.Page(t.Context(), List{Path: "/x"}, 0); return err }(),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), c.Address()+" answers with more than 0.0625 MiB") {
			t.Errorf("%s: the error is %v", what, err)
		}
	}
	if c.most = 2 << 20; c.Get(t.Context(), "/x", nil, &said) != nil || len(said) != 1<<20 {
		t.Errorf("an answer that is not too large has %d bytes", len(said))
	}
}

// TestOneRenewal has a session end while pages are on their way: one new session
// is opened, and every page is asked for with it.
func TestOneRenewal(t *testing.T) {
	const total = 4 * page
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("offset") != "" && r.Header.Get("net-session") != "new" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"code":"UNAUTHORIZED"}}`)
			return
		}
		pageOf(w, page, total)
	})
	var renewals atomic.Int64
	c.Renew = func(context.Context) (string, error) { renewals.Add(1); return "new", nil }
	got := 0
	_, err := c.Each(t.Context(), List{Path: "/identities"}, func(jsontext.Value) error { got++; return nil })
	if err != nil || got != total || renewals.Load() != 1 {
		t.Errorf("%d records came after %d renewals (%v)", got, renewals.Load(), err)
	}
}

// TestNotUnderstood tells an answer that nobody can read from one that broke off.
func TestNotUnderstood(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":7}`:     "cannot be understood",
		`<html>`:         "cannot be understood",
		`{"data":"half`:  "broke off",
		`{"data":"all"}`: "",
	} {
		c := newClient(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		var out string
		err := c.Get(t.Context(), "/x", nil, &out)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", body, err)
		}
	}
}
