package uplink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// When a controller counts as one that does not answer.
const (
	// slow is how long a sign of life may take.
	slow = 5 * time.Second
	// patience is how long a controller may be silent that was asked something,
	// before another is asked. One that only takes its time for an answer gives
	// signs of life meanwhile.
	patience = 2 * time.Second
	// glance is how often that is looked at.
	glance = 500 * time.Millisecond
)

// echoed takes note of a sign of life.
func (l *line) echoed(took time.Duration, now time.Time) {
	if before := l.took.Load(); before != 0 { // one alone says little
		took = (7*time.Duration(before) + took) / 8
	}
	l.took.Store(max(1, int64(took)))
	l.heard.Store(now.UnixNano())
	l.probed.Store(0)
}

// probe asks for a sign of life, unless one is waited for, and reports whether
// that has been in vain for too long.
func (l *line) probe(now time.Time) (silent bool) {
	if l.probed.CompareAndSwap(0, now.UnixNano()) {
		l.Ask()
		return false
	}
	return l.silent(now)
}

// silent reports whether a sign of life was asked for in vain.
func (l *line) silent(now time.Time) bool {
	at := l.probed.Load()
	return at != 0 && now.UnixNano()-at > int64(patience)
}

// responsive reports whether signs of life come in time.
func (l *line) responsive(now time.Time) bool {
	return !l.silent(now) && time.Duration(l.took.Load()) <= slow && now.UnixNano()-l.heard.Load() <= int64(channel.Beat+slow)
}

// lines are the connections that there are; u.mu is held.
func (u *Uplink) lines() (all []*line) {
	for _, s := range u.seats {
		if s.line != nil {
			all = append(all, s.line)
		}
	}
	return all
}

// connected are the connections that there are, the quickest first. Those that
// were not measured yet come behind, and then those that do not answer.
func (u *Uplink) connected() []*line {
	u.mu.Lock()
	all := u.lines()
	u.mu.Unlock()
	if len(all) < 2 {
		return all
	}
	now := u.opt.Now()
	type measured struct {
		*line
		mute bool
		took int64
	}
	by := make([]measured, len(all))
	for i, l := range all {
		by[i] = measured{l, !l.responsive(now), l.took.Load()}
	}
	slices.SortStableFunc(by, func(a, b measured) int {
		switch {
		case a.mute != b.mute && a.mute, a.mute == b.mute && a.took == 0 && b.took != 0:
			return 1
		case a.mute != b.mute, b.took == 0 && a.took != 0:
			return -1
		}
		return cmp.Compare(a.took, b.took)
	})
	for i, m := range by {
		all[i] = m.line
	}
	return all
}

// quickest is the best of the connections that are not among some; nil if there
// is none.
func (u *Uplink) quickest(besides []*line) *line {
	for _, l := range u.connected() {
		if !slices.Contains(besides, l) {
			return l
		}
	}
	return nil
}

// oldest is the connection that has lasted the longest; nil if there is none.
func (u *Uplink) oldest() *line {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.lines()
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *line) int { return a.since.Compare(b.since) })
}

// request asks one controller, in the words of whoever cannot know why there is
// no answer.
func (l *line) request(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	own := *f // each gives it a number of its own
	reply, err := l.Request(ctx, &own)
	switch {
	case err == nil:
		return reply, nil
	case errors.Is(err, wire.ErrTooLarge):
		return nil, errLarge
	case l.Err() != nil:
		return nil, ErrAway
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w (%w)", errLate, err)
	}
	return nil, err
}

// question is one that any controller may answer.
type question struct {
	u     *Uplink
	frame *wire.Frame

	asked []*line
	heard chan answer

	mu   sync.Mutex
	over bool
}

type answer struct {
	from  *line
	frame *wire.Frame
	err   error
}

// ask asks one controller, and others for as long as that helps.
func (q *question) ask(ctx context.Context) (*wire.Frame, error) {
	all := q.u.connected()
	switch len(all) {
	case 0:
		return nil, ErrAway
	case 1:
		reply, err := all[0].request(ctx, q.frame)
		if err == nil || !errors.Is(err, ErrAway) {
			return reply, err
		}
		q.asked = all // there may be another by now
	}
	q.heard = make(chan answer, maxControllers)
	defer q.end()
	open, lastErr := 0, ErrAway
	var busy *wire.Frame // what the last said who could not answer now
	more := func() {
		if len(q.asked) < cap(q.heard) && q.next(ctx) {
			open++
		}
	}
	more()
	silence := time.NewTicker(glance)
	defer silence.Stop()
	for open > 0 {
		select {
		case a := <-q.heard:
			open--
			switch {
			case a.err == nil && !notNow(a.frame):
				return a.frame, nil
			case a.err == nil:
				busy = a.frame
				more()
			default:
				if lastErr = a.err; errors.Is(a.err, ErrAway) {
					more()
				}
			}
		case <-silence.C:
			if q.asked[len(q.asked)-1].probe(q.u.opt.Now()) {
				more()
			}
		}
	}
	if busy != nil {
		return busy, nil
	}
	return nil, lastErr
}

// notNow reports whether an answer is that there is none at present. Another
// controller may have one: this one has yet to hear of something, has lost its
// store, or has too much to do.
func notNow(f *wire.Frame) bool {
	switch f.Type {
	case message.TypeError:
		r := message.RefusalIn(f)
		return r.Retry == message.RetryTooBusy && !r.Hosted
	case message.TypeTerminatorCreated:
		m, err := message.Unmarshal[message.TerminatorCreated](f.Body)
		return err == nil && m.Result == message.TerminatorBusy
	}
	return false
}

// next asks the next controller, and reports whether there is one.
func (q *question) next(ctx context.Context) bool {
	l := q.u.quickest(q.asked)
	if l == nil {
		return false
	}
	q.asked = append(q.asked, l)
	l.probe(q.u.opt.Now())
	go func() {
		reply, err := l.request(ctx, q.frame)
		q.mu.Lock()
		over := q.over
		if !over {
			q.heard <- answer{l, reply, err} // there is room for all
		}
		q.mu.Unlock()
		if over && err == nil {
			q.u.discard(l, reply)
		}
	}()
	return true
}

// end takes no more answers. What was made for nobody is ended.
func (q *question) end() {
	q.mu.Lock()
	q.over = true
	q.mu.Unlock()
	for {
		select {
		case a := <-q.heard:
			if a.err == nil {
				q.u.discard(a.from, a.frame)
			}
		default:
			return
		}
	}
}

// discard ends what an answer tells of that nobody waits for: a circuit. Its
// owner is who made it.
func (u *Uplink) discard(from *line, f *wire.Frame) {
	if f.Type == message.TypeCircuitCreated {
		_ = from.Send(frame(message.TypeFault, &message.Fault{Subject: message.FaultIngress, ID: f.Headers.Text(message.HeaderCircuitID)}))
	}
}
