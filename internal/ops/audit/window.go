package audit

import (
	"context"
	"crypto/sha256"
	"iter"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// mostHeld is for how long entries are kept that are too old for the store, if
// somebody has not archived them. Of a log that is too large twice as much is kept.
const mostHeld = 7 * 24 * time.Hour

// heldQuietly is for how long entries may wait before somebody is told, again and
// again.
const heldQuietly = time.Minute

// leaving is a block that may be about to leave the store.
type leaving struct {
	first int64     // number of its first entry
	last  int64     // and of its last
	at    time.Time // when that was made
	over  int64     // how many bytes the log has more than it may
	twice int64     // and more than twice as many
}

// passed is a block that was yielded as leaving.
type passed struct {
	bytes int64  // that it has in the store
	of    digest // of these
	last  []byte // digest of its last entry; nil if it cannot be read
}

// due reports whether a block is to leave the store.
func (k *Keeper) due(head *model.AuditChain, b leaving) bool {
	return b.last < head.Last && (head.Last-b.last >= k.Entries || k.Now().Sub(b.at) >= k.Age || b.over > 0)
}

// overdue reports whether it has to, whoever has yet to archive it.
func (k *Keeper) overdue(head *model.AuditChain, b leaving) bool {
	return b.last < head.Last && (head.Last-b.last >= 2*k.Entries || k.Now().Sub(b.at) >= k.Age+min(k.Age, mostHeld) || b.twice > 0)
}

// excess is how many bytes the log has more than it may.
func (k *Keeper) excess(head *model.AuditChain, times int64) int64 {
	if k.Bytes <= 0 {
		return 0
	}
	return head.Bytes - times*k.Bytes
}

// lastOf is the number of the last entry of a block, which may be one that nobody can
// read.
func lastOf(b *model.AuditBlock, lines []line) int64 {
	if n := len(lines); n > 0 {
		return lines[n-1].number
	}
	return max(b.Last, numberOf(b.ID))
}

// Leaf is entries that are together in the store.
type Leaf struct {
	Lines []Line
	// Text is all of them, each with its line's end, and Deflated the same in DEFLATE;
	// empty if they are not all that was packed together, or nobody can tell.
	Text, Deflated []byte
}

// leafOf is the entries of a block from a number on, and the number of its last.
func leafOf(b *model.AuditBlock, from int64) (l Leaf, last int64, err error) {
	text, whole, err := textOf(b)
	lines := linesIn(text, numberOf(b.ID))
	last = lastOf(b, lines)
	if n := len(lines); n > 0 && whole && from <= lines[0].number && text[len(text)-1] == '\n' {
		l.Text, l.Deflated = text, b.Deflated
	}
	l.Lines = make([]Line, 0, len(lines))
	for _, at := range lines {
		if from <= at.number {
			l.Lines = append(l.Lines, Line{at.number, at.text})
		}
	}
	return l, last, err
}

// Leaving yields the entries behind one that are to leave the store, in order. They
// stay until everybody has archived them.
func (k *Keeper) Leaving(ctx context.Context, after int64) iter.Seq2[Leaf, error] {
	return func(yield func(Leaf, error) bool) {
		head := Head(k.State.Snapshot())
		over := k.excess(head, 1) - k.passedBy(first(head))
		in := span{max(first(head), after+1), head.Last - 1}
		if w := k.waits; w.first <= in.from && in.from <= w.last && !k.due(head, leaving{last: w.last, at: w.at, over: over}) {
			return // which saves a look at the store
		}
		for few := 1; in.from <= in.to; few = min(2*few, aPage) { // mostly few are
			page, err := k.page(ctx, in, false, few)
			if err != nil {
				yield(Leaf{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, b := range page {
				next := leaving{first: numberOf(b.ID), last: lastOf(b, nil), at: b.UpdatedAt.Time(), over: over}
				if !k.due(head, next) { // what is in it is not read for that
					k.waits = next
					return
				}
				leaf, last, err := leafOf(b, in.from)
				if err != nil {
					k.State.Logger().Error("a block of audit entries cannot be read", "id", b.ID, "error", err)
				}
				if next.last = last; !k.due(head, next) {
					k.waits = next
					return
				}
				if len(leaf.Lines) > 0 && !yield(leaf, nil) {
					return
				}
				over -= int64(len(b.Deflated))
				k.pass(b, leaf, last)
				in.from = max(in.from, last) + 1
			}
		}
	}
}

// pass takes note of a block that was yielded.
func (k *Keeper) pass(b *model.AuditBlock, l Leaf, last int64) {
	p := passed{bytes: int64(len(b.Deflated)), of: sha256.Sum256(b.Deflated)}
	if n := len(l.Lines); n > 0 {
		digest := sha256.Sum256(l.Lines[n-1].Text)
		p.last = digest[:]
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.passed[last] = p
}

// passedBy is how many bytes have left already, or will when everybody has archived
// them.
func (k *Keeper) passedBy(first int64) (bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.passed == nil {
		k.passed = map[int64]passed{}
	}
	for last, p := range k.passed {
		if last < first {
			delete(k.passed, last)
		} else {
			bytes += p.bytes
		}
	}
	return bytes
}

// passedWith is the digest of the last entry of a block that is the very one that was
// yielded: it need not be unpacked again to be forgotten. It is nil if that is not known.
func (k *Keeper) passedWith(b *model.AuditBlock) []byte {
	k.mu.Lock()
	p := k.passed[b.Last]
	k.mu.Unlock()
	if len(b.Deflated) == 0 || p.of != sha256.Sum256(b.Deflated) {
		return nil
	}
	return p.last
}

// digestOf is the digest of the last entry of a block: of one that cannot be read the
// entry after it has it.
func (k *Keeper) digestOf(ctx context.Context, b *model.AuditBlock, lines []line, head *model.AuditChain) ([]byte, error) {
	if n := len(lines); n > 0 {
		digest := lines[n-1].digest()
		return digest[:], nil
	}
	for at, err := range k.lines(ctx, span{lastOf(b, nil) + 1, head.Last}, false) {
		if err != nil {
			return nil, err
		}
		if entry, err := at.entry(); err == nil && entry.Number == lastOf(b, nil)+1 {
			return untext(entry.Previous), nil
		}
		break
	}
	return nil, nil
}

// oldest reads the first block of the log, where that is to begin, or wherever it does.
func (k *Keeper) oldest(ctx context.Context, first int64) (*model.AuditBlock, error) {
	blocks, err := k.between(ctx, first, first, 1)
	if err == nil && len(blocks) == 0 {
		blocks, err = k.blocks(ctx, state.Stretch{}, 1, false)
	}
	if err != nil || len(blocks) == 0 {
		return nil, err
	}
	return blocks[0], nil
}

// forget removes the oldest block if it is to leave the store, and everybody has
// archived it who is there. more is whether there may be others.
func (k *Keeper) forget(ctx context.Context) (more bool, err error) {
	head := Head(k.State.Snapshot())
	if first(head) > head.Last {
		return false, nil
	}
	oldest, err := k.oldest(ctx, first(head))
	if err != nil || oldest == nil {
		return false, err
	}
	gone := leaving{last: lastOf(oldest, nil), at: oldest.UpdatedAt.Time(), over: k.excess(head, 1), twice: k.excess(head, 2)}
	if !k.due(head, gone) { // as it is nearly always: what is in it is not read for that
		return false, nil
	}
	digest := k.passedWith(oldest)
	var lines []line
	if digest == nil {
		if lines, err = linesOf(oldest); err != nil { // which keeps nobody else
			k.State.Logger().Error("a block of audit entries cannot be read", "id", oldest.ID, "error", err)
			lines = nil
		}
		gone.last = lastOf(oldest, lines)
	}
	if !k.due(head, gone) || !k.mayGo(head, oldest.ID, gone) {
		return false, nil
	}
	if digest == nil {
		if digest, err = k.digestOf(ctx, oldest, lines, head); err != nil {
			return false, err
		}
	}
	return true, k.change(ctx, func(tx *state.Tx, now *model.AuditChain) error {
		if now.First != head.First || now.Unpacked != head.Unpacked {
			return errMoved
		}
		now.First, now.Before = gone.last+1, digest
		now.Bytes = max(0, now.Bytes-int64(len(oldest.Deflated)))
		tx.Strike(model.AuditBlocks.Def, oldest.ID)
		return nil
	})
}

// mayGo reports whether everybody has archived a block, or it can wait for nobody.
func (k *Keeper) mayGo(head *model.AuditChain, id string, b leaving) bool {
	if k.Archived == nil {
		return true
	}
	to, who := k.Archived()
	if to >= b.last {
		k.held = time.Time{}
		return true
	}
	log := k.State.Logger()
	if k.overdue(head, b) {
		log.Error("audit entries are forgotten that were not archived: there is no room for more", "from", numberOf(id), "to", b.last, "controller", who)
		return true
	}
	switch now := k.Now(); {
	case k.held.IsZero():
		k.held = now
	case now.Sub(k.held) > heldQuietly:
		k.held = now
		log.Warn("audit entries stay in the store beyond what it is to keep, since a controller has not archived them", "from", numberOf(id), "archived", to, "controller", who)
	}
	return false
}
