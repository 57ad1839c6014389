// Package monitoring_test looks at a controller as those do who watch over it:
// its health, its metrics, its log, its traces and its profiles.
package monitoring_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

type M = servertest.M

// soon is how long what happens by itself may take. A request is counted and
// logged when its answer is written, which the client may have by then.
const soon = time.Minute

// get reads an address, of whatever listener, and returns status and body.
func get(t *testing.T, s *servertest.Server, url string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS()}, Timeout: soon}
	defer client.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// beside is the address of a path on the listener for monitoring.
func beside(s *servertest.Server, path string) string { return "http://" + s.Metrics().String() + path }

// scrape returns the value of every series.
func scrape(t *testing.T, s *servertest.Server) map[string]float64 {
	t.Helper()
	status, text := get(t, s, beside(s, "/metrics"))
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all[line[:at]] = value
	}
	return all
}
