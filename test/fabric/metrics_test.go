package fabric

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/servertest"
)

// figures is what monitoring sees, by series.
func figures(t *testing.T, s *servertest.Server) map[string]float64 {
	t.Helper()
	resp, err := (&http.Client{Timeout: soon}).Get("http://" + s.Metrics().String() + "/metrics")
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	all := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			all[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return all
}

// TestMetrics counts dials, and what routers say that they carried.
func TestMetrics(t *testing.T) {
	s := servertest.Start(t)
	m := addMesh(t, s, "ab")
	m.measure("a", "ab", 3)
	name := s.Admin(t).Get(management + "services/" + m.service).Want(200).Data()["name"].(string)
	if _, _, err := m.dialOn(t, m.routers["a"]); err == nil {
		t.Fatal("a service that nobody hosts was dialled")
	}
	m.hostOn(t, m.routers["b"], "terminator1")
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	say := func(router, circuit string, bytes uint64) {
		t.Helper()
		must(t, m.routers[router].Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Metrics{Usage: []message.Usage{{
			Buckets: map[string]message.CircuitUsage{circuit: {
				Bytes: map[string]uint64{"ingress.rx": bytes, "egress.rx": bytes}, Tags: map[string]string{"serviceId": m.service},
			}},
		}}})}))
		m.settled(router)
	}
	say("a", id, 1000)
	say("b", id, 500)
	say("a", "a circuit that is none", 1<<40)
	must(t, m.routers["b"].Fault(message.Fault{Subject: message.FaultEgress, ID: id}))
	m.settled("b")
	say("a", id, 1) // what it carried last
	got := figures(t, s)
	for series, want := range map[string]float64{
		"netkeep_routers_online": 2, "netkeep_links": 1, "netkeep_circuits": 0, "netkeep_circuits_moved_total": 0,
		`netkeep_link_latency_seconds{share="0.5"}`: 0.001, `netkeep_link_latency_seconds{share="1"}`: 0.003,
		"netkeep_dial_duration_seconds_count": 1, `netkeep_dial_failures_total{reason="no-host"}`: 1, `netkeep_dial_failures_total{reason="host"}`: 0,
		`netkeep_carried_bytes_total{direction="sent",service="` + name + `"}`:     1001,
		`netkeep_carried_bytes_total{direction="received",service="` + name + `"}`: 500,
		`netkeep_carried_bytes_total{direction="sent",service="other"}`:            0,
	} {
		if value, there := got[series]; !there || value != want {
			t.Errorf("%s is %v, want %v", series, value, want)
		}
	}
}
