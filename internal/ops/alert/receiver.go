package alert

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/outlet"
)

const (
	// sameWithin is how long what is the same is not told again, unless the opposite was
	// told meanwhile.
	sameWithin = 5 * time.Minute
	// stale is how old an alert may be: nobody wants to be woken by the day before.
	stale = 24 * time.Hour
	// burst is how many alerts one receiver may be sent at once, and each is how often
	// there may be one more.
	burst = 30
	each  = 20 * time.Second
	// attempts is how often an alert is sent that the receiver does not understand.
	attempts = 3
	// maxSaid is how much of an answer is shown.
	maxSaid = 200
)

// Receiver posts entries of some events to a URL. It is an outlet, and its own position.
type Receiver struct {
	Name    string
	URL     string
	Secret  string
	On      []string
	Network string
	// ID is that of its record.
	ID     string
	State  *state.State
	Client *egress.Client
	Now    func() time.Time
	Log    *slog.Logger

	mu       sync.Mutex
	done     int64               // number of the last entry that need not be looked at again
	last     map[thing]time.Time // when something was last sent
	places   float64             // how many may be sent at once
	filled   time.Time
	misread  int   // how often the next one was not understood
	dropped  int64 // since the last that was taken
	repeated int64
	sent     int64
	lost     int64
}

// Counts is what became of alerts at this controller since it started.
type Counts struct{ Sent, Repeated, Dropped int64 }

// Counts returns them.
func (r *Receiver) Counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Counts{Sent: r.sent, Repeated: r.repeated, Dropped: r.lost}
}

