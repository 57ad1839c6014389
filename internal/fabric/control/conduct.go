package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/limit"
)

// Reason is how a router misbehaves, in a word for monitoring.
type Reason string

// What no router would do that is as it should be.
const (
	// TooLarge is a frame that is larger than any of its kind need be. A client
	// may bring a router to it, so that no router is cut off for it.
	TooLarge Reason = "too-large"
	// TooOften is what a router asks for more often than there can be a reason.
	TooOften Reason = "too-often"
	// TooMuch is more of something than there can be.
	TooMuch Reason = "too-much"
	// Invented is what cannot be so.
	Invented Reason = "invented"
)

// Reasons are all of them.
func Reasons() []string {
	return []string{string(TooLarge), string(TooOften), string(TooMuch), string(Invented)}
}

// Bounds of what is borne of a router.
const (
	maxOffences = 60 // a minute; who goes on is cut off
	offenceWait = 30 * time.Second
	maxChanges  = 60  // that it makes of itself, a minute
	maxArrivals = 120 // times that it connects, a minute
	maxRecounts = 12  // times that it is asked what it carries, a minute
	maxResyncs  = 60  // times that it asks to be told everything, a minute
	maxLines    = 300 // of the log, a minute and kind of line
	maxDetail   = 200 // characters of what it says, in the log
)

var errMisbehaves = errors.New("the router misbehaves and is not let in for a while: the controller's log says how")

var errRestless = errors.New("the router connects again and again; it is let in at most 120 times a minute")

// conduct is how routers behave, whether connected or not.
type conduct struct {
	offences limit.Rate[string]      // by router
	named    limit.Rate[offence]     // in the log
	changes  limit.Rate[string]      // by router
	recounts limit.Rate[string]      // by router
	resyncs  limit.Rate[string]      // by router
	arrivals limit.Rate[string]      // by router
	lines    limit.Rate[line]        // of the log
	strange  limit.Rate[limit.Party] // lines of the log about strangers
	shut     map[string]time.Time    // until when routers are not let in; under the mutex of Routers
}

type (
	offence struct {
		router string
		reason Reason
	}
	line struct{ router, text string }
)

// maxComplaints is how often a minute the log tells of one address that somebody
// was turned away.
const maxComplaints = 60

func (c *conduct) init(now func() time.Time) {
	c.offences.PerMinute, c.offences.Now = maxOffences, now
	c.named.PerMinute, c.named.Now = 1, now
	c.changes.PerMinute, c.changes.Now = maxChanges, now
	c.recounts.PerMinute, c.recounts.Now = maxRecounts, now
	c.resyncs.PerMinute, c.resyncs.Now = maxResyncs, now
	c.arrivals.PerMinute, c.arrivals.Now = maxArrivals, now
	c.lines.PerMinute, c.lines.Now = maxLines, now
	c.strange.PerMinute, c.strange.Now = maxComplaints, now
	c.shut = map[string]time.Time{}
}

// Misbehaves takes note of what no router would do that is as it should be. The
// log names it once a minute, monitoring counts it, and a router that goes on
// loses its connection for a while.
func (r *Router) Misbehaves(reason Reason, detail string) {
	rs := r.all
	rs.opt.Misbehaved(string(reason))
	r.note(audit.RouterMisbehaved, r.Remote(), string(reason)+": "+clip(detail))
	if rs.conduct.named.Take(offence{r.ID, reason}) == 0 {
		rs.opt.Log.Warn("a router misbehaves", "router", r.ID, "name", r.Name, "reason", string(reason), "detail", clip(detail))
	}
	if reason == TooLarge || rs.conduct.offences.Take(r.ID) == 0 {
		return
	}
	until := rs.opt.Now().Add(offenceWait)
	rs.mu.Lock()
	rs.conduct.shut[r.ID] = until
	rs.mu.Unlock()
	r.ch.Close(fmt.Errorf("%w: %s", errMisbehaves, reason))
}

// shutOut reports whether a router has to wait.
func (rs *Routers) shutOut(id string) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	until, shut := rs.conduct.shut[id]
	if shut && !rs.opt.Now().Before(until) {
		delete(rs.conduct.shut, id)
		shut = false
	}
	return shut
}

// Changes reports whether the router may change its own record once more. One
// that does so again and again keeps others from writing.
func (r *Router) Changes() bool {
	if r.all.conduct.changes.Take(r.ID) == 0 {
		return true
	}
	r.Misbehaves(TooOften, "it changes itself again and again")
	return false
}

// Resyncs reports whether the router may be told everything once more.
func (r *Router) Resyncs() bool {
	if r.all.conduct.resyncs.Take(r.ID) == 0 {
		return true
	}
	r.Misbehaves(TooOften, "it asks to be told everything again and again")
	return false
}

// Recounts waits until the router may be asked once more for all that it carries,
// and reports whether it is still there. The answer takes long to read, and one
// that comes and goes has no more to tell for it.
func (r *Router) Recounts(ctx context.Context) bool {
	for ctx.Err() == nil {
		wait := r.all.conduct.recounts.Take(r.ID)
		if wait == 0 {
			return true
		}
		pause(ctx, wait)
	}
	return false
}

// Writing does something that writes, beside a few others of the same router:
// writes are gathered, and those of one must not be all that are.
func (r *Router) Writing(ctx context.Context, write func() error) error {
	select {
	case r.writes <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.writes }()
	pause(ctx, r.paces.writing.take(r.all.opt.Now(), 1))
	return write()
}

// maxWrites is how many writes of one router are made at a time: who writes at the
// same moment waits for all of them.
const maxWrites = 4

// Say writes a line to the log because of what a router says, if there were not
// too many of the kind. Long values are cut.
func (rs *Routers) Say(routerID string, level slog.Level, text string, args ...any) {
	if rs.conduct.lines.Take(line{routerID, text}) != 0 {
		return
	}
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = clip(arg)
		case error:
			args[i] = clip(arg.Error())
		}
	}
	rs.opt.Log.Log(context.Background(), level, text, append([]any{"router", routerID}, args...)...)
}

// Say is that of [Routers], about this router.
func (r *Router) Say(level slog.Level, text string, args ...any) {
	r.all.Say(r.ID, level, text, args...)
}

// clip is the beginning of a text that somebody else has written.
func clip(s string) string {
	if len(s) <= maxDetail {
		return s
	}
	at := maxDetail
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return s[:at] + "…"
}
