package node

import (
	"context"
	"strings"
	"time"

	"netkeep.internal/internal/wire/message"
)

// How often controllers are told what nobody asks for.
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

// upkeep tells controllers of circuits that lead nowhere, of those on which
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
			for owner, circuits := range known {
				r.uplink.FaultOf(owner, message.Fault{Subject: message.FaultForward, ID: strings.Join(circuits, " ")})
			}
			if len(unknown) > 0 {
				_ = r.uplink.Fault(message.Fault{Subject: message.FaultForwardUnknown, ID: strings.Join(unknown, " ")})
			}
		case <-broken.C:
			r.endBroken(brokenFor)
		case <-idle.C:
			for owner, quiet := range r.table.Idle(idleTime) {
				r.uplink.Confirm(owner, quiet)
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

// endBroken ends circuits that have led nowhere for so long, and tells those
// whom they belong to.
func (r *Router) endBroken(least time.Duration) {
	for _, id := range r.table.Broken(least) {
		r.opt.Log.Info("a circuit has led nowhere for too long and ends", "circuit", id)
		owner, _ := r.table.Owner(id)
		r.table.Unroute(id)
		r.uplink.FaultOf(owner, message.Fault{Subject: message.FaultIngress, ID: id})
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

// metrics is what was measured since the last time.
func (r *Router) metrics() *message.Metrics {
	return &message.Metrics{Histograms: r.links.Latencies(), Usage: r.usage.take()}
}
