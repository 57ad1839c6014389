package audit

import (
	"context"
	"hash/maphash"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// summary is what has to be known of a packed block to tell that no entry in it can
// match: some kilobytes for hundreds of entries. It is made when somebody first asks
// with a filter, and packed blocks do not change.
type summary struct {
	span
	begins, ends time.Time
	values       []uint32 // digests of what indexed fields hold, in their order
}

var seed = maphash.MakeSeed()

// valueOf is the digest of a value of an indexed field. Two may have the same: that
// costs a look at a block.
func valueOf(index, value string) uint32 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(index)
	h.WriteByte(0)
	h.WriteString(value)
	return uint32(h.Sum64())
}

// spans returns the parts of the log that may hold entries that match, in order.
func (l *Log) spans(ctx context.Context, all span, q *filter.Query[kind.Record]) ([]span, error) {
	needs, bounds := q.Needs(), q.Bounds()
	if len(needs) == 0 && len(bounds) == 0 {
		return []span{all}, nil
	}
	packed, err := l.summaries(ctx)
	if err != nil {
		return nil, err
	}
	var spans []span
	next := all.from
	for _, s := range packed {
		if s.to < all.from || s.from > all.to {
			continue
		}
		if s.from > next { // what is missing between is for others to say
			spans = append(spans, span{next, s.from - 1})
		}
		next = s.to + 1
		if s.may(needs, bounds) {
			spans = append(spans, s.span)
		}
	}
	if next <= all.to {
		spans = append(spans, span{next, all.to})
	}
	return spans, nil
}

// may reports whether an entry of the block can match.
func (s summary) may(needs [][]filter.Term[kind.Record], bounds []filter.Bound[kind.Record]) bool {
	for _, b := range bounds {
		if s.outside(b) {
			return false
		}
	}
	for _, choice := range needs {
		if !slices.ContainsFunc(choice, s.has) {
			return false
		}
	}
	return true
}

// has reports whether an entry may have one of the values of a term.
func (s summary) has(term filter.Term[kind.Record]) bool {
	if model.AuditEntries.Index(term.Symbol.Index) == nil {
		return true // as ids are
	}
	return slices.ContainsFunc(term.Values, func(v filter.Value) bool {
		_, found := slices.BinarySearch(s.values, valueOf(term.Symbol.Index, v.String()))
		return found || v.String() == "" // which no index has
	})
}

// outside reports whether all entries are on the wrong side of a bound.
func (s summary) outside(b filter.Bound[kind.Record]) bool {
	switch b.Symbol.Name {
	case "createdAt", "updatedAt":
		// Queries compare with what answers show, which may be a little earlier.
		return b.Least.Type() == filter.Time && s.ends.Before(b.Least.Time()) ||
			b.Most.Type() == filter.Time && s.begins.Add(-time.Second).After(b.Most.Time())
	case "number":
		return b.Least.Type() == filter.Int && s.to < b.Least.Int() || b.Most.Type() == filter.Int && s.from > b.Most.Int()
	}
	return false
}

// summaries returns those of all packed blocks.
func (l *Log) summaries(ctx context.Context) ([]summary, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := Head(l.State.Snapshot())
	next := first(head)
	kept := slices.IndexFunc(l.packed, func(s summary) bool { return s.to >= next })
	if kept < 0 {
		kept = len(l.packed)
	}
	l.packed = slices.Clone(l.packed[kept:])
	if n := len(l.packed); n > 0 {
		next = l.packed[n-1].to + 1
	}
	for next < head.Unpacked {
		blocks, err := l.blocks(ctx, state.Stretch{After: ID(next - 1), Until: ID(head.Unpacked)}, aPage, false)
		if err != nil {
			return nil, err
		}
		if len(blocks) == 0 {
			break
		}
		for _, b := range blocks {
			next = max(next, numberOf(b.ID)) + 1
			if s, ok := summaryOf(b); ok {
				l.packed = append(l.packed, s)
				next = s.to + 1
			}
		}
	}
	return l.packed, nil
}

// summaryOf reads a block. One with an entry that cannot be read has none, and is
// looked at by everybody.
func summaryOf(b *model.AuditBlock) (s summary, ok bool) {
	lines, err := linesOf(b)
	if err != nil || len(lines) == 0 {
		return s, false
	}
	s.span = span{lines[0].number, lines[len(lines)-1].number}
	for _, l := range lines {
		entry, err := l.entry()
		if err != nil {
			return s, false
		}
		if s.begins.IsZero() || entry.CreatedAt.Before(s.begins) {
			s.begins = entry.CreatedAt
		}
		if entry.CreatedAt.After(s.ends) {
			s.ends = entry.CreatedAt
		}
		for _, index := range model.AuditEntries.Indexes {
			index.Keys(entry, func(key string) { s.values = append(s.values, valueOf(index.Name, key)) })
		}
	}
	slices.Sort(s.values)
	s.values = slices.Clip(slices.Compact(s.values))
	return s, true
}
