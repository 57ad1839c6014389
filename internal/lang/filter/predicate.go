package filter

// Form is what a part of a predicate is.
type Form uint8

// The forms.
const (
	// Other is a part that only Match can judge.
	Other Form = iota
	// Known has the same Outcome for every row.
	Known
	// Every and Any join Terms, Not has one.
	Every
	Any
	Not
	// Comparison holds the value of Symbol, a scalar, against Test.
	Comparison
)

// Predicate is what a query asks of a row, as a tree. It is for who knows less of
// rows than they hold, or of many at a time, and leaves to Match what is open then.
type Predicate[R any] struct {
	Form    Form
	Outcome bool
	Terms   []Predicate[R]

	Symbol *Symbol[R]
	Test   func(Value) bool
	// Equality says that Test asks for one of Values, which are of the symbol's type
	// or absent, or if Negated, for none of them.
	Equality, Negated bool
	Values            []Value

	// ranged says that with any two values all between them satisfy the test, if it
	// is not negated, and least and most, if given, are where that begins and ends.
	ranged      bool
	least, most Value
}

// Between returns the outcome of a comparison for all values from one to another of
// the symbol's type, and whether it is the same for them.
func (p Predicate[R]) Between(least, most Value) (outcome, same bool) {
	switch {
	case !p.ranged:
		return false, false
	case p.Test(least) != p.Negated && p.Test(most) != p.Negated:
		return !p.Negated, true
	case p.least.typ != None && below(most, p.least), p.most.typ != None && below(p.most, least):
		return p.Negated, true
	}
	return false, false
}

// below reports whether a value is known to be less than another.
func below(a, b Value) bool {
	order, ok := orderTo(b)(a)
	return ok && order < 0
}

// Predicate returns what the query asks of a row.
func (q *Query[R]) Predicate() Predicate[R] {
	if q.tree.where == nil || q.where.known {
		return Predicate[R]{Form: Known, Outcome: q.where.outcome}
	}
	return compiler[R]{source: q.source, schema: q.schema}.shape(q.tree.where)
}

// shape is of a text that was compiled before, so that no error is left.
func (c compiler[R]) shape(n node) Predicate[R] {
	switch n := n.(type) {
	case *logic:
		p := Predicate[R]{Form: Every}
		if n.or {
			p.Form = Any
		}
		for _, term := range n.terms {
			p.Terms = append(p.Terms, c.shape(term))
		}
		return p
	case *negation:
		return Predicate[R]{Form: Not, Terms: []Predicate[R]{c.shape(n.of)}}
	case constant:
		return Predicate[R]{Form: Known, Outcome: bool(n)}
	case *flag:
		yes := literal{value: BoolValue(true), at: n.field.at}
		return c.compared(n.field, &comparison{op: opEqual, at: n.field.at, args: []literal{yes}})
	case *comparison:
		if n.operand.function == noFunction {
			return c.compared(n.operand.set.field, n)
		}
	}
	return Predicate[R]{}
}

func (c compiler[R]) compared(field name, n *comparison) Predicate[R] {
	symbol, _, err := c.scalar(field)
	if err != nil || symbol.Type == Map {
		return Predicate[R]{}
	}
	n = n.inWords(symbol.Numbers)
	test, err := newTest(c.source, symbol.Type, n)
	if err != nil {
		return Predicate[R]{}
	}
	p := Predicate[R]{Form: Comparison, Symbol: symbol, Test: test, Negated: n.negated, ranged: true}
	args, _ := operands(symbol.Type, n)
	first := args[0].value
	switch n.op {
	case opEqual, opIn:
		p.Equality, p.ranged = true, n.op == opEqual
		for _, arg := range n.args {
			if arg.value.typ == None {
				p.Values = append(p.Values, Value{})
			} else if v, ok := keyOf(symbol.Type, arg); ok {
				p.Values = append(p.Values, v)
			}
		}
		p.least, p.most = first, first
	case opLess, opLessEqual:
		p.most = first
	case opGreater, opGreaterEqual:
		p.least = first
	case opBetween:
		p.least, p.most = first, args[1].value
	default:
		p.ranged = false
	}
	return p
}
