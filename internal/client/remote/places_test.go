package remote

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// network is some controllers that a test plays, with one certificate.
type network struct {
	at   []string
	ca   string
	got  [3]atomic.Int64 // requests, by controller
	mu   sync.Mutex
	revs []string // that requests showed
}

// play starts controllers, of which each answers in its own way.
func play(t *testing.T, answers ...http.HandlerFunc) *network {
	n := &network{}
	for i, answer := range answers {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.got[i].Add(1)
			n.mu.Lock()
			n.revs = append(n.revs, r.Header.Get(revisionHeader))
			n.mu.Unlock()
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, r)
		}))
		t.Cleanup(s.Close)
		n.at, n.ca = append(n.at, s.URL), PEM(s.Certificate())
	}
	return n
}

func (n *network) client(t *testing.T) *Client {
	c, err := New(Account{Address: n.at[0], Others: n.at[1:], CA: n.ca})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (n *network) want(t *testing.T, got ...int64) {
	t.Helper()
	for i, want := range got {
		if is := n.got[i].Load(); is != want {
			t.Errorf("the controller %d got %d requests, want %d", i, is, want)
		}
	}
}

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":{},"meta":{}}`)) }

func away(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }

// hangUp takes a request and ends the connection.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// breakOff begins an answer and does not end it.
func breakOff(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "1000")
	fine(w, r)
	panic(http.ErrAbortHandler)
}

// closed is an address at which nobody listens.
func closed(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "https://" + l.Addr().String()
}

// TestNext has controllers fail in different ways: what only looks goes on to the
// next, and stays there.
func TestNext(t *testing.T) {
	for name, fails := range map[string]http.HandlerFunc{"unavailable": away, "hangs up": hangUp, "breaks off": breakOff} {
		n := play(t, fails, fine)
		c := n.client(t)
		for range 3 {
			if err := c.Get(t.Context(), "/identities", nil, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		n.want(t, 1, 3)
		if c.Address() != n.at[1] || !slices.Equal(c.Places(), []string{n.at[1], n.at[0]}) {
			t.Errorf("%s: it asks %v", name, c.Places())
		}
	}
	n := play(t, away, away)
	err := n.client(t).Get(t.Context(), "/identities", nil, nil)
	if refused, ok := errors.AsType[*Error](err); !ok || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("if nobody can answer, it is %v", err)
	}
	n.want(t, 1, 1)
}

// TestSilent has somebody accept connections and say nothing, as a process does
// that was stopped: the next is asked soon.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := play(t, fine)
	c, err := New(Account{Address: "https://" + l.Addr().String(), Others: n.at, CA: n.ca})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if err := c.Post(t.Context(), "/identities", nil, nil); err != nil {
			t.Error(err)
		}
	}
	n.want(t, 2)
	if c.Address() != n.at[0] {
		t.Errorf("it asks %v", c.Places())
	}
}

// TestNotTwice has a change of which nobody knows whether it was made: it is not
// made again, and that is said. What never left goes on to the next.
func TestNotTwice(t *testing.T) {
	n := play(t, hangUp, fine)
	err := n.client(t).Post(t.Context(), "/identities", map[string]string{}, nil)
	if !errors.Is(err, ErrOpen) || !errors.Is(err, ErrUnreachable) {
		t.Errorf("a change that may be made fails with %v", err)
	}
	n.want(t, 1, 0)

	n = play(t, away, fine)
	if err := n.client(t).Post(t.Context(), "/identities", map[string]string{}, nil); err == nil {
		t.Error("a change that is refused is made elsewhere")
	}
	n.want(t, 1, 0)
	again := Request{Method: http.MethodPost, Path: "/sessions", Repeatable: true}
	if err := n.client(t).Call(t.Context(), again, nil); err != nil {
		t.Errorf("a change that may be made twice fails with %v", err)
	}
	n.want(t, 2, 1)

	n = play(t, fine)
	c, err := New(Account{Address: closed(t), Others: n.at, CA: n.ca})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Post(t.Context(), "/identities", map[string]string{}, nil); err != nil {
		t.Errorf("a change that nobody got fails with %v", err)
	}
	n.want(t, 1)
}

// TestStranger has somebody else sit at the first address: that is said, and not
// passed over.
func TestStranger(t *testing.T) {
	other, n := play(t, fine), play(t, fine)
	// A name that its certificate is not made out to.
	c, err := New(Account{Address: strings.Replace(other.at[0], "127.0.0.1", "localhost", 1), Others: n.at, CA: n.ca})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Get(t.Context(), "/identities", nil, nil)
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "is for another name") {
		t.Errorf("it is %v", err)
	}
	other.want(t, 0)
	n.want(t, 0)
}

// TestRevision sends back what was seen, and forgets it where it is of another
// store.
func TestRevision(t *testing.T) {
	restored := false
	n := play(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case restored && r.Header.Get(revisionHeader) != "":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"code":"COULD_NOT_VALIDATE","message":"","cause":{"field":"netkeep-revision","reason":"is of another store"}}}`))
			return
		case restored:
			w.Header().Set(revisionHeader, "5")
		default:
			w.Header().Set(revisionHeader, "17")
		}
		fine(w, r)
	})
	c := n.client(t)
	get := func() {
		t.Helper()
		if err := c.Get(t.Context(), "/identities", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	get()
	get()
	if c.Revision() != 17 || c.Written() != 0 {
		t.Errorf("it has seen %d and written %d", c.Revision(), c.Written())
	}
	if err := c.Post(t.Context(), "/identities", nil, nil); err != nil || c.Written() != 17 {
		t.Errorf("it has written %d (%v)", c.Written(), err)
	}
	restored = true
	get()
	get()
	if c.Revision() != 5 {
		t.Errorf("it has seen %d", c.Revision())
	}
	if want := []string{"", "17", "17", "17", "", "5"}; !slices.Equal(n.revs, append(want, n.revs[len(want):]...)) {
		t.Errorf("it showed %q", n.revs)
	}
}

// TestLearn asks where all controllers are, keeps the one that answers, and makes
// nothing of one alone.
func TestLearn(t *testing.T) {
	list := `[]`
	n := play(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"data":` + list + `,"meta":{}}`))
	})
	c := n.client(t)
	learn := func(want ...string) {
		t.Helper()
		if err := c.Learn(t.Context(), "edge-client", Request{Path: "/controllers"}); err != nil {
			t.Fatal(err)
		}
		if got := c.Places(); !slices.Equal(got, append([]string{n.at[0]}, want...)) {
			t.Errorf("of %s it knows %v", list, got)
		}
	}
	entry := func(at string) string {
		return `{"apiAddresses":{"edge-client":[{"url":"` + at + `/edge/client/v1","version":"v1"}],"edge-management":[{"url":"https://never:1/edge/management/v1"}]}}`
	}
	learn()
	list = "[" + entry("https://other:1280") + "]"
	learn()
	list = "[" + entry(n.at[0]) + "," + entry("https://other:1280") + "," + entry("https://third:1280") + "]"
	learn("https://other:1280", "https://third:1280")
	list = "[" + entry(n.at[0]) + "," + entry("https://third:1280") + "]"
	learn("https://third:1280")
}
