package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Audit is where the figures come from of what becomes of the audit log.
type Audit struct {
	// Archived is the number of the last entry that this controller has archived; not
	// ok if it archives none.
	Archived func() (n int64, ok bool)
	// ArchiveFailing is for how long it could not archive any.
	ArchiveFailing func() time.Duration
	// Outlets yields how those are that entries go out to.
	Outlets func(yield func(Outlet) bool)
	// Alerts yields what became of alerts, by receiver.
	Alerts func(yield func(Alerts) bool)
}

// Alerts is what became of those for a receiver.
type Alerts struct {
	Receiver                string
	Sent, Repeated, Dropped int64
}

// Outlet is somebody that entries go out to.
type Outlet struct {
	Name    string
	Behind  int64
	Failing time.Duration
	Missed  int64
	Refused int64
}

// WatchAudit adds the figures of what becomes of the audit log. It may be called once.
func (m *Metrics) WatchAudit(a Audit) {
	m.Registry.MustRegister(
		&optional{desc("netkeep_audit_archived_entry", "Number of the last entry of the audit log that this controller has archived."), a.Archived},
		&outlets{a},
		gauge("netkeep_audit_archive_failing_seconds", "For how long the audit log could not be archived; 0 while it is.", nil, func() float64 { return a.ArchiveFailing().Seconds() }),
	)
}

// outlets are the figures of those that entries go out to.
type outlets struct{ of Audit }

var (
	outletBehind  = prometheus.NewDesc("netkeep_audit_outlet_behind", "Entries of the audit log that this controller has yet to send, by outlet.", []string{"outlet"}, nil)
	outletFailing = prometheus.NewDesc("netkeep_audit_outlet_failing_seconds", "For how long no entry could be sent, by outlet; 0 while they can.", []string{"outlet"}, nil)
	outletMissed  = prometheus.NewDesc("netkeep_audit_outlet_missed_total", "Entries that were gone before they could be sent, by outlet.", []string{"outlet"}, nil)
	alertsMade    = prometheus.NewDesc("netkeep_alerts_total", "Alerts of this controller, by receiver and by what became of them: sent, repeated if the same was sent a moment before, dropped if it was given up.", []string{"receiver", "result"}, nil)
	outletRefused = prometheus.NewDesc("netkeep_audit_outlet_refused_total", "Entries that were refused where they were sent, so that the others went on without, by outlet.", []string{"outlet"}, nil)
)

// Describe is for [prometheus.Collector].
func (*outlets) Describe(to chan<- *prometheus.Desc) {
	to <- outletBehind
	to <- outletFailing
	to <- outletMissed
	to <- outletRefused
	to <- alertsMade
}

// Collect is for [prometheus.Collector].
func (o *outlets) Collect(to chan<- prometheus.Metric) {
	for f := range o.of.Outlets {
		to <- prometheus.MustNewConstMetric(outletBehind, prometheus.GaugeValue, float64(f.Behind), f.Name)
		to <- prometheus.MustNewConstMetric(outletFailing, prometheus.GaugeValue, f.Failing.Seconds(), f.Name)
		to <- prometheus.MustNewConstMetric(outletMissed, prometheus.CounterValue, float64(f.Missed), f.Name)
		to <- prometheus.MustNewConstMetric(outletRefused, prometheus.CounterValue, float64(f.Refused), f.Name)
	}
	if o.of.Alerts == nil {
		return
	}
	for a := range o.of.Alerts {
		for _, n := range []struct {
			result string
			count  int64
		}{{"sent", a.Sent}, {"repeated", a.Repeated}, {"dropped", a.Dropped}} {
			to <- prometheus.MustNewConstMetric(alertsMade, prometheus.CounterValue, float64(n.count), a.Receiver, n.result)
		}
	}
}
