package node

import (
	"context"
	"strings"
	"time"

	"netkeep.internal/internal/wire/message"
)

// How often the controller is told what nobody asks for.
const (
	strayTime  = 15 * time.Second
	idleTime   = time.Minute
	metricTime = 15 * time.Second
	// linkTime is how long new links are gathered before it is told how fast they
	// are.
	linkTime = time.Second
	// brokenTime is how often circuits are looked for that lead nowhere, and
	// brokenFor how long they may: a controller leads them over other links
	// sooner than that, or ends them. Without one nobody else would.
	brokenTime = 2 * time.Second
	brokenFor  = 20 * time.Second
)

// upkeep tells the controller of circuits that lead nowhere, of those on which
// nothing happens, and of what was carried.
func (r *Router) upkeep(ctx context.Context) {
	strays, idle, metrics := time.NewTicker(strayTime), time.NewTicker(idleTime), time.NewTicker(metricTime)
	defer strays.Stop()
	defer idle.Stop()
	defer metrics.Stop()
	broken := time.NewTicker(brokenTime)
	defer broken.Stop()
	links := time.NewTimer(linkTime) // there is nothing to tell yet, which does no harm
	defer links.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-strays.C:
			known, unknown := r.table.Strays()
			r.fault(message.FaultForward, known)
			r.fault(message.FaultForwardUnknown, unknown)
		case <-broken.C:
			r.endBroken(brokenFor)
		case <-idle.C:
			if quiet := r.table.Idle(idleTime); len(quiet) > 0 {
				_ = r.uplink.Confirm(quiet) // it is told again
			}
		case <-metrics.C:
			_ = r.uplink.Metrics(r.metrics()) // what is not heard is lost
		case <-r.measured:
			links.Reset(linkTime)
		case <-links.C:
			_ = r.uplink.Metrics(&message.Metrics{Histograms: r.links.Latencies()})
		}
	}
}

// endBroken ends circuits that have led nowhere for so long. The controller is
// told, if it is there: if not, it asks which circuits there are when it is back.
func (r *Router) endBroken(least time.Duration) {
	for _, id := range r.table.Broken(least) {
		r.opt.Log.Info("a circuit has led nowhere for too long and ends", "circuit", id)
		r.table.Unroute(id)
		_ = r.uplink.Fault(message.Fault{Subject: message.FaultIngress, ID: id})
	}
}

// noteMeasured has the controller told soon how fast a new link is: it takes it
// for a slow one until then.
func (r *Router) noteMeasured() {
	select {
	case r.measured <- struct{}{}:
	default: // noted already
	}
}

func (r *Router) fault(subject message.FaultSubject, circuits []string) {
	if len(circuits) > 0 {
		_ = r.uplink.Fault(message.Fault{Subject: subject, ID: strings.Join(circuits, " ")})
	}
}

// metrics is what was measured since the last time.
func (r *Router) metrics() *message.Metrics {
	return &message.Metrics{Histograms: r.links.Latencies(), Usage: r.usage.take()}
}
