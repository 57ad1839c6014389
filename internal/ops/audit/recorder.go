package audit

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Fact is that an event happened.
type Fact struct {
	Event *Event
	// By is who brought it about, and on what occasion.
	By state.Author
	// Target is what it happened to.
	Target Target
	// Reason is why, in words for who reads the log; empty if there is nothing to say.
	Reason string
}

// Target is a record that something happened to, or what stands for one.
type Target struct{ Kind, ID, Name string }

// To is a record as a target.
func To(d *kind.Def, rec kind.Record) Target {
	return Target{Kind: d.Name, ID: rec.Base().ID, Name: d.Label(rec)}
}

// Entry is what the log says of a fact that is noted with a write, by state.Tx.Tell.
func (f Fact) Entry() *model.AuditEntry {
	return &model.AuditEntry{
		Event: f.Event.Name, Outcome: f.Event.Outcome, Reason: clip(f.Reason, maxReason), Count: 1,
		ActorKind: f.By.Kind, ActorID: f.By.ID, ActorName: clip(f.By.Name, maxText), Address: f.By.Source,
		APISessionID: f.By.Session, Factors: f.By.Factors, Operation: f.By.Operation, RequestID: f.By.Request,
		TargetKind: f.Target.Kind, TargetID: f.Target.ID, TargetName: clip(f.Target.Name, maxText),
	}
}

// Recorder gathers what happens at a controller and writes it to the log a moment
// later, many together. Facts that are alike have one entry with their number. Nobody
// waits for it, and nobody can fill its memory or the store: an event has so many
// entries a minute, and what is beyond is counted in one for its address, or in one
// for all. A nil Recorder takes note of nothing.
//
// The last moment before a controller is killed is lost. What may have been stored or
// not is written again, so that it may be there twice.
type Recorder struct {
	State *state.State
	Now   func() time.Time
	// Counted, if set, is told of facts, by what became of them.
	Counted func(event, result string)

	mu         sync.Mutex
	controller string
	shelves    map[*Event]*shelf
	wake       chan struct{} // has one if there may be something to write
}

// What becomes of a fact.
const (
	resultRecorded = "recorded" // it has an entry
	resultJoined   = "joined"   // it is counted in the entry of others that are alike
	resultCrowded  = "crowded"  // it is counted only, since there are too many
)

const (
	// writePause is how long at least is between two writes, and failPause after one
	// that failed.
	writePause, failPause = 500 * time.Millisecond, 5 * time.Second
	// lookEvery is how often windows are looked at that may be over.
	lookEvery = time.Second
	// closeTime is how long the last write may take.
	closeTime = 3 * time.Second
	// maxHeld is how many facts of an event are held that are not alike.
	maxHeld = 2000
	// maxWide is how many addresses have a number of their own, of an event of which
	// there are too many, and wideWindow how long it is counted.
	maxWide, wideWindow = 20, 10 * time.Minute
	// maxParties is how many there may be of whom it is known what they brought about.
	maxParties = 4096
	// maxText is how many bytes there may be of a text that others give, and maxReason
	// of why.
	maxText, maxReason = 128, 256
	// writeBytes is about how many bytes of entries are in one write.
	writeBytes = maxBlock / 2
	// tooMany is the reason in an entry of what has no entry of its own.
	tooMany = "too many for entries of their own"
)

// NewRecorder returns one that has nothing to tell.
func NewRecorder(st *state.State, now func() time.Time) *Recorder {
	return &Recorder{State: st, Now: now, shelves: map[*Event]*shelf{}, wake: make(chan struct{}, 1)}
}

// At says which controller it is at.
func (r *Recorder) At(controller string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controller = controller
}

// alike is what two facts have in common that have one entry.
type alike struct {
	actorKind, actorID, actorName, address string
	target                                 Target
	reason                                 string
}

// held is facts that are alike.
type held struct {
	alike
	by          state.Author // of the first of them
	count       int64        // that are in no entry
	first, last time.Time    // of these
	due         time.Time    // when they are written, or if there are none, forgotten
	written     bool         // whether there is an entry of such
}

// shelf is what is held of an event.
type shelf struct {
	held map[alike]*held
	wide int  // how many of them are of an address as a whole
	full bool // whether there is no room until something is written

	tokens float64 // how many entries there may be
	filled time.Time
	minute time.Time // when the count by party began
	by     map[string]int
}

