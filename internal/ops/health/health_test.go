package health_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/ops/health"
)

func TestWrap(t *testing.T) {
	behind, uncopied := "", ""
	h := health.Checks{
		{Name: "store", Fails: func() string { return "" }},
		{Name: "memory", Fails: func() string { return behind }},
		{Name: "copies", Fails: func() string { return uncopied }, Minor: true},
	}
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	const up = `{"status":"ok","checks":[{"name":"store","ok":true},{"name":"memory","ok":true},{"name":"copies","ok":true}]}`
	const worried = `{"status":"warning","checks":[{"name":"store","ok":true},{"name":"memory","ok":true},{"name":"copies","ok":false,"reason":"it failed","warning":true}]}`
	const down = `{"status":"unavailable","checks":[{"name":"store","ok":true},{"name":"memory","ok":false,"reason":"it is late"},{"name":"copies","ok":true}]}`
	const live = `{"status":"ok","checks":[]}`
	for _, test := range []struct {
		method, path, behind string
		status               int
		body                 string
	}{
		{"GET", "/health/live", "", 200, live},
		{"GET", "/health/live", "it is late", 200, live},
		{"GET", "/health/ready", "", 200, up},
		{"HEAD", "/health/ready", "", 200, up}, // the server drops the body
		{"GET", "/health/ready", "it is late", 503, down},
		{"POST", "/health/ready", "", 405, `{"status":"method not allowed","checks":[]}`},
		{"GET", "/health", "", 418, ""},
		{"GET", "/health/ready/", "", 418, ""},
		{"GET", "/edge/client/v1/health/live", "", 418, ""},
	} {
		behind = test.behind
		w := httptest.NewRecorder()
		h.Wrap(next).ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		if w.Code != test.status {
			t.Errorf("%s %s: status %d, want %d", test.method, test.path, w.Code, test.status)
		}
		if diff := cmp.Diff(test.body, w.Body.String()); diff != "" {
			t.Errorf("%s %s: %s", test.method, test.path, diff)
		}
		if h.Ready() != (test.behind == "") {
			t.Errorf("ready is %v when the reason is %q", h.Ready(), test.behind)
		}
	}
	behind, uncopied = "", "it failed"
	w := httptest.NewRecorder()
	h.Wrap(next).ServeHTTP(w, httptest.NewRequest("GET", "/health/ready", nil))
	if w.Code != 200 || w.Body.String() != worried || !h.Ready() {
		t.Errorf("of a warning it says %d %s", w.Code, w.Body)
	}
	behind = "it is late"
	if h.Answer().Status != health.Unavailable || h.Ready() {
		t.Error("a warning hides a failure")
	}
}
