package filter

// Bound is what a query says of the order of a scalar: no row that it selects has a
// value of Symbol below Least, or above Most. Either is of no type if nothing is
// said. Who looks for rows may leave out what is outside; what is inside need not
// match.
type Bound[R any] struct {
	Symbol      *Symbol[R]
	Least, Most Value
}

// Bounds are all that hold for every row that the query selects.
func (q *Query[R]) Bounds() []Bound[R] { return q.where.bounds }

// boundsOfOrder returns what a comparison says about a number or a time.
func boundsOfOrder[R any](symbol *Symbol[R], c *comparison) []Bound[R] {
	if c.negated || symbol.Type != Int && symbol.Type != Float && symbol.Type != Time {
		return nil
	}
	b := Bound[R]{Symbol: symbol}
	switch first := c.args[0].value; c.op {
	case opEqual:
		if first.typ == None {
			return nil
		}
		b.Least, b.Most = first, first
	case opLess, opLessEqual:
		b.Most = first
	case opGreater, opGreaterEqual:
		b.Least = first
	case opBetween:
		b.Least, b.Most = first, c.args[1].value
	default:
		return nil
	}
	return []Bound[R]{b}
}

// boundsOfAnd: all members hold, so all that they say does.
func boundsOfAnd[R any](members []verdict[R]) (all []Bound[R]) {
	for _, m := range members {
		all = append(all, m.bounds...)
	}
	return all
}
