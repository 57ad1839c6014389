package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/metrics"
)

// TestFabric shows what is counted of routers.
func TestFabric(t *testing.T) {
	m := metrics.New(time.Now)
	full(t, m)
	m.Dialled("", 3*time.Millisecond)
	m.Dialled("no-host", time.Second)
	m.Dialled("a reason that nobody knows", time.Second)
	wants(t, scrape(t, m),
		"netkeep_routers_online 3", "netkeep_links 5", "netkeep_circuits 7", "netkeep_circuits_moved_total 2",
		`netkeep_link_latency_seconds{share="0.5"} 0.002`, `netkeep_link_latency_seconds{share="0.9"} 0.004`, `netkeep_link_latency_seconds{share="1"} 0.004`,
		"netkeep_dial_duration_seconds_count 1", `netkeep_dial_failures_total{reason="no-host"} 1`, `netkeep_dial_failures_total{reason="internal"} 1`,
		`netkeep_dial_failures_total{reason="host"} 0`)
}

// TestCarried tells some services apart, and others by a name that they share.
func TestCarried(t *testing.T) {
	m := metrics.New(time.Now)
	st := full(t, m)
	err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		for i := range 300 {
			s := model.Services.New()
			s.Meta, s.Name = kind.Meta{ID: fmt.Sprint(i)}, fmt.Sprintf("service %d", i)
			if err := model.Services.Create(tx, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		m.Carried(fmt.Sprint(i), 1, 2)
	}
	got := scrape(t, m)
	wants(t, got, `netkeep_carried_bytes_total{direction="sent",service="service 199"} 1`,
		`netkeep_carried_bytes_total{direction="sent",service="other"} 100`, `netkeep_carried_bytes_total{direction="received",service="other"} 200`)
	if n := strings.Count(got, "\nnetkeep_carried_bytes_total{"); n != 402 {
		t.Errorf("there are %d series, want those of 200 services and of the others", n)
	}

	// One that is gone makes room for another.
	if err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error { return model.Services.Delete(tx, "0") }); err != nil {
		t.Fatal(err)
	}
	m.Carried("299", 5, 0)
	m.Carried("298", 7, 0)
	got = scrape(t, m)
	wants(t, got, `netkeep_carried_bytes_total{direction="sent",service="service 299"} 5`, `netkeep_carried_bytes_total{direction="sent",service="other"} 107`)
	if strings.Contains(got, `service="service 0"`) {
		t.Error("a service that is gone is still shown")
	}
}
