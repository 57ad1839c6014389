package monitoring_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep/test/servertest"
)

// TestRequestLine finds one line for each request, with all that there is to
// say of it.
func TestRequestLine(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	me := admin.Get("current-identity").Want(http.StatusOK).ID()
	refused := s.Nobody(t).Get("services")
	refused.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	s.Nobody(t).Get("/nowhere").Want(http.StatusNotFound)
	read := admin.Get("config-types").Want(http.StatusOK)
	servertest.Eventually(t, soon, "the line of the last request", func() bool { return s.Logged(`"operation":"listConfigTypes"`) })
	lines := map[string]M{}
	for _, line := range s.Log() {
		var fields M
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if fields["msg"] == "request" {
			name := fields["operation"].(string)
			if lines[name] != nil && name != "detailSpecBody" {
				t.Errorf("two lines for one request: %s", line)
			}
			lines[name] = fields
		}
	}
	for name, want := range map[string]M{
		"listConfigTypes": {"api": "edge-management", "by": "identity:" + me, "status": 200.0, "bytes": float64(len(read.Raw))},
		"listServices":    {"api": "edge-management", "by": "anonymous", "status": 401.0, "bytes": float64(len(refused.Raw)), "request": refused.At("error.requestId")},
		"unknown":         {"api": "edge-client", "by": "anonymous", "status": 404.0},
	} {
		line := lines[name]
		for key, value := range want {
			if line[key] != value {
				t.Errorf("%s: %s is %v, want %v", name, key, line[key], value)
			}
		}
		if took, _ := line["took"].(float64); took <= 0 || strings.TrimSpace(line["request"].(string)) == "" {
			t.Errorf("%s: it took %v, request %v", name, line["took"], line["request"])
		}
	}
}
