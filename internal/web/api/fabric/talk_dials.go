package fabric

import (
	"maps"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/fabric/herald"
)

// dials counts what became of dials, by interval, until that is told.
type dials struct {
	want   wanted
	again  *time.Ticker // nil if nobody wants to know
	counts map[dialled]uint64
	missed uint64 // that were too many to be told apart
}

// dialled is what is counted together.
type dialled struct {
	start         int64 // of the interval, s since 1970
	verb          string
	service, host string
}

// maxDialled is how many numbers are kept until they are told.
const maxDialled = 10_000

// dialWords are what events call it.
var dialWords = map[string]string{
	herald.DialMade: "service.dial.success", herald.DialFailed: "service.dial.fail", herald.DialTimedOut: "service.dial.timeout", herald.DialElse: "service.dial.error_other",
	herald.HostTimedOut: "service.dial.terminator.timeout", herald.HostRefused: "service.dial.terminator.connection_refused",
	herald.HostUnknown: "service.dial.terminator.invalid", herald.HostMisconfigured: "service.dial.terminator.misconfigured",
}

func newDials(want wanted) *dials {
	d := &dials{want: want, counts: map[dialled]uint64{}}
	if want.every > 0 {
		d.again = time.NewTicker(want.every)
	}
	return d
}

func (d *dials) stop() {
	if d.again != nil {
		d.again.Stop()
	}
}

// due has one when it is time to tell; nobody ever has if nobody wants to know.
func (d *dials) due() <-chan time.Time {
	if d.again == nil {
		return nil
	}
	return d.again.C
}

func (d *dials) add(e *herald.Event, one herald.Dial) {
	as := dialled{e.At.Truncate(d.want.every).Unix(), e.Verb, one.ServiceID, one.TerminatorID}
	if _, known := d.counts[as]; !known && len(d.counts) == maxDialled {
		d.missed++
		return
	}
	d.counts[as]++
}

// tell tells of the intervals that are over.
func (d *dials) tell(t *talk) {
	now := t.s.Sessions.Now()
	running := now.Truncate(d.want.every).Unix()
	order := func(a, b dialled) int {
		return strings.Compare(a.service+" "+a.host+" "+a.verb, b.service+" "+b.host+" "+b.verb)
	}
	for _, as := range slices.SortedFunc(maps.Keys(d.counts), order) {
		if as.start >= running {
			continue
		}
		t.tell(d.want, now, map[string]any{
			"version": 2, "event_type": dialWords[as.verb], "service_id": as.service, "terminator_id": as.host, "count": d.counts[as],
			"interval_start_utc": as.start, "interval_length": int64(d.want.every.Seconds()),
		})
		delete(d.counts, as)
	}
	if d.missed > 0 {
		t.missed(d.missed)
		d.missed = 0
	}
}
