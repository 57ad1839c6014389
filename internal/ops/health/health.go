// Package health tells whoever watches a controller whether it lives and
// whether it can serve. Anybody may ask, so what it says are words of our own:
// no errors of others, no paths, no addresses. It imports nothing of ours.
package health

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// The paths that Wrap answers.
const (
	LivePath  = "/health/live"
	ReadyPath = "/health/ready"
)

// Check is one thing that a controller needs to serve.
type Check struct {
	Name string
	// Fails says why it is not as it should be; it returns "" while it is. It
	// is called for every request and must be quick.
	Fails func() (reason string)
	// Minor says that it can serve all the same: a failure is a warning.
	Minor bool
}

// Checks is all that a controller needs to serve.
type Checks []Check

// Ready reports whether nothing fails.
func (c Checks) Ready() bool {
	for _, check := range c {
		if !check.Minor && check.Fails() != "" {
			return false
		}
	}
	return true
}

// Answer is the body of an answer.
type Answer struct {
	Status string   `json:"status"` // "ok", "warning" or "unavailable"
	Checks []Result `json:"checks"`
}

// Result is how one check came out.
type Result struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	// Warning says that it does not keep the controller from serving.
	Warning bool `json:"warning,omitzero"`
}

// The words for how all checks together came out.
const (
	OK          = "ok"
	Warning     = "warning"
	Unavailable = "unavailable"
)

// Answer returns how every check comes out now.
func (c Checks) Answer() Answer {
	a := Answer{Status: OK, Checks: []Result{}}
	for _, check := range c {
		reason := check.Fails()
		switch {
		case reason == "":
		case !check.Minor:
			a.Status = Unavailable
		case a.Status == OK:
			a.Status = Warning
		}
		a.Checks = append(a.Checks, Result{Name: check.Name, OK: reason == "", Reason: reason, Warning: reason != "" && check.Minor})
	}
	return a
}

// Wrap returns a handler that answers the paths of this package, and leaves
// all others to next.
func (c Checks) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path != LivePath && path != ReadyPath:
			next.ServeHTTP(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			answer(w, http.StatusMethodNotAllowed, Answer{Status: "method not allowed", Checks: []Result{}})
		case path == LivePath:
			answer(w, http.StatusOK, Answer{Status: OK, Checks: []Result{}})
		default:
			c.answerReady(w)
		}
	})
}

func (c Checks) answerReady(w http.ResponseWriter) {
	status, a := http.StatusOK, c.Answer()
	if a.Status == Unavailable {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, a)
}

func answer(w http.ResponseWriter, status int, a Answer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, a) // a client that left is no error of ours
}
