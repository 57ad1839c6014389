package audit

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// Back yields the entries from a number down to another, both among them. It ends
// with an error where one is missing or cannot be read: who undoes what entries say
// needs every one.
func (l *Log) Back(ctx context.Context, from, to int64) iter.Seq2[*model.AuditEntry, error] {
	return func(yield func(*model.AuditEntry, error) bool) {
		for next := from; next >= to; {
			blocks, err := l.before(ctx, next, min(next-to+1, aStretch))
			if err != nil {
				yield(nil, err)
				return
			}
			begun := next
			for _, b := range slices.Backward(blocks) {
				lines, err := linesOf(b)
				if err != nil {
					yield(nil, fmt.Errorf("audit entry %d cannot be read: %w", next, err))
					return
				}
				for _, at := range slices.Backward(lines) {
					if at.number > next {
						continue
					}
					if at.number < to {
						return
					}
					entry, err := at.entryAt(next)
					if !yield(entry, err) || err != nil {
						return
					}
					next--
				}
			}
			if next == begun { // it holds less than it says
				yield(nil, errMissing(next))
				return
			}
		}
	}
}

// entryAt reads the entry if it is the one with a number.
func (l line) entryAt(number int64) (*model.AuditEntry, error) {
	if l.number != number {
		return nil, errMissing(number)
	}
	entry, err := l.entry()
	if err != nil {
		return nil, fmt.Errorf("audit entry %d cannot be read: %w", number, err)
	}
	return entry, nil
}

const (
	// aStretch is between how many numbers blocks are looked for at a time, and
	// maxStretch at most if there are none: a block may hold as many entries as a
	// write has.
	aStretch, maxStretch = 500, 1_000_000
)

// before reads blocks of which the last holds an entry, in their order. It asks the
// store for the keys between two numbers: that reads all that comes before a key if it
// is asked for the last of them.
func (l *Log) before(ctx context.Context, number, wide int64) (blocks []*model.AuditBlock, err error) {
	for ; wide <= maxStretch; wide *= 8 {
		if blocks, err = l.among(ctx, max(0, number-wide), number); err != nil {
			return nil, err
		}
		if n := len(blocks); n > 0 {
			if blocks[n-1].Last < number {
				return nil, errMissing(number)
			}
			return blocks, nil
		}
		if wide >= number {
			break
		}
	}
	return nil, errMissing(number)
}

// among reads all blocks that begin after a number and not after another.
func (l *Log) among(ctx context.Context, after, last int64) (all []*model.AuditBlock, err error) {
	in := state.Stretch{After: ID(after), Until: ID(last + 1)}
	for {
		blocks, err := l.blocks(ctx, in, aStretch, false)
		if err != nil || len(blocks) == 0 {
			return all, err
		}
		all = append(all, blocks...)
		in.After = blocks[len(blocks)-1].ID
	}
}

func errMissing(number int64) error { return fmt.Errorf("audit entry %d is missing", number) }

// Window returns the numbers of the first and the last entry that are kept; the last
// is less than the first if there is none.
func (l *Log) Window() (first, last int64) {
	head := Head(l.State.Snapshot())
	return max(1, head.First), head.Last
}

// Entry returns the entry with a number.
func (l *Log) Entry(ctx context.Context, number int64) (*model.AuditEntry, error) {
	for entry, err := range l.Back(ctx, number, number) {
		return entry, err
	}
	return nil, errMissing(number)
}

// Until returns the number of the last entry of a time or of before; that before the
// first if all are later. Times of entries only ever grow, so that few are read.
func (l *Log) Until(ctx context.Context, at time.Time) (int64, error) {
	first, last := l.Window()
	low, high := first-1, last // the one is not later, what follows the other is
	for low < high {
		middle := low + (high-low+1)/2
		entry, err := l.Entry(ctx, middle)
		switch {
		case err != nil:
			return 0, err
		case entry.CreatedAt.Time().After(at):
			high = middle - 1
		default:
			low = middle
		}
	}
	return low, nil
}
