package audit

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// maxDoubt is how many entries are read for one question to tell whether they match.
const maxDoubt = 100_000

// Query returns a page of the entries that match, and how many match in all.
func (l *Log) Query(ctx context.Context, q *filter.Query[kind.Record], p filter.Page) ([]kind.Record, int64, error) {
	head := Head(l.State.Snapshot())
	way := order(q)
	if q.All() && (way == up || way == down) {
		return l.unfiltered(ctx, span{first(head), head.Last}, way == down, p)
	}
	all, err := l.find(ctx, head, q.Predicate())
	if err != nil {
		return nil, 0, err
	}
	a := answer{Log: l, q: q, page: p, way: way, all: all}
	if way == another {
		return a.sorted(ctx)
	}
	return a.ordered(ctx)
}

// answer is what becomes of the entries that are found.
type answer struct {
	*Log
	q    *filter.Query[kind.Record]
	page filter.Page
	way  way
	all  []found

	held  *model.AuditBlock // the block that an entry was last read from
	lines []line
	ahead []*model.AuditBlock // those that come next
	many  int                 // how many were read together
}

// ordered is the page if the log has its order: it reads what the page shows, and
// what has to be read to tell whether it matches.
func (a *answer) ordered(ctx context.Context) ([]kind.Record, int64, error) {
	var total, doubt int64
	for _, f := range a.all {
		yes, maybe := f.yes.count(), f.maybe.count()
		total, doubt = total+yes, doubt+maybe-yes
	}
	if doubt > maxDoubt {
		return nil, 0, fault.New(fault.CodeFilter, fmt.Sprintf("%d entries would have to be read to tell which of them match, and no more than %d are: "+
			"ask for a time as well, or who or what by = or in", doubt, maxDoubt))
	}
	end := int64(math.MaxInt64)
	if !a.page.Unlimited {
		end = a.page.Offset + a.page.Limit
	}
	recs := []kind.Record{}
	at := int64(0) // how many match before
	for number, sure := range a.numbers() {
		if at >= end && doubt == 0 {
			break
		}
		if sure && (at < a.page.Offset || at >= end) {
			at++
			continue
		}
		entry, ok, err := a.entry(ctx, number)
		if err != nil {
			return nil, 0, err
		}
		matches := ok && a.q.Match(entry)
		switch {
		case sure && !matches: // another value has the same digest, or it is gone since
			total--
			continue
		case !sure:
			if doubt--; !matches {
				continue
			}
			total++
		}
		if at >= a.page.Offset && at < end {
			recs = append(recs, entry)
		}
		at++
	}
	return recs, total, nil
}

// sorted is the page if the log has another order: all that may match is read.
func (a *answer) sorted(ctx context.Context) ([]kind.Record, int64, error) {
	var all int64
	for _, f := range a.all {
		all += f.maybe.count()
	}
	if all > maxDoubt {
		return nil, 0, fault.New(fault.CodeSort, fmt.Sprintf("%d entries match, and no more than %d are put into another order than that of their numbers: "+
			"sort by number, or ask for a time, who or what", all, maxDoubt))
	}
	var failed error
	recs, total := a.q.Select(filter.Rows[kind.Record]{Seq: func(yield func(kind.Record) bool) {
		for number := range a.numbers() {
			entry, ok, err := a.entry(ctx, number)
			if failed = err; err != nil || ok && !yield(entry) {
				return
			}
		}
	}}, a.page)
	return recs, total, failed
}

// numbers yields those of entries that may match, with whether they do.
func (a *answer) numbers() iter.Seq2[int64, bool] {
	return func(yield func(int64, bool) bool) {
		if a.way == up || a.way == another {
			for _, f := range a.all {
				for i := f.maybe.next(0); i >= 0; i = f.maybe.next(i + 1) {
					if !yield(f.from+int64(i), f.yes.has(i)) {
						return
					}
				}
			}
			return
		}
		var held []int64 // those of one time, which come the other way round
		sure := map[int64]bool{}
		flush := func() bool {
			for _, number := range slices.Backward(held) {
				if !yield(number, sure[number]) {
					return false
				}
			}
			held = held[:0]
			clear(sure)
			return true
		}
		for _, f := range slices.Backward(a.all) {
			for i := f.maybe.last(); i >= 0; i-- {
				if f.maybe.has(i) {
					held = append(held, f.from+int64(i))
					sure[f.from+int64(i)] = f.yes.has(i)
				}
				if (a.way == down || !f.same.has(i)) && !flush() {
					return
				}
			}
		}
		flush()
	}
}

