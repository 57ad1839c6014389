package audit

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Keeper looks after the log: it packs old entries, since every key of the store
// takes memory, and forgets the oldest. One controller does so for all.
type Keeper struct {
	*Log
	Age     time.Duration // for how long entries are kept
	Entries int64         // how many of them
	Bytes   int64         // how many bytes of them, packed; 0 for any number
	Now     func() time.Time
	// Archived is up to which entry everybody has archived the log, and who is the
	// last. Nobody archives it if nil.
	Archived func() (to int64, last string)

	held  time.Time // since when entries stay for somebody, or that was told; zero if they do not
	waits leaving   // what did not leave yet when that was last looked at

	mu     sync.Mutex       // who archives is not who forgets
	passed map[int64]passed // blocks that were yielded as leaving, by their last entry
}

const (
	// young is how many entries are left as they were written, for those who look
	// for what has just happened.
	young = 500
	// fullEntries and fullBytes are what a packed block holds.
	fullEntries, fullBytes = 128, 128 << 10
	// spare is what a batch holds beside the blocks that it packs.
	spare = 8
	// maxRuns is how often a write is tried that others were faster than.
	maxRuns = 3
)

// keeping is the author of what a Keeper does.
var keeping = state.Program("audit")

// errMoved says that the log is not as it was when it was looked at.
var errMoved = errors.New("audit: the log was changed by another")

// Run does what there is to do at every interval until ctx ends.
func (k *Keeper) Run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := k.Keep(ctx); err != nil && ctx.Err() == nil {
			k.State.Logger().Warn("looking after the audit log failed; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Keep does what there is to do now.
func (k *Keeper) Keep(ctx context.Context) error {
	before := Head(k.State.Snapshot()).Unpacked
	defer func() {
		if Head(k.State.Snapshot()).Unpacked == before { // there was no work
			tight.spare.Store(nil)
			quick.spare.Store(nil)
			filers.Store(nil)
		}
	}()
	for _, some := range []func(context.Context) (bool, error){k.pack, k.forget} {
		for more := true; more; {
			var err error
			if more, err = some(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack makes one block of the oldest that are not packed. more is whether there are
// others.
func (k *Keeper) pack(ctx context.Context) (more bool, err error) {
	head := Head(k.State.Snapshot())
	from := max(first(head), head.Unpacked)
	to := head.Last - young
	if to-from+1 < fullEntries {
		return false, nil
	}
	blocks, err := k.unpacked(ctx, from, to)
	if err != nil || len(blocks) == 0 {
		return false, err
	}
	packed, used, err := together(blocks)
	if err != nil {
		return false, err
	}
	if used == 0 { // the first cannot be read, which is no reason to leave the others
		return true, k.change(ctx, func(_ *state.Tx, now *model.AuditChain) error {
			now.Unpacked = lastOf(blocks[0], nil) + 1
			return nil
		})
	}
	return true, k.change(ctx, func(tx *state.Tx, now *model.AuditChain) error {
		if now.Unpacked != head.Unpacked || now.First != head.First {
			return errMoved
		}
		for ids := range runs(blocks[1:used]) {
			tx.Strike(model.AuditBlocks.Def, ids...)
		}
		now.Unpacked = packed.Last + 1
		now.Bytes += int64(len(packed.Deflated))
		return tx.Recast(model.AuditBlocks.Def, packed)
	})
}

// runs yields the ids of blocks, those together between which no other can be: of
// blocks of one entry, as most are.
func runs(blocks []*model.AuditBlock) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		var run []string
		for i, b := range blocks {
			if i > 0 && numberOf(b.ID) != numberOf(blocks[i-1].ID)+1 {
				if !yield(run) {
					return
				}
				run = nil
			}
			run = append(run, b.ID)
		}
		if len(run) > 0 {
			yield(run)
		}
	}
}

// unpacked reads the blocks that may become one: those that begin before it is full.
// Where many changes were made at once a block is that by itself.
func (k *Keeper) unpacked(ctx context.Context, from, to int64) ([]*model.AuditBlock, error) {
	blocks, err := k.between(ctx, from, min(to, from+fullEntries), min(fullEntries, k.State.Quick().Ops-spare))
	if err != nil || len(blocks) > 0 {
		return blocks, err
	}
	return k.between(ctx, from, to, 1) // some are missing
}

// together makes one block of the first that follow each other, and returns how many
// these are, up to one that cannot be read. What is in them stays to the letter, so
// that nothing is hidden by it.
func together(blocks []*model.AuditBlock) (packed *model.AuditBlock, used int, err error) {
	texts := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(texts)
	texts.Reset()
	for _, b := range blocks {
		lines, err := linesOf(b)
		if err != nil {
			break
		}
		next := numberOf(b.ID) + int64(len(lines))
		switch {
		case packed == nil:
			packed = &model.AuditBlock{Meta: b.Meta}
		case packed.Last+1 != numberOf(b.ID), packed.Last-numberOf(packed.ID) >= fullEntries, texts.Len() > fullBytes:
			return packed, used, deflate(packed, texts.Bytes())
		}
		for _, l := range lines {
			texts.Write(l.text)
			texts.WriteByte('\n')
		}
		packed.Last, packed.UpdatedAt = next-1, b.UpdatedAt
		used++
	}
	if packed == nil {
		return nil, 0, nil
	}
	return packed, used, deflate(packed, texts.Bytes())
}

// buffers are where lines are gathered.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// deflate gives a block its lines.
func deflate(b *model.AuditBlock, texts []byte) error {
	var err error
	if b.Deflated, err = tight.deflate(texts); err != nil {
		return err
	}
	b.Filed = file(linesIn(texts, numberOf(b.ID)))
	return nil
}

// deflater compresses at a level. Who does the work is used again until there is none:
// it takes a megabyte.
type deflater struct {
	level int
	spare atomic.Pointer[flate.Writer]
}

// tight makes what is one part in a hundred larger than the next level would, which
// takes twice as long.
var tight, quick = deflater{level: 5}, deflater{level: flate.BestSpeed}

func (d *deflater) deflate(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	packed.Grow(len(text) / 8)
	w := d.spare.Swap(nil)
	if w == nil {
		var err error
		if w, err = flate.NewWriter(&packed, d.level); err != nil {
			return nil, err
		}
	}
	w.Reset(&packed)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	d.spare.Store(w)
	return packed.Bytes(), nil
}

// change writes the record that says where the log begins and ends, with what
// belongs to it.
func (k *Keeper) change(ctx context.Context, do func(*state.Tx, *model.AuditChain) error) error {
	runs := 0
	return k.State.UpdateSessions(ctx, keeping, func(tx *state.Tx) error {
		if runs++; runs > maxRuns {
			return errMoved // a block is gone: nobody waits for that
		}
		return tx.Edit(model.AuditChains.Def, model.AuditChainID, func(rec kind.Record) error {
			return do(tx, rec.(*model.AuditChain))
		})
	})
}
