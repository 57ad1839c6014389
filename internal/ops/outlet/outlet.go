// Package outlet tells others of entries of the audit log as they happen: a file,
// standard output, a collector of syslog, an HTTP endpoint, one of OpenTelemetry. It
// owns their forms, and who follows the log for each: entries go out in their order and
// at least once, from where it was before a restart, and what is missing is said. It
// imports model, data/state, ops/audit and ops/egress, and knows nothing of duties or
// settings.
package outlet

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/egress"
)

// Entry is one that goes out.
type Entry struct {
	Record *model.AuditEntry
	JSON   []byte // as the API shows it
	lost   int64  // how many others it stands for, which are missing
}

// Outlet is where entries go.
type Outlet interface {
	// Send returns when entries are where they go. After an error they are sent again.
	Send(ctx context.Context, entries []Entry) error
	Close()
}

// doubtful is an outlet whose other end does not say what it has got.
type doubtful interface {
	// Sure is the number of the last entry that is taken to be there, and lost is
	// closed when those after it are to be sent again.
	Sure() (number int64, lost <-chan struct{})
}

// choosy is an outlet whose other end may take some of what is sent and say how many
// it did not.
type choosy interface {
	Refused() int64
}

// refusal says that the other end will not take an entry, however often it is sent. It
// has taken those before it.
type refusal struct {
	entry Entry
	err   error
}

func (r *refusal) Error() string { return r.err.Error() }

func (r *refusal) Unwrap() error { return r.err }

// Position is where an outlet keeps how far it is.
type Position interface {
	Load(ctx context.Context) (number int64, err error)
	Save(ctx context.Context, number int64) error
}

const (
	// maxBatch and batchBytes are how many entries go out at once.
	maxBatch, batchBytes = 500, 1 << 20
	// againAfter is how long to wait before something is sent again, and againMost
	// what that grows to.
	againAfter, againMost = time.Second, time.Minute
	// saveEvery is how often it is noted how far an outlet is.
	saveEvery = 5 * time.Second
	// maxInRow is how many entries are passed by of which not even a word is taken.
	maxInRow = 3
)

// Follower reads the log and has an outlet send it.
type Follower struct {
	Name   string
	Log    *audit.Log
	Outlet Outlet
	At     Position
	// Archive reads what the store does not have any more; nil if nobody can.
	Archive func(from, to int64) iter.Seq2[audit.Line, error]
	// Again is how long to wait before something is sent again, which doubles up to a
	// minute; a second if 0.
	Again  time.Duration
	Now    func() time.Time
	Logger *slog.Logger

	mu     sync.Mutex
	sent   int64
	works  bool
	since  time.Time // when it began to fail; zero while it does not
	missed int64
	passed int64

	saved   int64
	savedAt time.Time
	inRow   int // entries that were refused one after the other, and what stood for them
}

// Figures is how an outlet is.
type Figures struct {
	Name    string
	Behind  int64         // entries that have not gone out; 0 if another controller sends them
	Failing time.Duration // for how long nothing could be sent
	Missed  int64         // entries that were gone before they could be sent
	Refused int64         // entries that the other end would not take, so that the others went on without
}

// Figures returns how the outlet is.
func (f *Follower) Figures() Figures {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := Figures{Name: f.Name, Missed: f.missed, Refused: f.passed}
	if c, ok := f.Outlet.(choosy); ok {
		out.Refused += c.Refused()
	}
	if f.works {
		out.Behind = max(0, audit.Head(f.Log.State.Snapshot()).Last-f.sent)
	}
	if !f.since.IsZero() {
		out.Failing = max(f.Now().Sub(f.since), 1)
	}
	return out
}

