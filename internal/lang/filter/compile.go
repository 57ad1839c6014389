package filter

import "netkeep.internal/internal/lang/fault"

// Query is a compiled text. It does not change, and any number of goroutines
// may use it at once.
type Query[R any] struct {
	source source
	tree   *Tree
	schema *Schema[R]
	where  verdict[R]
	orders []Order[R]
	skip   clause
	limit  clause
}

// Compile parses a text and checks it against the schema. The error is a
// *fault.Error with CodeFilter.
func Compile[R any](schema *Schema[R], text string) (*Query[R], error) {
	s := source{text, fault.CodeFilter}
	tree, err := parse(s)
	if err != nil {
		return nil, err
	}
	return compileTree(schema, s, tree)
}

func compileTree[R any](schema *Schema[R], s source, tree *Tree) (*Query[R], error) {
	q := &Query[R]{source: s, tree: tree, schema: schema, where: always[R](true), skip: tree.skip, limit: tree.limit}
	c := compiler[R]{source: s, schema: schema}
	var err error
	if tree.where != nil {
		if q.where, err = c.predicate(tree.where); err != nil {
			return nil, err
		}
	}
	if q.orders, err = c.orders(tree.sort); err != nil {
		return nil, err
	}
	return q, nil
}

// Match reports whether the query selects the row.
func (q *Query[R]) Match(row R) bool { return q.where.test(row) }

// Only returns the query's predicate on the values of one scalar, if it looks
// at nothing else: whoever walks an index of that field can judge the keys and
// leave the rows alone.
func (q *Query[R]) Only(symbol *Symbol[R]) (test func(Value) bool, ok bool) {
	if q.tree.where == nil || symbol.One == nil {
		return nil, false
	}
	alone := &Schema[Value]{symbols: map[string]*Symbol[Value]{
		symbol.Name: {Name: symbol.Name, Type: symbol.Type, One: func(v Value) Value { return v }},
	}}
	where, err := compiler[Value]{source: q.source, schema: alone}.predicate(q.tree.where)
	if err != nil {
		return nil, false // it names another field
	}
	return where.test, true
}

// All reports whether the query is known to select every row.
func (q *Query[R]) All() bool { return q.where.known && q.where.outcome }

// Skip returns the number of the skip clause, and whether there is one.
func (q *Query[R]) Skip() (n int64, set bool) { return q.skip.n, q.skip.set }

// Limit returns the number of the limit clause, whether it is limit none, and
// whether there is one.
func (q *Query[R]) Limit() (n int64, none, set bool) { return q.limit.n, q.limit.none, q.limit.set }

// verdict is a compiled predicate.
type verdict[R any] struct {
	test    func(R) bool
	known   bool // the outcome is the same for every row
	outcome bool // when known
	needs   [][]Term[R]
	parts   []Part[R]
}

// always returns the verdict of a constant. That nothing satisfies an empty
// choice is how a query says that no row can match.
func always[R any](outcome bool) verdict[R] {
	v := verdict[R]{test: func(R) bool { return outcome }, known: true, outcome: outcome}
	if !outcome {
		v.needs = [][]Term[R]{{}}
	}
	return v
}

// compiler turns the nodes of one text into closures over rows of type R.
type compiler[R any] struct {
	source
	schema *Schema[R]
}

func (c compiler[R]) predicate(n node) (verdict[R], error) {
	switch n := n.(type) {
	case *logic:
		return c.logic(n)
	case *negation:
		return c.negation(n)
	case constant:
		return always[R](bool(n)), nil
	case *flag:
		return c.flag(n)
	case *emptiness:
		return c.emptiness(n)
	case *comparison:
		return c.comparison(n)
	}
	panic("filter: unknown node")
}

// logic leaves out the terms whose outcome is known, after checking them.
func (c compiler[R]) logic(n *logic) (verdict[R], error) {
	var open []verdict[R]
	decided := false
	for _, term := range n.terms {
		v, err := c.predicate(term)
		switch {
		case err != nil:
			return verdict[R]{}, err
		case !v.known:
			open = append(open, v)
		case v.outcome == n.or:
			decided = true
		}
	}
	switch {
	case decided:
		return always[R](n.or), nil
	case len(open) == 0:
		return always[R](!n.or), nil
	case len(open) == 1:
		return open[0], nil
	}
	tests := make([]func(R) bool, len(open))
	for i, v := range open {
		tests[i] = v.test
	}
	if n.or {
		return verdict[R]{test: anyTest(tests), needs: needsOfOr(open)}, nil
	}
	return verdict[R]{test: allTest(tests), needs: needsOfAnd(open), parts: partsOfAnd(open)}, nil
}

func anyTest[R any](tests []func(R) bool) func(R) bool {
	return func(row R) bool {
		for _, test := range tests {
			if test(row) {
				return true
			}
		}
		return false
	}
}