// Host is where alerts go, without what only the receiver should know.
func (r *Receiver) Host() string {
	u, err := url.Parse(r.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// Load is for outlet.Position. One that is new begins with what comes.
func (r *Receiver) Load(ctx context.Context) (number int64, err error) {
	snap, err := r.State.Current(ctx)
	if err != nil {
		return 0, err
	}
	if rec, ok := model.AlertReceivers.Get(snap, r.ID); ok {
		return rec.Sent, nil
	}
	number = audit.Head(snap).Last
	return number, r.note(ctx, func(rec *model.AlertReceiver) { rec.Sent = number })
}

// Save is for outlet.Position.
func (r *Receiver) Save(ctx context.Context, number int64) error {
	return r.note(ctx, func(rec *model.AlertReceiver) { rec.Sent = number })
}

// note changes the record.
func (r *Receiver) note(ctx context.Context, change func(*model.AlertReceiver)) error {
	return r.State.UpdateSessions(ctx, by, func(tx *state.Tx) error {
		if _, ok := model.AlertReceivers.Get(tx, r.ID); !ok {
			rec := &model.AlertReceiver{Meta: kind.Meta{ID: r.ID}}
			change(rec)
			return model.AlertReceivers.Create(tx, rec)
		}
		return model.AlertReceivers.Edit(tx, r.ID, func(rec *model.AlertReceiver) error { change(rec); return nil })
	})
}

// by is who writes what this package does.
var by = state.Program("alerts")

// Close is for outlet.Outlet.
func (r *Receiver) Close() {}

// Send is for outlet.Outlet. What was taken is not sent again after an error.
func (r *Receiver) Send(ctx context.Context, entries []outlet.Entry) error {
	for _, e := range entries {
		a, ok := r.next(e.Record)
		if !ok {
			continue
		}
		err := r.post(ctx, a)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !r.gives(err) {
			r.failed(ctx, err, false)
			return err
		}
		if err != nil {
			r.failed(ctx, err, true)
			r.Log.Error("an alert is not understood where it was sent; the others go on without it", "receiver", r.Name, "alert", a.ID, "error", err)
		} else {
			r.taken(ctx, a)
		}
		r.pass(e.Record.Number)
	}
	return nil
}

// next is the alert that an entry is, if it is to be sent.
func (r *Receiver) next(e *model.AuditEntry) (a Alert, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Number <= r.done {
		return a, false
	}
	now := r.Now()
	a = of(e, r.Network)
	switch {
	case !slices.Contains(r.On, e.Event):
	case now.Sub(e.CreatedAt.Time()) > stale:
		r.drop()
	case r.repeats(a, now):
		r.repeated++
	case !r.room(now):
		r.drop()
	default:
		a.Dropped = r.dropped
		return a, true
	}
	r.done = e.Number
	return a, false
}

// drop counts an alert that is given up. The caller holds the mutex.
func (r *Receiver) drop() {
	r.dropped++
	r.lost++
}

// repeats reports whether the same was told a moment ago. The caller holds the mutex.
func (r *Receiver) repeats(a Alert, now time.Time) bool {
	for what, at := range r.last {
		if now.Sub(at) >= sameWithin {
			delete(r.last, what)
		}
	}
	_, told := r.last[a.what()]
	return told
}

// thing is what alerts have in common that are the same.
type thing struct{ event, kind, id, name, actor, address, reason string }

func (a Alert) what() thing {
	return thing{a.Event, a.TargetKind, a.TargetID, a.TargetName, a.Actor, a.Address, a.Reason}
}

// opposites are events one of which is over with the other.
var opposites = map[string]string{
	audit.RouterOffline.Name: audit.RouterOnline.Name, audit.RouterOnline.Name: audit.RouterOffline.Name,
	audit.ControllerGone.Name: audit.ControllerBack.Name, audit.ControllerBack.Name: audit.ControllerGone.Name,
	audit.DiskLow.Name: audit.DiskEnough.Name, audit.DiskEnough.Name: audit.DiskLow.Name,
}

// told notes that something was sent, upon which its opposite is news again: whoever
// was told last that a router is offline must be told that it is not. The caller holds
// the mutex.
func (r *Receiver) told(a Alert, now time.Time) {
	if r.last == nil {
		r.last = map[thing]time.Time{}
	}
	if other := opposites[a.Event]; other != "" {
		maps.DeleteFunc(r.last, func(t thing, _ time.Time) bool {
			return t.event == other && t.kind == a.TargetKind && t.id == a.TargetID && t.name == a.TargetName
		})
	}
	r.last[a.what()] = now
}

// room reports whether one more may be sent, and stays so until it is: what is tried
// again takes no other place. The caller holds the mutex.
func (r *Receiver) room(now time.Time) bool {
	if r.filled.IsZero() {
		r.places = burst
	} else {
		r.places = min(burst, r.places+max(0, now.Sub(r.filled)).Seconds()/each.Seconds())
	}
	r.filled = now
	return r.places >= 1
}

// taken notes that an alert is where it should be.
func (r *Receiver) taken(ctx context.Context, a Alert) {
	now := r.Now().UTC()
	r.mu.Lock()
	r.told(a, now)
	r.places--
	r.sent++
	gone := r.dropped
	r.dropped = 0
	r.mu.Unlock()
	r.tell(ctx, func(rec *model.AlertReceiver) {
		rec.Delivered, rec.DeliveredAt, rec.Error = rec.Delivered+1, &now, ""
		rec.Dropped += gone
	})
}

// failed notes that one is not, when that begins or says something else.
func (r *Receiver) failed(ctx context.Context, err error, gaveUp bool) {
	now := r.Now().UTC()
	if gaveUp {
		r.mu.Lock()
		r.drop()
		r.mu.Unlock()
	}
	if rec, ok := model.AlertReceivers.Get(r.State.Snapshot(), r.ID); ok && rec.Error == err.Error() {
		return
	}
	r.tell(ctx, func(rec *model.AlertReceiver) { rec.FailedAt, rec.Error = &now, err.Error() })
}

// tell changes the record for those who look. That it cannot be is no reason to send an
// alert twice.
func (r *Receiver) tell(ctx context.Context, change func(*model.AlertReceiver)) {
	if err := r.note(ctx, change); err != nil && ctx.Err() == nil {
		r.Log.Warn("how it stands with a receiver of alerts could not be noted", "receiver", r.Name, "error", err)
	}
}

// pass has an entry not looked at again.
func (r *Receiver) pass(number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done, r.misread = number, 0
}

// gives reports whether an alert is given up after an error: one that the receiver will
// never understand keeps all others back. Whom it does not know, and what it has no place
// for, is for people to mend.
func (r *Receiver) gives(err error) bool {
	status, ok := errors.AsType[*egress.StatusError](err)
	if !ok || !slices.Contains([]int{http.StatusBadRequest, http.StatusNotAcceptable, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}, status.Status) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.misread++
	return r.misread >= attempts
}

// post sends an alert once.
func (r *Receiver) post(ctx context.Context, a Alert) error {
	_, err := r.try(ctx, a)
	return err
}

func (r *Receiver) try(ctx context.Context, a Alert) ([]byte, error) {
	header, body, err := a.request(r.Secret, r.Now())
	if err != nil {
		return nil, err
	}
	return r.Client.Post(ctx, r.URL, header, body)
}

// Tried is what came of a test.
type Tried struct {
	Took   time.Duration
	Answer string // what the receiver said, as far as it can be shown
	Err    error
}

// Test sends an alert of no event past the queue.
func (r *Receiver) Test(ctx context.Context, who string) Tried {
	began := r.Now()
	a := Alert{ID: r.Network + "-" + state.NewID(), Event: Test, At: began.UTC().Truncate(time.Millisecond), Actor: who, Network: r.Network}
	a.Text = "netkeep: this is a test of alerts to " + r.Name
	answer, err := r.try(ctx, a)
	return Tried{Took: r.Now().Sub(began), Answer: shown(answer), Err: err}
}

// shown is as much of an answer as people should see.
func shown(answer []byte) string {
	text := strings.ToValidUTF8(string(answer[:min(len(answer), maxSaid)]), "")
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, text))
}