// Run sends entries until ctx ends. What fails is tried again, and costs nobody else
// anything.
func (f *Follower) Run(ctx context.Context) {
	defer f.Outlet.Close()
	wake := make(chan struct{}, 1)
	go func() {
		sub := f.Log.State.Subscribe(model.AuditBlocks.Def).Bare()
		for {
			if _, err := sub.Next(ctx); err != nil {
				return
			}
			select {
			case wake <- struct{}{}:
			default:
			}
		}
	}()
	again := cmp.Or(f.Again, againAfter)
	at, wait := int64(-1), again
	for ctx.Err() == nil {
		more, err := f.step(ctx, &at)
		f.note(ctx, at, err)
		switch {
		case err != nil:
			pause(ctx, max(wait, asked(err)))
			wait = min(2*wait, againMost)
			continue
		case !more:
			f.await(ctx, wake, &at)
		}
		wait = again
	}
	f.note(ctx, -1, nil)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = f.save(last, at, true) // or entries go out twice
}

// asked is how long the other end wants to be left alone.
func asked(err error) time.Duration {
	if status, ok := errors.AsType[*egress.StatusError](err); ok {
		return status.After
	}
	return 0
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// await waits until there may be more to send.
func (f *Follower) await(ctx context.Context, wake <-chan struct{}, at *int64) {
	var lost <-chan struct{}
	if d, ok := f.Outlet.(doubtful); ok {
		_, lost = d.Sure()
	}
	select {
	case <-wake:
	case <-lost:
		*at, _ = f.Outlet.(doubtful).Sure()
	case <-time.After(saveEvery):
	case <-ctx.Done():
	}
}

// note remembers how far it is and whether it fails, and says so when that changes.
func (f *Follower) note(ctx context.Context, at int64, err error) {
	f.mu.Lock()
	before := f.since
	f.sent, f.works = at, at >= 0
	switch {
	case ctx.Err() != nil || err == nil:
		f.since = time.Time{}
	case before.IsZero():
		f.since = f.Now()
	}
	f.mu.Unlock()
	switch {
	case ctx.Err() != nil:
	case err != nil && before.IsZero():
		f.Logger.Error("audit entries cannot be sent; they wait and are tried again", "outlet", f.Name, "error", err)
	case err == nil && !before.IsZero():
		f.Logger.Info("audit entries are sent again", "outlet", f.Name, "after", f.Now().Sub(before).Truncate(time.Second).String())
	}
}

// step sends what comes next. more is whether there may be others.
func (f *Follower) step(ctx context.Context, at *int64) (more bool, err error) {
	if *at < 0 {
		if *at, err = f.At.Load(ctx); err != nil {
			*at = -1
			return false, err
		}
		f.saved = *at
	}
	head := audit.Head(f.Log.State.Snapshot())
	if *at > head.Last { // the store was restored from a snapshot
		f.Logger.Warn("the audit log ends before what was sent of it, as after a restore; what there is goes out again", "outlet", f.Name, "sent", *at, "last", head.Last)
		*at = audit.First(head) - 1
	}
	if *at == head.Last {
		return false, f.save(ctx, *at, false)
	}
	entries, to, err := f.next(ctx, *at+1, head)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 {
		return true, nil
	}
	if err := f.Outlet.Send(ctx, entries); err != nil {
		if r, ok := errors.AsType[*refusal](err); ok {
			return true, f.pass(ctx, at, entries, r)
		}
		if d, ok := f.Outlet.(doubtful); ok {
			*at, _ = d.Sure()
		}
		return false, err
	}
	f.went(entries)
	*at = to
	return true, f.save(ctx, to, false)
}

// went counts entries that went out, for those that they stand for.
func (f *Follower) went(entries []Entry) {
	if len(entries) > 0 {
		f.inRow = 0
	}
	for _, e := range entries {
		if e.lost > 0 {
			f.mu.Lock()
			f.missed += e.lost
			f.mu.Unlock()
			f.Logger.Error("audit entries were gone before they could be sent", "outlet", f.Name, "which", e.Record.TargetName)
		}
	}
}

// pass goes on without an entry that is refused: it would keep all others back for
// ever. One that is short goes out in its place. Where that is refused too it may be all
// that is: after some in a row it is a failure like any other.
func (f *Follower) pass(ctx context.Context, at *int64, entries []Entry, r *refusal) error {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Record == r.entry.Record })
	if f.went(entries[:i]); i > 0 {
		*at = entries[i-1].Record.Number
	}
	number := r.entry.Record.Number
	err := f.Outlet.Send(ctx, []Entry{f.missing(number, number, "it was refused: "+r.Error())})
	_, refused := errors.AsType[*refusal](err)
	switch {
	case refused && f.inRow < maxInRow:
		f.inRow++
	case err != nil:
		return err
	default:
		f.inRow = 0
	}
	*at = number
	f.mu.Lock()
	f.passed += max(1, r.entry.lost)
	f.mu.Unlock()
	f.Logger.Error("an audit entry is refused where it was sent; the others go on without it", "outlet", f.Name, "number", number, "bytes", len(r.entry.JSON), "error", r.err)
	return f.save(ctx, number, false)
}