func allTest[R any](tests []func(R) bool) func(R) bool {
	return func(row R) bool {
		for _, test := range tests {
			if !test(row) {
				return false
			}
		}
		return true
	}
}

func (c compiler[R]) negation(n *negation) (verdict[R], error) {
	v, err := c.predicate(n.of)
	if err != nil {
		return v, err
	}
	if v.known {
		return always[R](!v.outcome), nil
	}
	return verdict[R]{test: func(row R) bool { return !v.test(row) }}, nil
}

// flag is a comparison with true.
func (c compiler[R]) flag(n *flag) (verdict[R], error) {
	symbol, key, err := c.scalar(n.field)
	if err != nil {
		return verdict[R]{}, err
	}
	if symbol.Type != Bool && symbol.Type != Map {
		return verdict[R]{}, c.errorAt(n.field.at, "%s is a %s: compare it with a value", excerpt(n.field.text), symbol.Type)
	}
	yes := literal{value: BoolValue(true), at: n.field.at}
	return c.scalarComparison(symbol, key, &comparison{op: opEqual, at: n.field.at, args: []literal{yes}})
}

func (c compiler[R]) comparison(n *comparison) (verdict[R], error) {
	switch n.operand.function {
	case noFunction:
		symbol, key, err := c.scalar(n.operand.set.field)
		if err != nil {
			return verdict[R]{}, err
		}
		return c.scalarComparison(symbol, key, n)
	case count:
		return c.countComparison(n)
	}
	return c.setComparison(n)
}

// scalar finds a field that is no set.
func (c compiler[R]) scalar(n name) (*Symbol[R], string, error) {
	symbol, key, err := c.schema.resolve(c.source, n)
	if err == nil && symbol.Set {
		err = c.errorAt(n.at, "%s is a set: use it inside anyOf, allOf, count or isEmpty", excerpt(n.text))
	}
	return symbol, key, err
}

// set finds a field that is a set.
func (c compiler[R]) set(n name) (*Symbol[R], error) {
	symbol, _, err := c.schema.resolve(c.source, n)
	if err == nil && !symbol.Set {
		err = c.errorAt(n.at, "%s is not a set", excerpt(n.text))
	}
	return symbol, err
}

func (c compiler[R]) scalarComparison(symbol *Symbol[R], key string, n *comparison) (verdict[R], error) {
	n = n.inWords(symbol.Numbers)
	test, err := newTest(c.source, symbol.Type, n)
	if err != nil {
		return verdict[R]{}, err
	}
	if symbol.Type == Map {
		element := symbol.Key
		return verdict[R]{test: func(row R) bool { return test(element(row, key)) }}, nil
	}
	one := symbol.One
	return verdict[R]{
		test:  func(row R) bool { return test(one(row)) },
		needs: needsOfEquality(symbol, n),
		parts: partsOf(symbol, n),
	}, nil
}

// setComparison compiles anyOf and allOf, which compare element by element.
func (c compiler[R]) setComparison(n *comparison) (verdict[R], error) {
	symbol, err := c.set(n.operand.set.field)
	if err != nil {
		return verdict[R]{}, err
	}
	test, err := newTest(c.source, symbol.Type, n)
	if err != nil {
		return verdict[R]{}, err
	}
	if n.operand.function == anyOf {
		return verdict[R]{test: exists(symbol.Many, test), needs: needsOfEquality(symbol, n)}, nil
	}
	other := exists(symbol.Many, func(v Value) bool { return !test(v) })
	return verdict[R]{test: func(row R) bool { return !other(row) }}, nil
}

func (c compiler[R]) countComparison(n *comparison) (verdict[R], error) {
	size, err := c.size(n.operand.set, noLimit)
	if err != nil {
		return verdict[R]{}, err
	}
	test, err := newTest(c.source, Int, n)
	if err != nil {
		return verdict[R]{}, err
	}
	return verdict[R]{test: func(row R) bool { return test(IntValue(size(row))) }}, nil
}

func (c compiler[R]) emptiness(n *emptiness) (verdict[R], error) {
	size, err := c.size(n.set, 1)
	if err != nil {
		return verdict[R]{}, err
	}
	return verdict[R]{test: func(row R) bool { return size(row) == 0 }}, nil
}

// size returns a function that counts what a set expression selects, up to
// enough.
func (c compiler[R]) size(set setExpr, enough int64) (func(R) int64, error) {
	symbol, err := c.set(set.field)
	if err != nil {
		return nil, err
	}
	if set.query == nil {
		return tally(symbol.Many, func(Value) bool { return true }, enough), nil
	}
	if symbol.Sub == nil {
		return nil, c.errorAt(set.field.at, "%s is not a set that sub queries can search", excerpt(set.field.text))
	}
	w := set.query.window()
	w.limit = min(w.limit, enough)
	selected, err := symbol.Sub.tally(c.source, set.query, w.enough())
	if err != nil {
		return nil, err
	}
	return func(row R) int64 { return w.left(selected(row)) }, nil
}
