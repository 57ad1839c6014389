package audit

import (
	"context"
	"time"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Follow has columns of packed entries in memory for as long as ctx lasts, so that
// nobody who asks has to wait for them. Those of others are added by who asks: they
// have to be read for it.
func (l *Log) Follow(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		head := Head(l.State.Snapshot())
		if err := l.reach(ctx, head, head.Unpacked-1); err != nil && ctx.Err() == nil {
			l.State.Logger().Warn("the audit log cannot be read; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// find returns which entries match, and which may.
func (l *Log) find(ctx context.Context, head *model.AuditChain, p filter.Predicate[kind.Record]) ([]found, error) {
	if err := l.reach(ctx, head, head.Last); err != nil {
		return nil, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.columns.judge(p, span{first(head), head.Last}), nil
}

// reach adds columns of entries up to a number. What is added stays, also if ctx
// ends before all of it is.
func (l *Log) reach(ctx context.Context, head *model.AuditChain, to int64) error {
	l.once.Do(func() { l.turn = make(chan struct{}, 1) })
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.begin(head)
	c := l.columns // nobody else writes to them
	another := false
	err := l.read(ctx, span{c.next, to}, false, func(b *model.AuditBlock, in span) (n int, more bool) {
		n, another = l.take(b, in)
		return n, !another && ctx.Err() == nil
	})
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case another:
		l.set(newColumns(first(head)))
		return l.read(ctx, span{l.columns.next, to}, false, func(b *model.AuditBlock, in span) (n int, more bool) {
			n, _ = l.take(b, in)
			return n, ctx.Err() == nil
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.next = max(c.next, to+1); c.next == head.Last+1 {
		c.tip = text(head.Digest)
	}
	return nil
}

func (l *Log) set(c *columns) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.columns = c
}

// begin drops columns of entries that are forgotten, and all of them if the log is
// another one than it was: the store may have been put back to an earlier state.
func (l *Log) begin(head *model.AuditChain) {
	c := l.columns
	if c == nil || first(head) < c.from || head.Last+1 < c.next || head.Last+1 == c.next && c.tip != "" && c.tip != text(head.Digest) {
		l.set(newColumns(first(head)))
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.forget(first(head))
}

// take adds the entries of a block, and returns how many it has. another is whether
// they do not follow those that are there.
func (l *Log) take(b *model.AuditBlock, in span) (n int, another bool) {
	c := l.columns
	if f, err := filedIn(b); err == nil && b.Last <= in.to && c.tip == "" {
		from := max(numberOf(b.ID), in.from)
		l.mu.Lock()
		defer l.mu.Unlock()
		c.add(c.filed(f, from, int(from-numberOf(b.ID))))
		return len(f.times), false
	}
	lines := l.linesOf(b)
	entries := make([]*model.AuditEntry, len(lines))
	for i, at := range lines {
		var err error
		if entries[i], err = at.entry(); err != nil {
			l.State.Logger().Error("an audit entry cannot be read", "number", at.number, "error", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var f facts
	for i, at := range lines {
		if at.number < in.from || at.number > in.to {
			continue
		}
		entry := entries[i]
		if c.tip != "" && at.number == c.next && entry != nil && entry.Previous != c.tip {
			return len(lines), true
		}
		c.tip = ""
		if entry != nil && c.fact(&f, at.number, entry) {
			continue
		}
		c.add(f)
		f = facts{}
		if entry != nil {
			c.addOpaque(at.number)
		}
	}
	c.add(f)
	return len(lines), false
}
