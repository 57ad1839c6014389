package state

import (
	"context"
	"fmt"
	"slices"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// group is the writes that go into one commit.
type group struct {
	changes
	base    *Snapshot // what the commit is guarded by
	draft   *Snapshot // base with all changes
	clock   *clock
	chain   Chain // where the journal ends with the group; nil if there is none
	kept    bool  // whether it has entries of the group
	ends    bool  // whether the commit says where that is
	end     string
	writes  []store.Write
	answers []answer
}

// answer is what a request gets once the group is stored.
type answer struct {
	req *request
	err error
}

var errTooLarge = fault.New(fault.CodeTooLarge, "the change is larger than one commit can hold; make it in several steps")

// prepare runs closures one after the other, up to most of them and until the
// commit would no longer be quick, or one changes what another has changed: each
// record of a commit has one author. One that fails leaves no trace, and one that
// is large has a commit of its own. rest is what did not fit.
func (s *State) prepare(lane kind.Lane, reqs []*request, most int) (g *group, rest []*request) {
	base := s.Snapshot()
	g = &group{base: base, draft: base, end: base.end, clock: newClock(s.opt.Now(), base.Time, s.stamped)}
	defer func() { s.stamped = g.clock.time() }()
	if s.opt.Journal != nil {
		g.chain = s.opt.Journal.Continue(base)
	}
	return g, s.fill(g, lane, reqs, most)
}

// fill runs closures into the group and returns what did not fit.
func (s *State) fill(g *group, lane kind.Lane, reqs []*request, most int) (rest []*request) {
	limits, quick := s.store.Limits(), s.store.Quick()
	for i, req := range reqs {
		if len(g.answers) == most {
			return reqs[i:]
		}
		tx := newTx(g.draft, s.set, lane, g.clock, s.opt.Seal, s.opt.Frozen)
		var chain Chain
		err := req.serve(tx)
		if err == nil && !req.part {
			err = s.judge(req.ctx, tx, req.by)
		}
		if err == nil {
			chain, err = tx.keep(g.chain, req.by)
		}
		if err == nil && !tx.fits(limits) {
			err = errTooLarge
		}
		switch {
		case err != nil && g.count == 0:
			req.done <- err
		case err != nil:
			// It may have failed because of what is not stored yet, so it
			// shares the group's fate.
			g.answers = append(g.answers, answer{req, err})
		case g.count > 0 && (g.overlaps(tx.changes) || !g.fits(store.Limits{Ops: quick.Ops - tx.count, Bytes: quick.Bytes - tx.bytes})):
			return reqs[i:]
		default:
			g.add(tx, req)
			if chain != nil {
				g.chain, g.kept = chain, true
			}
		}
	}
	return nil
}

func (g *group) add(tx *Tx, req *request) {
	g.answers = append(g.answers, answer{req: req})
	if tx.count == 0 {
		return
	}
	g.merge(tx.changes)
	g.bytes += req.by.Size()
	g.draft = tx.Snapshot
	g.writes = append(g.writes, store.Write{Author: req.by, Ops: tx.count})
}

// commits reports whether the group is a commit: changes of the model are, and
// whatever moves the end of the journal, which commits say.
func (g *group) commits(lane kind.Lane) bool { return lane == kind.Model || g.ends }

// requests returns who waits for the group.
func (g *group) requests() []*request {
	reqs := make([]*request, len(g.answers))
	for i, a := range g.answers {
		reqs[i] = a.req
	}
	return reqs
}

// lengthen has all who wait for the group wait for longer.
func (g *group) lengthen(by time.Duration) {
	for _, a := range g.answers {
		a.req.lengthen(by)
	}
}

// answer ends the group. If it was not stored nobody's own result counts.
func (g *group) answer(err error) {
	for _, a := range g.answers {
		if err != nil {
			a.err = err
		}
		a.req.done <- a.err
	}
}

// commit writes the group to the store and then publishes it.
func (s *State) commit(ctx context.Context, lane kind.Lane, g *group) error {
	if g.count == 0 {
		return nil
	}
	if err := g.close(s); err != nil {
		return err
	}
	// Once begun it is not given up: its answer says what memory must be.
	patience := s.opt.Patience
	if !g.fits(s.store.Quick()) {
		patience += largePatience
		g.lengthen(largePatience)
	}
	storing, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	at, err := s.put(storing, lane, g)
	if err != nil {
		return err
	}
	s.await(at.Rev)
	if err := s.reach(ctx, at); err != nil {
		return fmt.Errorf("it is stored, but memory is behind: %v", err) // whatever the reason says of a store
	}
	s.adopt(lane, g, at.Rev)
	return nil
}

// adopt publishes a group that the store has, all that is before it in the log
// being in memory.
func (s *State) adopt(lane kind.Lane, g *group, rev store.Rev) {
	cur := s.Snapshot()
	if rev <= cur.Rev {
		return // a load was faster
	}
	next := g.draft
	if cur != g.base { // others wrote in between
		next = g.again(cur)
	}
	if next.Rev = rev; g.commits(lane) {
		next.head, next.Time, next.end = rev, g.clock.time(), g.end
	}
	for c := range g.effective() {
		s.unreadable.set(c.key, false)
		if c.row != nil {
			c.row.rev = rev
		}
	}
	s.publish(g.event(cur, next))
}

// again makes the changes of the group on another snapshot, in which the
// records that they replace are the same.
func (g *group) again(on *Snapshot) *Snapshot {
	w := newDraft(on)
	for c := range g.effective() {
		w.set(c)
	}
	return w.Snapshot
}

// event is the group as subscribers see it.
func (g *group) event(before, after *Snapshot) Event {
	ev := Event{Rev: after.Rev, After: after, Time: g.clock.time(), before: before.mark}
	rest := slices.AppendSeq(make([]change, 0, g.count), g.effective())
	for _, w := range g.writes {
		ev.add(w.Author, rest[:w.Ops])
		rest = rest[w.Ops:]
	}
	return ev
}

// put writes the group to the store, and says so.
func (s *State) put(ctx context.Context, lane kind.Lane, g *group) (at store.Written, err error) {
	start := time.Now()
	head := store.Head{Time: g.clock.time(), Writes: g.writes}
	if g.commits(lane) {
		head.End = g.end
		at, err = s.store.Commit(ctx, g.base.head, head, g.ops(lane))
	} else {
		at, err = s.store.Put(ctx, head, g.ops(lane))
	}
	s.opt.Stored(Stored{Lane: lane, Writes: len(g.answers), Start: start, Took: time.Since(start), Err: err, group: g})
	return at, err
}
