package filter

// parser reads tokens into a tree by recursive descent, with one token of
// lookahead and no way back. Only brackets, nots and sub queries recurse, and
// they are bounded; chains of and and or are read in a loop.
//
// The first failure sticks: it turns the current token into the end of the
// text, so that every production returns by itself and need not check.
type parser struct {
	lexer
	tok   token
	err   error
	depth int
	terms int
}

// parse reads a text without looking at what its fields are. A text of white
// space alone is a query for everything.
func parse(s source) (*Tree, error) {
	p, err := newParser(s)
	if err != nil {
		return nil, err
	}
	tree := &Tree{}
	if p.tok.kind != endOfText {
		tree = p.query()
		p.expectEnd(`"and", "or", or the end (the clauses come as sort, skip, limit)`)
	}
	if p.err != nil {
		return nil, p.err
	}
	return tree, nil
}

// parseSort reads the list of a sort query parameter.
func parseSort(s source) ([]sortField, error) {
	p, err := newParser(s)
	if err != nil {
		return nil, err
	}
	var fields []sortField
	if p.tok.kind != endOfText {
		fields = p.sortFields()
		p.expectEnd(`"asc", "desc", "," or the end`)
	}
	if p.err != nil {
		return nil, p.err
	}
	return fields, nil
}

func newParser(s source) (*parser, error) {
	if err := s.checkLength(); err != nil {
		return nil, err
	}
	p := &parser{lexer: lexer{source: s}}
	p.advance()
	return p, nil
}

// advance moves to the next token.
func (p *parser) advance() {
	if p.err != nil {
		return
	}
	t, err := p.next()
	if err != nil {
		p.stop(err)
		return
	}
	p.tok = t
}

// stop keeps a failure and ends the text.
func (p *parser) stop(err error) {
	p.err = err
	p.tok = token{kind: endOfText, at: len(p.text), end: len(p.text), gap: 1}
}

// fail is stop with a message, unless there is a failure already.
func (p *parser) fail(at int, format string, args ...any) {
	if p.err == nil {
		p.stop(p.errorAt(at, format, args...))
	}
}

// unexpected fails on the current token.
func (p *parser) unexpected(expected string) {
	if p.tok.kind == endOfText {
		p.fail(p.tok.at, "found the end, expected %s", expected)
		return
	}
	p.fail(p.tok.at, "found %s, expected %s", excerpt(p.text[p.tok.at:p.tok.end]), expected)
}

func (p *parser) expectEnd(expected string) {
	if p.tok.kind != endOfText {
		p.unexpected(expected)
	}
}

// take moves past a token of the kind, or fails.
func (p *parser) take(kind tokenKind, expected string) {
	if p.tok.kind != kind {
		p.unexpected(expected)
		return
	}
	p.advance()
}

// needSpace fails if the current token follows the one before immediately.
func (p *parser) needSpace() {
	if p.tok.gap == 0 && p.tok.at > 0 && p.tok.kind != endOfText {
		p.fail(p.tok.at, "expected white space before %s", excerpt(p.text[p.tok.at:p.tok.end]))
	}
}

// takeSpaced moves past a word that must have white space after it.
func (p *parser) takeSpaced() {
	p.advance()
	p.needSpace()
}

