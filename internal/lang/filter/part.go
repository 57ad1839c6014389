package filter

// Part is a text that the value of Symbol has in it in every row that a query selects, or,
// if Folded, that it has when both are in lower case.
type Part[R any] struct {
	Symbol *Symbol[R]
	Text   string
	Folded bool
	// Whole says that the query asks for nothing else.
	Whole bool
}

// Parts are such texts as the query is known to ask for, about symbols with an Index. None
// is empty.
func (q *Query[R]) Parts() []Part[R] { return q.where.parts }

// partsOf returns what contains and icontains say about a symbol with an index.
func partsOf[R any](symbol *Symbol[R], c *comparison) []Part[R] {
	if symbol.Index == "" || symbol.Type != String || c.negated || c.op != opContains && c.op != opIContains {
		return nil
	}
	text := c.args[0].asText().value
	if text.typ != String || text.text == "" {
		return nil
	}
	return []Part[R]{{Symbol: symbol, Text: text.text, Folded: c.op == opIContains, Whole: true}}
}

// partsOfAnd: all members hold, so what one of them asks for is there.
func partsOfAnd[R any](members []verdict[R]) []Part[R] {
	var parts []Part[R]
	for _, m := range members {
		for _, p := range m.parts {
			p.Whole = false
			parts = append(parts, p)
		}
	}
	return parts
}
