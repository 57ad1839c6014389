package uplink

import (
	"errors"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// send sends a frame that others get too.
func (l *line) send(f *wire.Frame) error {
	own := *f // each gives it a number of its own
	err := l.Send(&own)
	if err != nil && !errors.Is(err, wire.ErrTooLarge) {
		return ErrAway
	}
	return err
}

// tellOne tells the quickest controller what needs no answer.
func (u *Uplink) tellOne(f *wire.Frame) error {
	l := u.quickest(nil)
	if l == nil {
		return ErrAway
	}
	return l.send(f)
}

// tellAll tells all controllers what needs no answer. It fails if none has
// heard.
func (u *Uplink) tellAll(f *wire.Frame) error {
	u.mu.Lock()
	all := u.lines()
	u.mu.Unlock()
	err := ErrAway
	for _, l := range all {
		if sent := l.send(f); sent == nil || !errors.Is(err, ErrAway) {
			err = sent
		}
	}
	return err
}

// to is the connection to the controller with an id; nil if there is none.
func (u *Uplink) to(id string) *line {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, l := range u.lines() {
		if l.id == id {
			return l
		}
	}
	return nil
}

// Fault tells all controllers that something ended that was there: a link, or
// what no controller is known of.
func (u *Uplink) Fault(m message.Fault) error { return u.tellAll(frame(message.TypeFault, &m)) }

// FaultOf tells the owner of circuits that something of them ended. It is told
// when it is back if it is away, and so is who stands in for it: nobody else
// looks after them.
func (u *Uplink) FaultOf(owner string, m message.Fault) {
	if owner == "" { // nobody has said who it is
		_ = u.Fault(m)
		return
	}
	if l := u.to(owner); l != nil && l.send(frame(message.TypeFault, &m)) == nil {
		return
	}
	u.owed.add(owner, m, u.opt.Now())
	if l := u.to(owner); l != nil { // it may have come in between
		for _, m := range u.owed.take(owner) {
			_ = l.send(frame(message.TypeFault, &m))
		}
	}
}

// Confirm names circuits on which nothing happens to their owner, by how long.
// The Handler is told to end those that it does not know. An owner that is away
// is told another time.
func (u *Uplink) Confirm(owner string, idle map[string]time.Duration) {
	l := u.to(owner)
	if l == nil {
		return
	}
	m := &message.CircuitConfirmation{Idle: make(map[string]int64, len(idle))}
	for id, since := range idle {
		m.CircuitIDs = append(m.CircuitIDs, id)
		m.Idle[id] = since.Nanoseconds()
	}
	_ = l.send(frame(message.TypeCircuitConfirmation, m))
}

// ReportLinks tells of links that this router has dialled; complete says that
// there are no others.
func (u *Uplink) ReportLinks(links []message.Link, complete bool) error {
	return u.tellAll(frame(message.TypeRouterLinks, &message.Links{Links: links, All: complete}))
}

// LinkState tells of the sockets of a link that this router has dialled.
func (u *Uplink) LinkState(m message.LinkState) error {
	return u.tellAll(frame(message.TypeLinkState, &m))
}

// Metrics tells what was measured: one of the controllers for good, the others
// so that they know it.
func (u *Uplink) Metrics(m *message.Metrics) error {
	u.mu.Lock()
	all := u.lines()
	u.mu.Unlock()
	told := *m
	for _, l := range all {
		if l.send(frame(message.TypeMetrics, &told)) == nil {
			told.Copy = true
		}
	}
	if !told.Copy {
		return ErrAway
	}
	return nil
}

// Bounds of what controllers are told when they are back.
const (
	maxOwed  = 4096 // ends of circuits
	owedTime = time.Hour
	// owedAgain is how long after it was told a controller is told again: one
	// that has just started asks first which circuits there are, and does not know
	// those that it is told of until then.
	owedAgain = 10 * time.Second
)

// owed is what controllers are to be told when they are back.
type owed struct {
	mu   sync.Mutex
	list []debt // the oldest first
}

type debt struct {
	owner string
	fault message.Fault
	at    time.Time
}

func (o *owed) add(owner string, m message.Fault, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.list) > 0 && (len(o.list) >= maxOwed || now.Sub(o.list[0].at) > owedTime) {
		o.list = o.list[1:]
	}
	o.list = append(o.list, debt{owner, m, now})
}

// take returns what a controller is to be told.
func (o *owed) take(owner string) (all []message.Fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var left []debt
	for _, d := range o.list {
		if d.owner == owner {
			all = append(all, d.fault)
		} else {
			left = append(left, d)
		}
	}
	if len(all) > 0 {
		o.list = left
	}
	return all
}

// settle tells a controller that is back what it missed, twice.
func (u *Uplink) settle(l *line) (again <-chan time.Time, tell func()) {
	faults := u.owed.take(l.id)
	tell = func() {
		for _, m := range faults {
			_ = l.send(frame(message.TypeFault, &m))
		}
	}
	if len(faults) == 0 {
		return nil, tell
	}
	tell()
	return time.After(owedAgain), tell
}
