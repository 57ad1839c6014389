package program_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/test/machine"
)

// TestHealth asks how a controller is as containers do: where its settings say, and by
// the exit code.
func TestHealth(t *testing.T) {
	at := "127.0.0.1:" + machine.Port(t)
	env := []string{"NETKEEP_METRICS_LISTEN=0.0.0.0" + strings.TrimPrefix(at, "127.0.0.1")}
	launch(t, settings{args: []string{"health"}, env: env}).fails("nothing says at "+at, "is it running")
	p := controller(t, filepath.Join(t.TempDir(), "data"), "--metrics-listen", at)
	for _, asked := range []settings{{args: []string{"health"}, env: env}, {args: []string{"health", "--at", at}}} {
		asks := launch(t, asked)
		if code := asks.wait(); code != 0 || asks.stdout.String() != "ok\n" {
			t.Errorf("%v ended with %d: %s%s", asked.args, code, asks.stdout.String(), asks.stderr.String())
		}
	}
	p.stop()
	launch(t, settings{args: []string{"health"}, env: []string{"NETKEEP_METRICS_LISTEN=off"}}).fails("its metrics are off")
	launch(t, settings{args: []string{"health", "--at", "nowhere"}}).misused(`"nowhere" is no host and port`)
	launch(t, settings{args: []string{"health", "--router", filepath.Join(t.TempDir(), "none")}}).fails("the router's settings")
}

// TestHealthOfOthers meets what is not as it should be, and what is something else.
func TestHealthOfOthers(t *testing.T) {
	answer, status := "", 0
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer other.Close()
	asks := func() *process {
		return launch(t, settings{args: []string{"health", "--at", strings.TrimPrefix(other.URL, "http://")}})
	}
	status, answer = http.StatusServiceUnavailable, `{"status":"unavailable","checks":[{"name":"store","ok":false,"reason":"it \u001b[31mis late"},{"name":"clock","ok":true}]}`
	asks().fails("it cannot serve, and says unavailable: store: it ", "is late")
	status, answer = http.StatusOK, `<html>`
	asks().fails("is neither a controller nor a router of netkeep")
	answer = "{" + strings.Repeat(" ", 1<<20) + `"status":"ok"}`
	asks().fails("is neither a controller nor a router of netkeep")
	answer = `{"status":"warning","checks":[{"name":"snapshots","ok":false,"warning":true,"reason":"the last one failed"}]}`
	if p := asks(); p.wait() != 0 || p.stdout.String() != "warning; snapshots: the last one failed\n" {
		t.Errorf("a warning is %q", p.stdout.String())
	}
}
