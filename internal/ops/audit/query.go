package audit

import (
	"context"
	"iter"
	"slices"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// Query returns a page of the entries that match, and how many match in all.
func (l *Log) Query(ctx context.Context, q *filter.Query[kind.Record], p filter.Page) ([]kind.Record, int64, error) {
	head := Head(l.State.Snapshot())
	all := span{first(head), head.Last}
	down, ordered := order(q)
	if ordered && q.All() {
		return l.unfiltered(ctx, all, down, p)
	}
	spans, err := l.spans(ctx, all, q)
	if err != nil {
		return nil, 0, err
	}
	if down {
		slices.Reverse(spans)
	}
	var failed error
	seq := func(yield func(kind.Record) bool) {
		for _, in := range spans {
			for rec := range l.records(ctx, in, down, &failed) {
				if !yield(rec) {
					return
				}
			}
			if failed != nil {
				return
			}
		}
	}
	recs, total := q.Select(filter.Rows[kind.Record]{Seq: seq, Ordered: ordered}, p)
	return recs, total, failed
}

// order reports whether the log has the order that is asked for, and whether it is
// to be read downwards. Numbers, ids and times are in one order.
func order(q *filter.Query[kind.Record]) (down, ordered bool) {
	orders := q.Sort()
	if len(orders) == 0 {
		return false, true
	}
	switch orders[0].Symbol.Name { // the others decide nothing: it differs everywhere
	case "id", "number", "createdAt", "updatedAt":
		return orders[0].Desc, true
	}
	return false, false
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