// save notes how far it is, now and then.
func (f *Follower) save(ctx context.Context, at int64, now bool) error {
	if d, ok := f.Outlet.(doubtful); ok {
		sure, _ := d.Sure()
		at = min(at, sure)
	}
	if at <= f.saved || !now && f.Now().Sub(f.savedAt) < saveEvery {
		return nil
	}
	if err := f.At.Save(ctx, at); err != nil {
		return err
	}
	f.saved, f.savedAt = at, f.Now()
	return nil
}

// next reads the entries from a number on, some of them, and up to which that is. What
// is nowhere has an entry in its place that says so.
func (f *Follower) next(ctx context.Context, from int64, head *model.AuditChain) (entries []Entry, to int64, err error) {
	to = from - 1
	bytes := 0
	add := func(line audit.Line) {
		record, err := line.Entry()
		if err != nil {
			return // it is as good as missing
		}
		if record.Number > to+1 {
			entries = append(entries, f.missing(to+1, record.Number-1, ""))
		}
		entries = append(entries, Entry{Record: record, JSON: render(record)})
		bytes += len(entries[len(entries)-1].JSON)
		to = record.Number
	}
	// What was forgotten meanwhile may be in the archive.
	moved := func() bool { return audit.First(audit.Head(f.Log.State.Snapshot())) > audit.First(head) }
	lines, end := f.Log.Read(ctx, from, head.Last), head.Last
	if first := audit.First(head); from < first {
		lines, end = func(func(audit.Line, error) bool) {}, first-1
		if f.Archive != nil {
			lines = f.Archive(from, end)
		}
	}
	for line, err := range lines {
		if err != nil {
			return nil, 0, err
		}
		if line.Number > to+1 && moved() {
			return entries, to, nil
		}
		if add(line); len(entries) >= maxBatch || bytes >= batchBytes {
			return entries, to, nil
		}
	}
	if to < end && !moved() {
		entries, to = append(entries, f.missing(to+1, end, "")), end
	}
	return entries, to, nil
}

// missing is an entry that says which others are not there any more.
func (f *Follower) missing(from, to int64, reason string) Entry {
	now := kind.MomentOf(f.Now())
	record := &model.AuditEntry{
		Meta: kind.Meta{ID: audit.ID(to), CreatedAt: now, UpdatedAt: now}, Number: to,
		Event: Missing, Reason: reason, ActorKind: "program", ActorName: "audit",
		TargetKind: model.AuditEntries.Name, TargetID: audit.ID(from), TargetName: "entries " + audit.ID(from) + " to " + audit.ID(to),
	}
	return Entry{Record: record, JSON: render(record), lost: to - from + 1}
}

// Missing is the event of an entry that stands for others, which are not there.
const Missing = "missing"

var columns = model.All.Columns(model.AuditEntries.Def)

// render is an entry as the API shows it.
func render(record *model.AuditEntry) []byte {
	out := []byte{'{'}
	for _, c := range columns {
		out = kind.AppendMember(out, c.Name, func(dst []byte) []byte { return c.Append(dst, nil, record) })
	}
	return append(out, '}')
}
