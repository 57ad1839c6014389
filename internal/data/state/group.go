package state

import (
	"context"
	"time"

	"netkeep/internal/data/store"
	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
)

// group is the writes that go into one commit.
type group struct {
	changes
	base    *Snapshot // what the commit is guarded by
	draft   *Snapshot // base with all changes
	now     time.Time
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
// commit is full, or one changes what another has changed: each record of a
// commit has one author. One that fails leaves no trace. rest is what did not
// fit.
func (s *State) prepare(lane kind.Lane, reqs []*request, most int) (g *group, rest []*request) {
	base := s.Snapshot()
	now := s.opt.Now().UTC().Truncate(time.Microsecond)
	if !now.After(base.Time) {
		now = base.Time.Add(time.Microsecond) // each commit has a time of its own
	}
	g = &group{changes: newChanges(), base: base, draft: base, now: now}
	limits := s.store.Limits()
	for i, req := range reqs {
		if len(g.answers) == most {
			return g, reqs[i:]
		}
		tx := newTx(g.draft, s.set, lane, now.Truncate(time.Millisecond), s.opt.Frozen)
		err := req.run(tx)
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
		case g.overlaps(tx.changes), !g.fits(store.Limits{Ops: limits.Ops - tx.count, Bytes: limits.Bytes - tx.bytes}):
			return g, reqs[i:]
		default:
			g.add(tx, req)
		}
	}
	return g, nil
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

// requests returns who waits for the group.
func (g *group) requests() []*request {
	reqs := make([]*request, len(g.answers))
	for i, a := range g.answers {
		reqs[i] = a.req
	}
	return reqs
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
	// Once begun it is not given up: its answer says what memory must be.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	rev, err := s.put(ctx, lane, g)
	if err != nil {
		return err
	}
	next := g.draft
	if next.Rev = rev; lane == kind.Model {
		next.head, next.Time = rev, g.now
	}
	changed := make([]Ref, 0, g.count)
	for c := range g.effective() {
		changed = append(changed, Ref{c.def, c.id})
		s.unreadable.set(c.key(), false)
		if c.row != nil {
			c.row.rev = rev
		}
		if lane == kind.Session {
			s.ahead[c.key()] = rev
		}
	}
	s.publish(next, changed)
	s.await(rev)
	return nil
}

// put writes the group to the store, and says so.
func (s *State) put(ctx context.Context, lane kind.Lane, g *group) (rev store.Rev, err error) {
	start := time.Now()
	head := store.Head{Time: g.now, Writes: g.writes}
	if lane == kind.Model {
		rev, err = s.store.Commit(ctx, g.base.head, head, g.ops())
	} else {
		rev, err = s.store.Put(ctx, head, g.ops())
	}
	s.opt.Stored(Stored{Lane: lane, Writes: len(g.answers), Start: start, Took: time.Since(start), Err: err, group: g})
	return rev, err
}