// enter counts a level of nesting.
func (p *parser) enter() {
	p.depth++
	if p.depth > MaxDepth {
		p.fail(p.tok.at, "nested deeper than the %d levels allowed", MaxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// query reads a predicate and clauses, at least one of them.
func (p *parser) query() *Tree {
	tree := &Tree{}
	switch p.tok.kind {
	case wordSort, wordSkip, wordLimit:
	default:
		tree.where = p.predicate()
	}
	if p.tok.kind == wordSort {
		p.needSpace()
		p.takeSpaced()
		p.take(wordBy, `"by" after "sort"`)
		p.needSpace()
		tree.sort = p.sortFields()
	}
	if p.tok.kind == wordSkip {
		p.needSpace()
		p.takeSpaced()
		tree.skip = p.rows(`a whole number after "skip"`)
	}
	if p.tok.kind == wordLimit {
		p.needSpace()
		p.takeSpaced()
		if p.tok.kind == wordNone {
			p.advance()
			tree.limit = clause{set: true, none: true}
		} else {
			tree.limit = p.rows(`a whole number or "none" after "limit"`)
		}
	}
	return tree
}

// rows reads a number of rows.
func (p *parser) rows(expected string) clause {
	c := clause{set: true, n: p.tok.value.Int()}
	if p.tok.value.typ != Int {
		p.unexpected(expected)
	}
	p.advance()
	return c
}

func (p *parser) sortFields() []sortField {
	var fields []sortField
	for {
		f := sortField{field: p.field("a field to sort by")}
		switch p.tok.kind {
		case wordAsc:
			p.advance()
		case wordDesc:
			f.desc = true
			p.advance()
		}
		fields = append(fields, f)
		if p.tok.kind != comma {
			return fields
		}
		p.advance()
	}
}

// field reads a field name.
func (p *parser) field(expected string) name {
	n := name{text: p.text[p.tok.at:p.tok.end], at: p.tok.at}
	p.take(fieldName, expected)
	return n
}

// predicate reads a chain of terms and gives each operator all that follows.
func (p *parser) predicate() node {
	terms := []node{p.term()}
	var ors []bool
	for p.tok.kind == wordAnd || p.tok.kind == wordOr {
		ors = append(ors, p.tok.kind == wordOr)
		p.needSpace()
		p.takeSpaced()
		terms = append(terms, p.term())
	}
	return fold(terms, ors)
}

// fold joins terms from the right; ors[i] tells the operator after terms[i].
// A run of one operator becomes one node.
func fold(terms []node, ors []bool) node {
	right := terms[len(terms)-1]
	for end := len(ors); end > 0; {
		start := end - 1
		for start > 0 && ors[start-1] == ors[start] {
			start--
		}
		run := &logic{or: ors[start], terms: append([]node(nil), terms[start:end]...)}
		if last, ok := right.(*logic); ok && last.or == run.or {
			run.terms = append(run.terms, last.terms...)
		} else {
			run.terms = append(run.terms, right)
		}
		right, end = run, start
	}
	return right
}

// term reads one member of a chain. A not takes the rest of the chain.
func (p *parser) term() node {
	switch p.tok.kind {
	case wordNot:
		p.enter()
		defer p.leave()
		p.takeSpaced()
		return &negation{of: p.predicate()}
	case openBracket:
		p.enter()
		defer p.leave()
		p.advance()
		inner := p.predicate()
		p.take(closeBracket, `"and", "or" or ")"`)
		return inner
	}
	p.terms++
	if p.terms > MaxTerms {
		p.fail(p.tok.at, "more than the %d terms allowed", MaxTerms)
	}
	switch p.tok.kind {
	case wordTrue, wordFalse:
		c := constant(p.tok.kind == wordTrue)
		p.advance()
		return c
	case wordIsEmpty:
		p.advance()
		return &emptiness{set: p.bracketed(true)}
	case fieldName, wordAnyOf, wordAllOf, wordCount:
		return p.comparison()
	}
	p.unexpected(`a field, a function, "not", "(", "true" or "false"`)
	return constant(false)
}

// operand reads the left side of a comparison.
func (p *parser) operand() operand {
	var o operand
	switch p.tok.kind {
	case wordAnyOf:
		o.function = anyOf
	case wordAllOf:
		o.function = allOf
	case wordCount:
		o.function = count
	default:
		o.set.field = p.field("a field")
		return o
	}
	p.advance()
	o.set = p.bracketed(o.function == count)
	return o
}

// bracketed reads the argument of a set function.
func (p *parser) bracketed(queries bool) setExpr {
	if p.tok.kind != openBracket || p.tok.gap > 0 {
		p.unexpected(`"(" immediately after the function`)
	}
	p.advance()
	var s setExpr
	if queries && p.tok.kind == wordFrom {
		p.enter()
		defer p.leave()
		p.takeSpaced()
		s.field = p.field(`a set after "from"`)
		p.take(wordWhere, `"where"`)
		p.needSpace()
		s.query = p.query()
		p.take(closeBracket, `"and", "or", a clause or ")"`)
		return s
	}
	s.field = p.field("the name of a set")
	p.take(closeBracket, `")"`)
	return s
}

// comparison reads a comparison, or a field that stands alone.
func (p *parser) comparison() node {
	c := &comparison{operand: p.operand(), at: p.tok.at}
	switch p.tok.kind {
	case equal, notEqual:
		c.op, c.negated = opEqual, p.tok.kind == notEqual
		p.advance()
		c.args = p.literal(`a string, number, datetime, "true", "false" or "null"`,
			stringLiteral, numberLiteral, timeLiteral, wordTrue, wordFalse, wordNull)
	case less, lessEqual, greater, greaterEqual:
		c.op = opLess + operator(p.tok.kind-less)
		p.advance()
		c.args = p.literal("a string, number or datetime", stringLiteral, numberLiteral, timeLiteral)
	case wordNot, wordContains, wordIContains, wordIn, wordBetween:
		p.wordComparison(c)
	default:
		if c.operand.function == noFunction {
			return &flag{field: c.operand.set.field}
		}
		p.unexpected("a comparison")
	}
	return c
}

// wordComparison reads an operator that is a word, and its arguments.
func (p *parser) wordComparison(c *comparison) {
	apart := p.tok.gap > 0
	c.negated = p.tok.kind == wordNot
	if c.negated {
		p.advance()
	}
	word := p.tok
	switch word.kind {
	case wordContains, wordIContains:
		c.op = opContains
		if word.kind == wordIContains {
			c.op = opIContains
		}
		p.takeSpaced()
		c.args = p.literal("a string or number", stringLiteral, numberLiteral)
		return
	case wordIn:
		c.op = opIn
		if c.negated && word.gap != 1 {
			p.fail(word.at, `expected one white space character between "not" and "in"`)
		}
		p.takeSpaced()
		c.args = p.array()
	case wordBetween:
		c.op = opBetween
		p.takeSpaced()
		c.args = p.limits()
	default:
		p.unexpected(`"contains", "icontains", "in" or "between" after "not"`)
	}
	if !apart {
		p.fail(c.at, "expected white space before %s", excerpt(p.text[word.at:word.end]))
	}
}

// literal reads a value of one of the kinds.
func (p *parser) literal(expected string, kinds ...tokenKind) []literal {
	for _, kind := range kinds {
		if p.tok.kind == kind {
			return []literal{p.value()}
		}
	}
	p.unexpected(expected)
	return nil
}

// value takes the current token as a literal.
func (p *parser) value() literal {
	l := literal{value: p.tok.value, at: p.tok.at}
	switch p.tok.kind {
	case numberLiteral:
		l.source = p.text[p.tok.at:p.tok.end]
	case wordTrue, wordFalse:
		l.value = BoolValue(p.tok.kind == wordTrue)
	}
	p.advance()
	return l
}

// limits reads the ends of a between, which are of one kind.
func (p *parser) limits() []literal {
	kind, expected := p.tok.kind, "a number"
	switch kind {
	case numberLiteral:
	case timeLiteral:
		expected = "a datetime"
	default:
		p.unexpected("a number or datetime")
	}
	args := []literal{p.value()}
	p.needSpace()
	p.take(wordAnd, `"and" between the two ends`)
	p.needSpace()
	return append(args, p.literal(expected, kind)...)
}

// array reads the items of an in, which are of one kind.
func (p *parser) array() []literal {
	p.take(openArray, `"["`)
	kind, expected := p.tok.kind, "a string"
	switch kind {
	case stringLiteral:
	case numberLiteral:
		expected = "a number"
	case timeLiteral:
		expected = "a datetime"
	default:
		p.unexpected("a string, number or datetime")
	}
	var items []literal
	for p.err == nil {
		if len(items) == MaxItems {
			p.fail(p.tok.at, "more than the %d items allowed in an array", MaxItems)
			break
		}
		items = append(items, p.literal(expected, kind)...)
		if p.tok.kind != comma {
			break
		}
		p.advance()
	}
	p.take(closeArray, `"," or "]"`)
	return items
}
