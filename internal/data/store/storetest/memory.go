package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
)

// Memory is a store.Store that keeps everything in memory, history included.
// Its revisions have holes, like those of a store that is shared with others.
type Memory struct {
	log    *history
	quick  store.Limits
	once   sync.Once
	closed chan struct{}
}

var _ store.Store = (*Memory)(nil)

// NewMemory returns an empty store with generous limits.
func NewMemory() *Memory {
	return NewMemoryWithin(store.Limits{Ops: 1024, Bytes: 4 << 20})
}

// NewMemoryWithin returns an empty store with the given limits.
func NewMemoryWithin(limits store.Limits) *Memory {
	return (&history{
		limits:  limits,
		rev:     1,
		records: make(map[string]store.Record),
		written: make(chan struct{}),
	}).open()
}

// Another returns one more handle on the same data, as another controller
// would have. It may be called after Close, to open the data again.
func (m *Memory) Another() *Memory { return m.log.open() }

// history is the data behind all handles.
type history struct {
	limits store.Limits

	mu        sync.Mutex
	rev       store.Rev
	last      store.Rev // of the last batch
	head      store.Rev
	time      time.Time
	end       string
	records   map[string]store.Record
	batches   []store.Batch // all after compacted
	compacted store.Rev
	passed    digest        // of the batches up to compacted
	written   chan struct{} // closed by the next write
}

func (h *history) open() *Memory {
	return &Memory{log: h, quick: h.limits, closed: make(chan struct{})}
}

// usable returns why a call cannot be served, if so.
func (m *Memory) usable(ctx context.Context) error {
	select {
	case <-m.closed:
		return store.ErrClosed
	default:
		return ctx.Err()
	}
}

// Load implements store.Store.
func (m *Memory) Load(ctx context.Context, fn func(store.Record) error) (store.Mark, error) {
	if err := m.usable(ctx); err != nil {
		return store.Mark{}, err
	}
	h := m.log
	h.mu.Lock()
	mark := store.Mark{Rev: h.rev, Head: h.head, Time: h.time, End: h.end}
	records := maps.Clone(h.records)
	h.mu.Unlock()
	maps.DeleteFunc(records, func(key string, _ store.Record) bool { return store.IsEntry(key) })
	for _, key := range slices.Sorted(maps.Keys(records)) {
		if err := m.usable(ctx); err != nil {
			return store.Mark{}, err
		}
		if err := fn(records[key]); err != nil {
			return store.Mark{}, err
		}
	}
	return mark, nil
}

// Commit implements store.Store.
func (m *Memory) Commit(ctx context.Context, prev store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	head.Prev = prev
	return m.write(ctx, store.Batch{Commit: true, Head: head}, ops)
}

// Put implements store.Store.
func (m *Memory) Put(ctx context.Context, head store.Head, ops []store.Op) (store.Written, error) {
	head.Prev = 0
	return m.write(ctx, store.Batch{Head: head}, ops)
}

// write adds a batch if its guards hold.
func (m *Memory) write(ctx context.Context, batch store.Batch, ops []store.Op) (store.Written, error) {
	if err := m.usable(ctx); err != nil {
		return store.Written{}, err
	}
	if err := m.log.limits.Check(ops); err != nil {
		return store.Written{}, err
	}
	h := m.log
	h.mu.Lock()
	defer h.mu.Unlock()
	if batch.Commit && h.head != batch.Head.Prev || slices.ContainsFunc(ops, h.refuses) {
		return store.Written{}, store.ErrConflict
	}
	at := store.Written{After: h.last}
	h.add(batch, ops)
	at.Rev = h.rev
	return at, nil
}

// refuses reports whether an op expects something else than there is.
func (h *history) refuses(op store.Op) bool {
	rec, ok := h.records[op.Key]
	return op.Prev != store.Any && op.Prev != rec.Rev || op.Value == nil && !ok
}

// add applies a batch that has passed its guards.
func (h *history) add(batch store.Batch, ops []store.Op) {
	batch.Head.Ops = len(ops)
	batch.Head.Time = batch.Head.Time.Round(0) // what is stored has no monotonic part
	batch.Head.Writes = slices.Clone(batch.Head.Writes)
	h.rev += 1 + store.Rev(len(ops)%2)
	batch.Rev, h.last = h.rev, h.rev
	if batch.Commit {
		h.head, h.time, h.end = h.rev, batch.Head.Time, batch.Head.End
	}
	for _, op := range ops {
		value := bytes.Clone(op.Value)
		if value == nil {
			delete(h.records, op.Key)
		} else {
			h.records[op.Key] = store.Record{Key: op.Key, Value: value, Rev: h.rev}
		}
		batch.Ops = append(batch.Ops, store.Op{Key: op.Key, Value: value})
	}
	h.batches = append(h.batches, batch)
	close(h.written)
	h.written = make(chan struct{})
}