// Note takes note of a fact.
func (r *Recorder) Note(f Fact) {
	if r == nil {
		return
	}
	now := r.Now()
	key := f.key()
	r.mu.Lock()
	result, write := r.shelf(f.Event, now).add(f, key, now)
	r.mu.Unlock()
	r.count(f.Event, result)
	if !write {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Recorder) count(e *Event, result string) {
	if r.Counted != nil {
		r.Counted(e.Name, result)
	}
}

// shelf returns that of an event. The caller holds the mutex.
func (r *Recorder) shelf(e *Event, now time.Time) *shelf {
	s := r.shelves[e]
	if s == nil {
		s = &shelf{held: map[alike]*held{}, tokens: float64(e.burst), filled: now, minute: now, by: map[string]int{}}
		r.shelves[e] = s
	}
	return s
}

// key is what facts that are alike have in common. It holds nothing of what it was
// made from, which may be large.
func (f Fact) key() alike {
	return alike{
		actorKind: clip(f.By.Kind, maxText), actorID: clip(f.By.ID, maxText), actorName: clip(f.By.Name, maxText), address: clip(host(f.By.Source), maxText),
		target: Target{clip(f.Target.Kind, maxText), clip(f.Target.ID, maxText), clip(f.Target.Name, maxText)},
		reason: clip(f.Reason, maxReason),
	}
}

// host is an address without its port, which differs from time to time.
func host(address string) string {
	if at, err := netip.ParseAddrPort(address); err == nil {
		return at.Addr().Unmap().String()
	}
	return address
}

// clip is a text that can be shown, and not more of it than so many bytes.
func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most-len(cut)] + cut
	}
	return strings.Clone(strings.ToValidUTF8(text, ""))
}

// cut is the end of a text that is longer.
const cut = "…"

// add takes a fact in. write says that it is to be written soon.
func (s *shelf) add(f Fact, key alike, now time.Time) (result string, write bool) {
	if h := s.held[key]; h != nil {
		h.again(now)
		return resultJoined, !h.due.After(now)
	}
	if !s.admits(f.Event, key, now) {
		s.crowd(key, now).again(now)
		return resultCrowded, false
	}
	h := &held{alike: key, by: f.By, count: 1, first: now, last: now, due: now}
	for _, text := range []*string{&h.by.Operation, &h.by.Request, &h.by.Session, &h.by.Factors} {
		*text = clip(*text, maxText)
	}
	if f.Event.late {
		h.due = now.Add(f.Event.window)
	}
	s.held[key] = h
	return resultRecorded, !f.Event.late
}

func (h *held) again(now time.Time) {
	if h.count == 0 {
		h.first = now
	}
	h.count++
	h.last = now
}

// admits reports whether there may be an entry of its own, and counts it.
func (s *shelf) admits(e *Event, key alike, now time.Time) bool {
	if len(s.held) >= maxHeld {
		if s.full = s.full || !s.forget(); s.full {
			return false
		}
	}
	if now.Sub(s.minute) >= time.Minute || len(s.by) >= maxParties {
		s.minute = now
		clear(s.by)
	}
	party := cmp.Or(key.actorID, network(key.address))
	if e.each > 0 && party != "" && s.by[party] >= e.each {
		return false
	}
	if e.burst > 0 {
		s.tokens = min(float64(e.burst), s.tokens+now.Sub(s.filled).Minutes()*float64(e.minute))
		s.filled = now
		if s.tokens < 1 {
			return false
		}
		s.tokens--
	}
	s.by[party]++
	return true
}

// forget makes room by what is only kept to see whether it happens again.
func (s *shelf) forget() bool {
	before := len(s.held)
	for key, h := range s.held {
		if h.count == 0 {
			delete(s.held, key)
		}
	}
	return len(s.held) < before
}

// crowd returns where facts are counted for which there is no entry: for their
// address, or for all.
func (s *shelf) crowd(key alike, now time.Time) *held {
	wide := alike{actorKind: state.Nobody.Kind, address: network(key.address), reason: tooMany}
	h := s.held[wide]
	if h == nil && s.wide >= maxWide {
		wide.address = ""
		h = s.held[wide]
	}
	if h == nil {
		h = &held{alike: wide, due: now.Add(wideWindow)}
		s.held[wide] = h
		s.wide++
	}
	return h
}

