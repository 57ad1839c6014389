package metrics_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"netkeep.internal/internal/ops/metrics"
)

// TestTotals reads back what was counted.
func TestTotals(t *testing.T) {
	m := metrics.New(time.Now)
	if got := m.Totals(); got.Logins+got.LoginsRefused+got.Dials+got.DialsRefused != 0 || !maps.Equal(got.Carried, map[string]uint64{"": 0}) {
		t.Errorf("at first it is %+v", got)
	}
	m.Login("password", nil)
	m.Login("cert", nil)
	m.Login("cert", errors.New("the store does not answer"))
	m.Dialled("", time.Second)
	m.Dialled("host", time.Second)
	m.Dialled("refused", time.Second)
	m.Carried("a", 1, 2)
	m.Carried("b", 10, 20)
	m.Carried("a", 100, 200)
	got := m.Totals()
	if got.Logins != 2 || got.LoginsRefused != 1 || got.Dials != 1 || got.DialsRefused != 2 || !maps.Equal(got.Carried, map[string]uint64{"": 0, "a": 303, "b": 30}) {
		t.Errorf("afterwards it is %+v", got)
	}
}
