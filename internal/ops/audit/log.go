package audit

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"sync"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Log reads entries from the store. There is one for all who read.
type Log struct {
	State *state.State

	once    sync.Once
	turn    chan struct{} // held by who adds to columns
	mu      sync.RWMutex
	columns *columns
}

const (
	// aPage is how many blocks are read at a time, at most, and manyBlocks by who needs all
	// there are: each time waits for what the engine writes just then.
	aPage, manyBlocks = 50, 250
	// maxLines bounds what becomes of a block that somebody has put into the store.
	maxLines = 64 << 20
)

// first is the number of the first entry that is kept.
func first(head *model.AuditChain) int64 { return max(1, head.First) }

// numberOf is the number of the entry with an id; 0 if it is none.
func numberOf(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 || ID(n) != id {
		return 0
	}
	return n
}

// line is an entry in its stored form.
type line struct {
	number int64 // that it has by its place
	text   []byte
}

func (l line) digest() digest { return sha256.Sum256(l.text) }

// entry reads it.
func (l line) entry() (*model.AuditEntry, error) {
	rec, err := model.AuditEntries.Decode(l.text)
	if err != nil {
		return nil, err
	}
	return rec.(*model.AuditEntry), nil
}

// span is the numbers of entries from one to another, both among them.
type span struct{ from, to int64 }

// lines yields the entries of a span, upwards or downwards, as far as they are
// there: who needs all of them sees by their numbers what is missing.
func (l *Log) lines(ctx context.Context, in span, down bool) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		err := l.read(ctx, in, down, func(b *model.AuditBlock, in span) (int, bool) {
			lines := l.linesOf(b)
			for _, at := range turned(lines, down) {
				if in.from <= at.number && at.number <= in.to && !yield(at, nil) {
					return 0, false
				}
			}
			return len(lines), true
		})
		if err != nil {
			yield(line{}, err)
		}
	}
}

// linesOf are the entries of a block, none if it cannot be read.
func (l *Log) linesOf(b *model.AuditBlock) []line {
	lines, err := linesOf(b)
	if err != nil {
		l.State.Logger().Error("a block of audit entries cannot be read", "id", b.ID, "error", err)
	}
	return lines
}

// read takes the blocks that hold the entries of a span, upwards or downwards. take
// gets what is left of the span, and returns how many entries there were, and whether
// to go on.
func (l *Log) read(ctx context.Context, in span, down bool, take func(*model.AuditBlock, span) (int, bool)) error {
	return l.readBy(ctx, in, down, aPage, take)
}

// readBy is read, with so many blocks at a time.
func (l *Log) readBy(ctx context.Context, in span, down bool, most int, take func(*model.AuditBlock, span) (int, bool)) error {
	for in.from <= in.to {
		page, err := l.page(ctx, in, down, most)
		if err != nil || len(page) == 0 {
			return err
		}
		for i, b := range page {
			if in.from > in.to {
				return nil // what is left was read for nothing, and is not unpacked for it
			}
			n, more := take(b, in)
			switch next := numberOf(b.ID) + int64(n); {
			case !more:
				return nil
			case down:
				in.to = min(in.to, numberOf(b.ID)-1)
			case n > 0:
				in.from = max(in.from, next)
			case i+1 < len(page):
				in.from = max(in.from, next+1, min(b.Last+1, numberOf(page[i+1].ID)))
			default: // what it should have had is in no other
				in.from = max(in.from, next+1, b.Last+1)
			}
		}
	}
	return nil
}

// page reads the next blocks of a span, so many at most. From one page to the next
// blocks may be packed: one that comes first may then be in a block that begins earlier.
func (l *Log) page(ctx context.Context, in span, down bool, most int) ([]*model.AuditBlock, error) {
	most = int(min(int64(most), in.to-in.from+1))
	if down {
		return l.below(ctx, in.to, most)
	}
	near := min(in.to, in.from+int64(most)*fullEntries)
	page, err := l.between(ctx, in.from, near, most)
	if err != nil || len(page) > 0 && numberOf(page[0].ID) == in.from {
		return page, err
	}
	earlier, err := l.holder(ctx, in.from)
	switch {
	case err != nil:
		return nil, err
	case earlier != nil:
		return append([]*model.AuditBlock{earlier}, page...), nil
	case len(page) == 0 && near < in.to: // many are missing
		return l.between(ctx, near+1, in.to, most)
	}
	return page, nil
}

