package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// certificates is how long certificates, signers and tokens are good for.
type certificates struct{ Source }

var (
	timeLeft = prometheus.NewDesc("netkeep_certificate_remaining_seconds",
		"Time until a certificate of the controller, a registered CA or an external JWT signer expires; server is the one that is served.",
		[]string{"kind", "name"}, nil)
	expiring = prometheus.NewDesc("netkeep_client_certificates_expiring",
		"Client certificates in use that expire within so many days; zero days are those that have expired.",
		[]string{"days"}, nil)
	tokensEnding = prometheus.NewDesc("netkeep_tokens_ending",
		"Tokens of machines that end within two weeks.", nil, nil)
)

// Describe is for [prometheus.Collector].
func (c *certificates) Describe(ch chan<- *prometheus.Desc) {
	ch <- timeLeft
	ch <- expiring
	ch <- tokensEnding
}

// Collect is for [prometheus.Collector].
func (c *certificates) Collect(ch chan<- prometheus.Metric) {
	now := c.Now()
	show := func(kind, name string, until time.Time) {
		ch <- prometheus.MustNewConstMetric(timeLeft, prometheus.GaugeValue, until.Sub(now).Seconds(), kind, name)
	}
	for _, item := range c.Inventory() {
		show("controller", item.Name, item.NotAfter)
	}
	snap := c.State.Snapshot()
	for ca := range model.CAs.All(snap) {
		if cert, err := ca.Certificate(); err == nil {
			show("ca", ca.Name, cert.NotAfter)
		}
	}
	for s := range model.ExtJWTSigners.All(snap) {
		if !s.NotAfter.IsZero() {
			show("signer", s.Name, s.NotAfter)
		}
	}
	c.collectClients(ch, snap, now)
	ending := 0
	for t := range model.Tokens.All(snap) {
		if t.Ending(now) {
			ending++
		}
	}
	ch <- prometheus.MustNewConstMetric(tokensEnding, prometheus.GaugeValue, float64(ending))
}

// horizons are the days that client certificates are counted for. One series
// for each certificate would be more than monitoring can bear.
var horizons = []struct {
	days  int
	label string
}{{0, "0"}, {7, "7"}, {30, "30"}, {90, "90"}}

func (c *certificates) collectClients(ch chan<- prometheus.Metric, snap kind.Reader, now time.Time) {
	counts := make([]float64, len(horizons))
	for a := range model.Authenticators.All(snap) {
		if a.NotAfter.IsZero() {
			continue
		}
		for i, h := range horizons {
			if a.NotAfter.Time().Before(now.AddDate(0, 0, h.days)) {
				counts[i]++
			}
		}
	}
	for i, h := range horizons {
		ch <- prometheus.MustNewConstMetric(expiring, prometheus.GaugeValue, counts[i], h.label)
	}
}