// Last implements store.Store.
func (m *Memory) Last(ctx context.Context) (store.Rev, error) {
	if err := m.usable(ctx); err != nil {
		return 0, err
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	return m.log.last, nil
}

// Get implements store.Store.
func (m *Memory) Get(ctx context.Context, key string) (store.Record, bool, error) {
	if err := m.usable(ctx); err != nil {
		return store.Record{}, false, err
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	rec, ok := m.log.records[key]
	return rec, ok, nil
}

// Range implements store.Store.
func (m *Memory) Range(ctx context.Context, from, to string, most int, newest bool) (recs []store.Record, more bool, err error) {
	if err := m.usable(ctx); err != nil {
		return nil, false, err
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.log.records)) {
		if store.IsEntry(key) && key >= from && key < to {
			recs = append(recs, m.log.records[key])
		}
	}
	if newest {
		slices.Reverse(recs)
	}
	if len(recs) > most {
		return recs[:most:most], true, nil
	}
	return recs, false, nil
}

// Witness implements store.Store.
func (m *Memory) Witness(ctx context.Context, rev store.Rev) ([]byte, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	h := m.log
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case rev <= 0 || rev > h.rev:
		return nil, fmt.Errorf("%w: there is no revision %d", store.ErrInvalid, rev)
	case rev < h.compacted:
		return nil, store.ErrCompacted
	}
	seen := h.passed
	for _, b := range h.batches {
		if b.Rev <= rev {
			seen = seen.with(b)
		}
	}
	return seen[:], nil
}

// digest sums a log up.
type digest [sha256.Size]byte

// with is the digest of the log with one more batch.
func (d digest) with(b store.Batch) digest {
	text, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(append(d[:], text...))
}

// Follow implements store.Store.
func (m *Memory) Follow(ctx context.Context, rev store.Rev, fn func(store.Batch) error) error {
	for {
		if err := m.usable(ctx); err != nil {
			return err
		}
		batches, written, err := m.log.after(rev)
		if err != nil {
			return err
		}
		for _, b := range batches {
			if err := m.usable(ctx); err != nil {
				return err
			}
			if err := fn(b); err != nil {
				return err
			}
			rev = b.Rev
		}
		if len(batches) > 0 {
			continue
		}
		select {
		case <-written:
		case <-m.closed:
		case <-ctx.Done():
		}
	}
}

// after returns the batches after rev, and what announces the next.
func (h *history) after(rev store.Rev) ([]store.Batch, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case rev < h.compacted:
		return nil, nil, store.ErrCompacted
	case rev > h.rev:
		return nil, nil, fmt.Errorf("%w: revision %d is not reached yet", store.ErrGap, rev)
	}
	i, _ := slices.BinarySearchFunc(h.batches, rev+1, func(b store.Batch, r store.Rev) int { return int(b.Rev - r) })
	return append([]store.Batch{}, h.batches[i:]...), h.written, nil
}

// Compact implements store.Store.
func (m *Memory) Compact(ctx context.Context, rev store.Rev) error {
	if err := m.usable(ctx); err != nil {
		return err
	}
	h := m.log
	h.mu.Lock()
	defer h.mu.Unlock()
	if rev > h.rev {
		return fmt.Errorf("%w: revision %d is not reached yet", store.ErrInvalid, rev)
	}
	h.compacted = max(h.compacted, rev)
	for _, b := range h.batches {
		if b.Rev <= rev {
			h.passed = h.passed.with(b)
		}
	}
	h.batches = slices.DeleteFunc(h.batches, func(b store.Batch) bool { return b.Rev <= rev })
	return nil
}

// saved is the form of a snapshot.
type saved struct {
	Rev     store.Rev      `json:"rev"`
	Head    store.Rev      `json:"head"`
	Time    time.Time      `json:"time"`
	End     string         `json:"end,omitempty"`
	Records []store.Record `json:"records"`
}

// Snapshot implements store.Store.
func (m *Memory) Snapshot(ctx context.Context, w io.Writer) error {
	s := saved{}
	if err := m.usable(ctx); err != nil {
		return err
	}
	m.log.mu.Lock()
	s.Rev, s.Head, s.Time, s.End = m.log.rev, m.log.head, m.log.time, m.log.end
	for _, key := range slices.Sorted(maps.Keys(m.log.records)) {
		s.Records = append(s.Records, m.log.records[key])
	}
	m.log.mu.Unlock()
	if err := json.MarshalWrite(w, s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// RestoreMemory returns a store with what a snapshot holds, and no history.
func RestoreMemory(from io.Reader) (*Memory, error) {
	var s saved
	if err := json.UnmarshalRead(from, &s); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	m := NewMemory()
	m.log.passed = m.log.passed.with(store.Batch{Rev: s.Rev})
	m.log.rev, m.log.last, m.log.compacted, m.log.head, m.log.time, m.log.end = s.Rev, s.Rev, s.Rev, s.Head, s.Time, s.End
	for _, r := range s.Records {
		m.log.records[r.Key] = r
	}
	return m, nil
}

// Limits implements store.Store.
func (m *Memory) Limits() store.Limits { return m.log.limits }

// Quick implements store.Store. It is what WithQuick said; no batch takes longer
// than another.
func (m *Memory) Quick() store.Limits { return m.quick }

// WithQuick returns one more handle on the same data, which says of itself that
// larger batches than this take longer.
func (m *Memory) WithQuick(quick store.Limits) *Memory {
	another := m.Another()
	another.quick = quick
	return another
}

// Close implements store.Store. Other handles stay open.
func (m *Memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}