// between reads the first blocks that begin with an entry from one number to another.
// The engine looks at every key that is between them, and at those that were removed
// lately, however few it is to read.
func (l *Log) between(ctx context.Context, from, to int64, most int) ([]*model.AuditBlock, error) {
	return l.blocks(ctx, state.Stretch{After: ID(from - 1), Until: ID(to + 1)}, most, false)
}

// holder is the block that says that it holds an entry.
func (l *Log) holder(ctx context.Context, number int64) (*model.AuditBlock, error) {
	blocks, err := l.below(ctx, number, 1)
	if err != nil || len(blocks) == 0 || blocks[0].Last < number {
		return nil, err
	}
	return blocks[0], nil
}

// below reads the last blocks that begin up to an entry, the last first: so many or
// fewer, and none only if there are none. It looks close by first, since the engine
// reads all that it is to take the last ones of.
func (l *Log) below(ctx context.Context, number int64, most int) ([]*model.AuditBlock, error) {
	for near := int64(most); near <= 256*fullEntries && near < number; near = max(fullEntries, 4*near) {
		blocks, err := l.blocks(ctx, state.Stretch{After: ID(number - near), Until: ID(number + 1)}, most, true)
		if err != nil || len(blocks) > 0 {
			return blocks, err
		}
	}
	return l.blocks(ctx, state.Stretch{Until: ID(number + 1)}, most, true)
}

// blocks reads blocks, leaving out what has no place in the log.
func (l *Log) blocks(ctx context.Context, in state.Stretch, most int, newest bool) ([]*model.AuditBlock, error) {
	recs, _, err := l.State.Entries(ctx, model.AuditBlocks.Def, in, most, newest)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var blocks []*model.AuditBlock
	for _, rec := range recs {
		if b := rec.(*model.AuditBlock); numberOf(b.ID) > 0 {
			blocks = append(blocks, b)
		}
	}
	return blocks, nil
}

func turned(lines []line, down bool) []line {
	if down {
		slices.Reverse(lines)
	}
	return lines
}

// linesOf are the entries of a block.
func linesOf(b *model.AuditBlock) ([]line, error) {
	text, _, err := textOf(b)
	if err != nil {
		return nil, err
	}
	return linesIn(text, numberOf(b.ID)), nil
}

// textOf is the entries of a block as one text. packed is whether that is what Deflated
// is, and nothing else is in there.
func textOf(b *model.AuditBlock) (text []byte, packed bool, err error) {
	if len(b.Deflated) == 0 {
		return b.Lines, false, nil
	}
	text, rest, err := inflateTo(b.Deflated)
	if err != nil {
		return nil, false, err
	}
	return text, rest == 0, nil
}

// linesIn are the entries of a text, the first of which has a number.
func linesIn(texts []byte, number int64) []line {
	lines := make([]line, 0, bytes.Count(texts, []byte("\n")))
	for text := range bytes.Lines(texts) {
		lines = append(lines, line{number, bytes.TrimSuffix(text, []byte("\n"))})
		number++
	}
	return lines
}

// inflaters are used again, each of which takes forty kilobytes.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// usualRatio is how many times as many bytes there are, mostly, as when they are packed.
const usualRatio = 10

func inflate(packed []byte) ([]byte, error) {
	text, _, err := inflateTo(packed)
	return text, err
}

// inflateTo is inflate, with how many bytes there are behind what is packed.
func inflateTo(packed []byte) (text []byte, rest int, err error) {
	r, from := inflaters.Get().(io.ReadCloser), bytes.NewReader(packed)
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(from, nil); err != nil {
		return nil, 0, err
	}
	var texts bytes.Buffer
	texts.Grow(usualRatio*len(packed) + bytes.MinRead)
	_, err = texts.ReadFrom(io.LimitReader(r, maxLines+1))
	if err == nil && texts.Len() > maxLines {
		err = fmt.Errorf("it holds more than %d bytes", maxLines)
	}
	return texts.Bytes(), from.Len(), err
}

// Lookup returns the entry with an id.
func (l *Log) Lookup(ctx context.Context, id string) (kind.Record, bool, error) {
	number := numberOf(id)
	if head := Head(l.State.Snapshot()); number < first(head) || number > head.Last {
		return nil, false, nil
	}
	for at, err := range l.lines(ctx, span{number, number}, false) {
		if err != nil {
			return nil, false, err
		}
		entry, err := at.entry()
		if err != nil {
			return nil, false, fmt.Errorf("audit entry %s cannot be read: %w", id, err)
		}
		return entry, true, nil
	}
	return nil, false, nil
}
