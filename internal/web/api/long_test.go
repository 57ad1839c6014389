package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"netkeep.internal/internal/web/rest"
)

// TestLong has two operations that take longer than a request, to be read, worked on or
// answered, may take. One says so, and is answered.
func TestLong(t *testing.T) {
	a, token := gated(t)
	const most = 100 * time.Millisecond
	a.Timeout = most
	work := func(c *rest.Call, _ rest.None) (rest.Empty, error) {
		select {
		case <-c.Context().Done():
			return rest.Empty{}, c.Context().Err()
		case <-time.After(3 * most):
			return rest.Empty{}, nil
		}
	}
	rest.Handle(a, rest.Op{Method: http.MethodGet, Path: "/all", Name: "all", Tag: "x", Doc: "X.", Auth: rest.Partial, Long: true}, work)
	rest.Handle(a, rest.Op{Method: http.MethodGet, Path: "/some", Name: "some", Tag: "x", Doc: "X.", Auth: rest.Partial}, work)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.Serve(w, r, r.URL.Path) }))
	server.Config.ReadTimeout, server.Config.WriteTimeout = 2*most, 2*most
	server.Start()
	defer server.Close()
	for path, want := range map[string]int{"/all": http.StatusOK, "/some": http.StatusServiceUnavailable} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("net-session", token)
		a, err := server.Client().Do(r)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if a.StatusCode != want || err != nil {
			t.Errorf("%s: %d %s, %v; want %d", path, a.StatusCode, text, err, want)
		}
	}
}
