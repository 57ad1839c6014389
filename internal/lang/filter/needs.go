package filter

import "slices"

// Term is an equality that an index can answer: the value of Symbol, or one of
// its values if it is a set, is among Values. The Values are distinct and of
// the symbol's type.
type Term[R any] struct {
	Symbol *Symbol[R]
	Values []Value
}

// Needs helps to find rows without looking at all of them. Each of its members
// is a choice: a row that the query selects satisfies at least one term of
// every choice. So a caller may pick any one choice, look up the rows of its
// terms, drop those found twice, and ask Match about the rest.
//
// The terms are over symbols with an Index only. No choice means that nothing
// is known; a choice without terms means that no row can match.
func (q *Query[R]) Needs() [][]Term[R] { return q.where.needs }

// needsOfEquality returns what = and in say about an indexed symbol.
func needsOfEquality[R any](symbol *Symbol[R], c *comparison) [][]Term[R] {
	if symbol.Index == "" || c.negated || c.op != opEqual && c.op != opIn || c.args[0].value.typ == None {
		return nil
	}
	term := Term[R]{Symbol: symbol}
	for _, arg := range c.args {
		if v, ok := keyOf(symbol.Type, arg); ok {
			term.Values = append(term.Values, v)
		}
	}
	slices.SortFunc(term.Values, compareForSort)
	term.Values = slices.Compact(term.Values)
	return [][]Term[R]{{term}}
}

// keyOf returns the one value of a field's type that equals the literal, and
// whether there is one.
func keyOf(typ Type, arg literal) (Value, bool) {
	switch typ {
	case String:
		return arg.asText().value, true
	case Int:
		v := arg.value.canonical()
		return v, v.typ == Int
	case Float:
		if whole := arg.value.canonical(); whole.typ == Int {
			v := FloatValue(float64(whole.bits))
			return v, compareNumbers(v, whole) == 0
		}
	}
	return arg.value, true
}

// needsOfAnd: all members hold, so all that they need does.
func needsOfAnd[R any](members []verdict[R]) [][]Term[R] {
	var needs [][]Term[R]
	for _, m := range members {
		needs = append(needs, m.needs...)
	}
	return needs
}

// needsOfOr: one member holds, so a choice of each member, taken together, is
// a choice of them all. Of several, the smallest is taken.
func needsOfOr[R any](members []verdict[R]) [][]Term[R] {
	var together []Term[R]
	for _, m := range members {
		if len(m.needs) == 0 {
			return nil
		}
		smallest := slices.MinFunc(m.needs, func(a, b []Term[R]) int { return len(a) - len(b) })
		together = append(together, smallest...)
	}
	return [][]Term[R]{together}
}
