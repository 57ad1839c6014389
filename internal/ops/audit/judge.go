package audit

import (
	"math/bits"
	"slices"
	"time"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// found are the entries of a segment that match, and those that may.
type found struct {
	from       int64
	yes, maybe set // what is in yes is in maybe
	same       set // those of the same time as the one before
}

// set is some of the entries of a segment.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) put(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) count() (n int64) {
	for _, w := range s {
		n += int64(bits.OnesCount64(w))
	}
	return n
}

// next is the first from a place on; -1 if there is none.
func (s set) next(i int) int {
	for k := i / 64; k < len(s); k++ {
		w := s[k]
		if k == i/64 {
			w &= ^uint64(0) << (i % 64)
		}
		if w != 0 {
			return k*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}

// last is the last one; -1 if there is none.
func (s set) last() int {
	for k, w := range slices.Backward(s) {
		if w != 0 {
			return k*64 + 63 - bits.LeadingZeros64(w)
		}
	}
	return -1
}

// fill puts all up to n in.
func (s set) fill(n int) {
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := n % 64; rest > 0 {
		s[len(s)-1] = 1<<rest - 1
	}
}

// judge finds what a predicate selects of a span.
func (c *columns) judge(p filter.Predicate[kind.Record], in span) (all []found) {
	judge := c.judgeOf(p)
	for _, s := range c.segments {
		if s.to < in.from || s.from > in.to {
			continue
		}
		f := found{from: s.from, yes: newSet(s.len()), maybe: newSet(s.len()), same: s.same}
		judge(s, f)
		f.cut(in, s.span)
		if f.maybe.count() > 0 {
			all = append(all, f)
		}
	}
	return all
}

// cut leaves out what is not in a span.
func (f found) cut(in, of span) {
	for n := of.from; n <= of.to; n++ {
		switch {
		case n < in.from:
		case of.to <= in.to:
			return
		case n <= in.to:
			n = in.to
			continue
		}
		i := n - of.from
		f.yes[i/64] &^= 1 << (i % 64)
		f.maybe[i/64] &^= 1 << (i % 64)
	}
}

// judging puts those entries of a segment that satisfy a part of a predicate into
// empty sets.
type judging func(*segment, found)

func (c *columns) judgeOf(p filter.Predicate[kind.Record]) judging {
	switch p.Form {
	case filter.Known:
		return func(s *segment, f found) { f.all(s, p.Outcome) }
	case filter.Not:
		return opposite(c.judgeOf(p.Terms[0]))
	case filter.Every, filter.Any:
		var terms []judging
		for _, term := range p.Terms {
			terms = append(terms, c.judgeOf(term))
		}
		return joined(terms, p.Form == filter.Any)
	case filter.Comparison:
		var judge judging
		switch place, ok := places[p.Symbol.Name]; {
		case ok:
			judge = c.comparison(place, p)
		case p.Symbol.Name == "number":
			judge = inOrder(p, func(s *segment, i int) filter.Value { return filter.IntValue(s.from + int64(i)) })
		case p.Symbol.Name == "id":
			judge = inOrder(p, func(s *segment, i int) filter.Value { return filter.StringValue(ID(s.from + int64(i))) })
		case p.Symbol.Name == "createdAt", p.Symbol.Name == "updatedAt":
			judge = inTime(p)
		default:
			return unknown
		}
		return func(s *segment, f found) {
			if s.opaque {
				unknown(s, f)
				return
			}
			judge(s, f)
		}
	}
	return unknown
}

func unknown(s *segment, f found) { f.maybe.fill(s.len()) }

func opposite(judge judging) judging {
	return func(s *segment, f found) {
		judge(s, f)
		all := newSet(s.len())
		all.fill(s.len())
		for i := range all {
			f.yes[i], f.maybe[i] = all[i]&^f.maybe[i], all[i]&^f.yes[i]
		}
	}
}

// joined is what all or any of several say.
func joined(terms []judging, any bool) judging {
	return func(s *segment, f found) {
		terms[0](s, f)
		for _, term := range terms[1:] {
			if !any && f.maybe.count() == 0 {
				return
			}
			next := found{yes: newSet(s.len()), maybe: newSet(s.len())}
			term(s, next)
			for i := range f.yes {
				if any {
					f.yes[i] |= next.yes[i]
					f.maybe[i] |= next.maybe[i]
				} else {
					f.yes[i] &= next.yes[i]
					f.maybe[i] &= next.maybe[i]
				}
			}
		}
	}
}

// inOrder judges values that grow from entry to entry.
func inOrder(p filter.Predicate[kind.Record], value func(*segment, int) filter.Value) judging {
	return func(s *segment, f found) {
		if outcome, same := p.Between(value(s, 0), value(s, s.len()-1)); same {
			f.all(s, outcome)
			return
		}
		for i := range s.len() {
			if p.Test(value(s, i)) {
				f.yes.put(i)
			}
		}
		copy(f.maybe, f.yes)
	}
}

// inTime judges the times of entries.
func inTime(p filter.Predicate[kind.Record]) judging {
	value := func(at int64) filter.Value { return filter.TimeValue(time.UnixMilli(at)) }
	return func(s *segment, f found) {
		if outcome, same := p.Between(value(s.least), value(s.most)); same {
			f.all(s, outcome)
			return
		}
		last, holds := s.base, p.Test(value(s.base))
		for i, after := range s.after {
			if at := s.base + int64(after); at != last { // many have the time of the one before
				last, holds = at, p.Test(value(at))
			}
			if holds {
				f.yes.put(i)
			}
		}
		copy(f.maybe, f.yes)
	}
}

// all puts all entries of a segment in, or none.
func (f found) all(s *segment, outcome bool) {
	if outcome {
		f.yes.fill(s.len())
		f.maybe.fill(s.len())
	}
}

// outcome is what is known of a value.
type outcome uint8

const (
	unasked outcome = iota
	no
	yes
	open
)

// comparison judges the values of a field.
func (c *columns) comparison(place int, p filter.Predicate[kind.Record]) judging {
	t := c.tables[place]
	known := make([]outcome, len(t.values))
	var digests []word
	for _, v := range p.Values {
		digests = append(digests, wordOf(v))
	}
	judge := func(w word) outcome {
		switch {
		case w&isKnown != 0:
			ref := w &^ isKnown
			if known[ref] == unasked {
				known[ref] = outcomeOf(p.Test(t.values[ref]))
			}
			return known[ref]
		case p.Equality:
			return outcomeOf(slices.Contains(digests, w) != p.Negated)
		}
		return open
	}
	one := p.Equality && len(digests) == 1 && !p.Negated
	var sought word // the value that is asked for: its digest, or itself if it is known
	if one {
		if sought = digests[0]; t.refs[p.Values[0]] != 0 {
			sought = t.refs[p.Values[0]]
		}
	}
	return func(s *segment, f found) {
		col := &s.columns[place]
		put := func(i int, o outcome) {
			switch o {
			case yes:
				f.yes.put(i)
				f.maybe.put(i)
			case open:
				f.maybe.put(i)
			}
		}
		switch {
		case col.low != nil && one:
			low, high := digests[0].parts()
			other, upper := sought.parts()
			for i, l := range col.low {
				if l == low && col.high[i] == high || l == other && col.high[i] == upper {
					put(i, yes)
				}
			}
		case col.low != nil:
			for i, l := range col.low {
				put(i, judge(wordIn(l, col.high[i])))
			}
		case !s.sealed:
			for i, w := range col.open {
				put(i, judge(w))
			}
		default:
			col.each(s.len(), judge, put, f)
		}
	}
}

func outcomeOf(holds bool) outcome {
	if holds {
		return yes
	}
	return no
}

// each judges the words that a column has, and then entries by them.
func (c *column) each(n int, judge func(word) outcome, put func(int, outcome), f found) {
	outcomes := make([]outcome, len(c.dict))
	alike := true
	for i, w := range c.dict {
		outcomes[i] = judge(w)
		alike = alike && outcomes[i] == outcomes[0]
	}
	if alike {
		if outcomes[0] == yes {
			f.yes.fill(n)
		}
		if outcomes[0] != no {
			f.maybe.fill(n)
		}
		return
	}
	for i, code := range c.codes {
		if o := outcomes[code]; o != no {
			put(i, o)
		}
	}
	for i, code := range c.wide {
		if o := outcomes[code]; o != no {
			put(i, o)
		}
	}
}
