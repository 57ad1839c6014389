package storetest

import (
	"context"
	"errors"
	"io"
	"sync"

	"netkeep.internal/internal/data/store"
)

// Method names a method of store.Store.
type Method string

// The methods that faults can be set for.
const (
	Load     Method = "Load"
	Commit   Method = "Commit"
	Put      Method = "Put"
	Get      Method = "Get"
	Last     Method = "Last"
	Witness  Method = "Witness"
	Follow   Method = "Follow"
	Compact  Method = "Compact"
	Snapshot Method = "Snapshot"
)

// ErrInjected is an error for faults that need no other.
var ErrInjected = errors.New("injected fault")

// Faulty is a store that does what it is told to do wrong. Faults of a method
// wait in line: each call takes one. So do faults of the feed: each batch that
// any Follow is about to deliver takes one.
type Faulty struct {
	store.Store

	mu    sync.Mutex
	calls map[Method][]callFault
	feed  []feedFault
}

var _ store.Store = (*Faulty)(nil)

// NewFaulty returns s with no faults yet.
func NewFaulty(s store.Store) *Faulty {
	return &Faulty{Store: s, calls: make(map[Method][]callFault)}
}

type callFault struct {
	gate *Gate // to pass before the call
	err  error // returned instead of the answer
	lose bool  // the call happens, its answer is lost
}

type feedFault struct {
	gate   *Gate
	err    error // Follow ends with it instead of delivering
	copies int   // how often the batch is delivered
}

// Gate holds a call or a batch until it is opened.
type Gate struct {
	reached, opened chan struct{}
	once            sync.Once
}

func newGate() *Gate {
	return &Gate{reached: make(chan struct{}), opened: make(chan struct{})}
}

// Reached is closed when something waits at the gate.
func (g *Gate) Reached() <-chan struct{} { return g.reached }

// Open lets pass what waits. It may be called before anything does, and twice.
func (g *Gate) Open() { g.once.Do(func() { close(g.opened) }) }

func (g *Gate) pass(ctx context.Context) error {
	if g == nil {
		return nil
	}
	close(g.reached)
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// FailNext makes the next call of m return err without reaching the store.
func (f *Faulty) FailNext(m Method, err error) { f.push(m, callFault{err: err}) }

// LoseNext lets the next call of m happen and returns err instead of its
// answer.
func (f *Faulty) LoseNext(m Method, err error) { f.push(m, callFault{err: err, lose: true}) }

// BlockNext holds the next call of m before it reaches the store.
func (f *Faulty) BlockNext(m Method) *Gate {
	g := newGate()
	f.push(m, callFault{gate: g})
	return g
}

// DropNext keeps the next batch of the feed from being delivered.
func (f *Faulty) DropNext() { f.pushFeed(feedFault{copies: 0}) }

// RepeatNext delivers the next batch of the feed twice.
func (f *Faulty) RepeatNext() { f.pushFeed(feedFault{copies: 2}) }

// HoldNext holds the next batch of the feed, and with it all that follow.
func (f *Faulty) HoldNext() *Gate {
	g := newGate()
	f.pushFeed(feedFault{gate: g, copies: 1})
	return g
}

// EndNext ends Follow with err, store.ErrCompacted say, instead of delivering
// the next batch.
func (f *Faulty) EndNext(err error) { f.pushFeed(feedFault{err: err}) }

func (f *Faulty) push(m Method, c callFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[m] = append(f.calls[m], c)
}

func (f *Faulty) pushFeed(c feedFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.feed = append(f.feed, c)
}

func (f *Faulty) popFeed() feedFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.feed) == 0 {
		return feedFault{copies: 1}
	}
	next := f.feed[0]
	f.feed = f.feed[1:]
	return next
}

// call makes one call with the fault that is next in line for m.
func (f *Faulty) call(ctx context.Context, m Method, do func() error) error {
	f.mu.Lock()
	var next callFault
	if line := f.calls[m]; len(line) > 0 {
		next, f.calls[m] = line[0], line[1:]
	}
	f.mu.Unlock()
	if err := next.gate.pass(ctx); err != nil {
		return err
	}
	if next.err != nil && !next.lose {
		return next.err
	}
	err := do()
	if next.lose && err == nil {
		return next.err
	}
	return err
}

// Load implements store.Store.
func (f *Faulty) Load(ctx context.Context, fn func(store.Record) error) (mark store.Mark, err error) {
	err = f.call(ctx, Load, func() error {
		mark, err = f.Store.Load(ctx, fn)
		return err
	})
	if err != nil {
		return store.Mark{}, err
	}
	return mark, nil
}

// Commit implements store.Store.
func (f *Faulty) Commit(ctx context.Context, prev store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	return f.written(ctx, Commit, func() (store.Written, error) { return f.Store.Commit(ctx, prev, head, ops) })
}

// Put implements store.Store.
func (f *Faulty) Put(ctx context.Context, head store.Head, ops []store.Op) (store.Written, error) {
	return f.written(ctx, Put, func() (store.Written, error) { return f.Store.Put(ctx, head, ops) })
}

func (f *Faulty) written(ctx context.Context, m Method, write func() (store.Written, error)) (at store.Written, err error) {
	err = f.call(ctx, m, func() error {
		at, err = write()
		return err
	})
	if err != nil {
		return store.Written{}, err
	}
	return at, nil
}

// Get implements store.Store.
func (f *Faulty) Get(ctx context.Context, key string) (rec store.Record, ok bool, err error) {
	err = f.call(ctx, Get, func() error {
		rec, ok, err = f.Store.Get(ctx, key)
		return err
	})
	if err != nil {
		return store.Record{}, false, err
	}
	return rec, ok, nil
}

// Last implements store.Store.
func (f *Faulty) Last(ctx context.Context) (rev store.Rev, err error) {
	err = f.call(ctx, Last, func() error {
		rev, err = f.Store.Last(ctx)
		return err
	})
	return rev, err
}

// Witness implements store.Store.
func (f *Faulty) Witness(ctx context.Context, rev store.Rev) (said []byte, err error) {
	err = f.call(ctx, Witness, func() error {
		said, err = f.Store.Witness(ctx, rev)
		return err
	})
	return said, err
}

// Follow implements store.Store.
func (f *Faulty) Follow(ctx context.Context, rev store.Rev, fn func(store.Batch) error) error {
	return f.call(ctx, Follow, func() error {
		return f.Store.Follow(ctx, rev, func(b store.Batch) error {
			next := f.popFeed()
			if err := next.gate.pass(ctx); err != nil {
				return err
			}
			if next.err != nil {
				return next.err
			}
			for range next.copies {
				if err := fn(b); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Compact implements store.Store.
func (f *Faulty) Compact(ctx context.Context, rev store.Rev) error {
	return f.call(ctx, Compact, func() error { return f.Store.Compact(ctx, rev) })
}

// Snapshot implements store.Store.
func (f *Faulty) Snapshot(ctx context.Context, w io.Writer) error {
	return f.call(ctx, Snapshot, func() error { return f.Store.Snapshot(ctx, w) })
}