// entry reads the entry of a number; ok is whether there is one that can be read.
func (a *answer) entry(ctx context.Context, number int64) (entry *model.AuditEntry, ok bool, err error) {
	if !holds(a.held, number) {
		b, err := a.block(ctx, number)
		if err != nil || b == nil {
			return nil, false, err
		}
		a.held, a.lines = b, a.linesOf(b)
	}
	i := number - numberOf(a.held.ID)
	if i >= int64(len(a.lines)) {
		return nil, false, nil
	}
	entry, err = a.lines[i].entry()
	if err != nil {
		a.State.Logger().Error("an audit entry cannot be read", "number", number, "error", err)
		return nil, false, nil
	}
	return entry, true, nil
}

func holds(b *model.AuditBlock, number int64) bool {
	return b != nil && numberOf(b.ID) <= number && number <= b.Last
}

// block finds the block that holds an entry. If it is next to the last, those behind
// it are likely to be asked for, and are read with it.
func (a *answer) block(ctx context.Context, number int64) (*model.AuditBlock, error) {
	for i, b := range a.ahead {
		if holds(b, number) {
			a.ahead = a.ahead[i+1:]
			return b, nil
		}
	}
	near := a.held != nil && (number == a.held.Last+1 || number == numberOf(a.held.ID)-1)
	if a.many = min(2*a.many, aPage); !near {
		a.many = 1
	}
	if a.way == down {
		blocks, err := a.below(ctx, number, a.many)
		if err != nil || len(blocks) == 0 || !holds(blocks[0], number) {
			return nil, err
		}
		a.ahead = blocks[1:]
		return blocks[0], nil
	}
	b, err := a.holder(ctx, number)
	if err == nil && b != nil && a.many > 1 {
		a.ahead, err = a.blocks(ctx, state.Stretch{After: b.ID}, a.many-1, false)
	}
	return b, err
}

// way is an order of entries.
type way uint8

const (
	up way = iota // by their numbers
	down
	newest  // by their times, the latest first; those of one time are in the order of numbers
	another // which the log does not have
)

// order tells which order is asked for. Entries have the order of their numbers by
// ids and times too, but several may have one time.
func order(q *filter.Query[kind.Record]) way {
	way := up
	for i, o := range q.Sort() {
		switch o.Symbol.Name {
		case "id", "number": // they differ everywhere
			switch {
			case i == 0 && o.Desc, way == newest && o.Desc:
				return down
			case way == up && o.Desc:
				return another
			}
			return way
		case "createdAt", "updatedAt":
			if i == 0 && o.Desc {
				way = newest
			}
		default:
			return another
		}
	}
	return way
}

// unfiltered is a page of all entries, of which only those are read that it shows.
func (l *Log) unfiltered(ctx context.Context, all span, down bool, p filter.Page) ([]kind.Record, int64, error) {
	total := max(0, all.to-all.from+1)
	shown := all
	if down {
		shown.to -= p.Offset
		if !p.Unlimited {
			shown.from = max(shown.from, shown.to-p.Limit+1)
		}
	} else {
		shown.from += p.Offset
		if !p.Unlimited {
			shown.to = min(shown.to, shown.from+p.Limit-1)
		}
	}
	recs := []kind.Record{}
	var failed error
	for rec := range l.records(ctx, shown, down, &failed) {
		recs = append(recs, rec)
	}
	return recs, total, failed
}

// records yields the entries of a span that can be read.
func (l *Log) records(ctx context.Context, in span, down bool, failed *error) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for at, err := range l.lines(ctx, in, down) {
			if err != nil {
				*failed = err
				return
			}
			entry, err := at.entry()
			if err != nil {
				l.State.Logger().Error("an audit entry cannot be read", "number", at.number, "error", err)
				continue
			}
			if !yield(entry) {
				return
			}
		}
	}
}
