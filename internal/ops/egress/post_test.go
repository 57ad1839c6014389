package egress_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"netkeep.internal/internal/ops/egress"
)

// TestPostRefused says what is no success, where it led to and how long to wait, and
// sends nothing to addresses that nobody should be reached at.
func TestPostRefused(t *testing.T) {
	elsewhere := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	c := egress.New(egress.Options{})
	for path, want := range map[string]egress.StatusError{"/moved": {Status: 308}, "/busy": {Status: 429, After: 7 * time.Second}} {
		_, err := c.Post(t.Context(), srv.URL+path, http.Header{}, []byte("x"))
		if got, ok := errors.AsType[*egress.StatusError](err); !ok || *got != want {
			t.Errorf("%s: %v, want %+v", path, err, want)
		}
	}
	if elsewhere > 0 {
		t.Error("a body went to where it was not meant for")
	}
	if _, err := c.Post(t.Context(), "http://169.254.169.254/", http.Header{}, nil); !errors.Is(err, egress.ErrAddress) {
		t.Errorf("it is sent to a link-local address: %v", err)
	}
	if _, err := c.Connect(t.Context(), "169.254.169.254:6514"); !errors.Is(err, egress.ErrAddress) {
		t.Errorf("it connects to a link-local address: %v", err)
	}
}