// network is what counts as one address: all of IPv6's that one customer usually has.
func network(address string) string {
	a, err := netip.ParseAddr(address)
	if err != nil || !a.Is6() || a.Is4In6() {
		return address
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return address
	}
	return p.String()
}

// told is facts that are being written.
type told struct {
	event       *Event
	held        *held
	count       int64
	first, last time.Time
	entry       *model.AuditEntry
}

// take returns what is to be written, the earliest first, and forgets what is not
// likely to come again. all says that no window counts.
func (r *Recorder) take(all bool) []told {
	now := r.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []told
	for e, s := range r.shelves {
		s.full = false
		for key, h := range s.held {
			switch {
			case h.due.After(now) && !all:
			case h.count > 0:
				due = append(due, told{e, h, h.count, h.first, h.last, h.entry(e, r.controller)})
				h.count = 0
				if h.due = now.Add(e.window); h.written || h.reason == tooMany || e.late {
					s.drop(key, h)
				}
				h.written = true
			default:
				s.drop(key, h)
			}
		}
	}
	slices.SortFunc(due, func(a, b told) int {
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.event.Name, b.event.Name), cmp.Compare(a.held.address, b.held.address))
	})
	return due
}

func (s *shelf) drop(key alike, h *held) {
	delete(s.held, key)
	if h.reason == tooMany {
		s.wide--
	}
}

// entry is what the log says of them.
func (h *held) entry(e *Event, controller string) *model.AuditEntry {
	first, last := h.first.UTC().Truncate(time.Millisecond), h.last.UTC().Truncate(time.Millisecond)
	return &model.AuditEntry{
		Event: e.Name, Outcome: e.Outcome, Reason: h.reason, Count: h.count, FirstAt: &first, LastAt: &last, ControllerID: controller,
		ActorKind: h.actorKind, ActorID: h.actorID, ActorName: h.actorName, Address: h.address,
		APISessionID: h.by.Session, Factors: h.by.Factors, Operation: h.by.Operation, RequestID: h.by.Request,
		TargetKind: h.target.Kind, TargetID: h.target.ID, TargetName: h.target.Name,
	}
}

// Entry is one of a fact that is written with something else, and not by a Recorder.
func Entry(f Fact, controller string, at time.Time) *model.AuditEntry {
	h := &held{alike: f.key(), by: f.By, count: 1, first: at, last: at}
	return h.entry(f.Event, controller)
}

// back takes facts in again that could not be written, as far as there is room.
func (r *Recorder) back(facts []told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range facts {
		s := r.shelves[t.event]
		h := s.held[t.held.alike]
		switch {
		case h != nil:
		case t.held.reason == tooMany || len(s.held) >= maxHeld:
			h = s.crowd(t.held.alike, t.last)
		default:
			h = t.held
			s.held[h.alike] = h
		}
		if h.count == 0 || t.first.Before(h.first) {
			h.first = t.first
		}
		if h.count == 0 || t.last.After(h.last) {
			h.last = t.last
		}
		h.count += t.count
		if h.due.After(t.first) && h.reason != tooMany {
			h.due = t.first
		}
	}
}

// Run writes what happens until ctx ends. What is left then Close writes.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-tick.C:
		}
		pause := writePause
		if err := r.write(ctx, false); err != nil && ctx.Err() == nil {
			r.State.Logger().Warn("what happened could not be noted in the audit log; it is tried again", "error", err)
			pause = failPause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// Close writes what is left, whatever its window.
func (r *Recorder) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := r.write(ctx, true); err != nil {
		r.State.Logger().Error("what happened last is not in the audit log", "error", err)
	}
}

// write writes what is to be written now.
func (r *Recorder) write(ctx context.Context, all bool) error {
	due := r.take(all)
	for len(due) > 0 {
		some := due[:fill(due)]
		err := r.State.UpdateSessions(ctx, keeping, func(tx *state.Tx) error {
			for _, t := range some {
				tx.Tell(t.entry)
			}
			return nil
		})
		if err != nil {
			r.back(due)
			return err
		}
		due = due[len(some):]
	}
	return nil
}

// fill is how many of them go into one write.
func fill(due []told) int {
	const other = 400 // bytes of an entry beside what is counted
	size := 0
	for i, t := range due {
		e := t.entry
		size += other + len(e.Reason) + len(e.ActorName) + len(e.TargetName) + len(e.ActorID) + len(e.TargetID)
		if size > writeBytes && i > 0 {
			return i
		}
	}
	return len(due)
}
