package filter

import (
	"strconv"
	"strings"
	"time"
)

// Tree is a parsed text, before anything is known of the fields it names.
type Tree struct {
	where node // nil when the text has no predicate
	sort  []sortField
	skip  clause
	limit clause
}

// clause is the number after skip or limit.
type clause struct {
	set  bool
	none bool // limit none
	n    int64
}

// sortField is one field of a sort clause.
type sortField struct {
	field name
	desc  bool
}

// name is a field as the text names it.
type name struct {
	text string
	at   int
}

// node is a predicate: one of logic, negation, constant, flag, emptiness and
// comparison.
type node interface {
	print(b *strings.Builder)
}

// logic joins two or more predicates by one operator. The last of them is
// never a logic of the same operator, so that equal trees have one form.
type logic struct {
	or    bool
	terms []node
}

// negation is the opposite of a predicate.
type negation struct{ of node }

// constant is true or false.
type constant bool

// flag is a field that stands alone as a predicate.
type flag struct{ field name }

// emptiness asks whether a set has no element.
type emptiness struct{ set setExpr }

// comparison holds an operand against literals: one for most operators, two
// for between, at least one for in.
type comparison struct {
	operand operand
	op      operator
	at      int  // offset of the operator
	negated bool // !=, and the operators that follow a not
	args    []literal
}

// operator compares. The negated forms are the same operators.
type operator uint8

const (
	opEqual operator = iota
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opContains
	opIContains
	opIn
	opBetween
)

func (o operator) String() string {
	return [...]string{"=", "<", "<=", ">", ">=", "contains", "icontains", "in", "between"}[o]
}

// setFunction reduces a set to what a comparison can use.
type setFunction uint8

const (
	noFunction setFunction = iota
	anyOf
	allOf
	count
)

func (f setFunction) String() string {
	return [...]string{"", "anyOf", "allOf", "count"}[f]
}

// operand is the left side of a comparison. Only count may have a sub query.
type operand struct {
	function setFunction
	set      setExpr
}

// setExpr is a field, or the rows behind a field that a sub query selects.
type setExpr struct {
	field name
	query *Tree
}

// literal is a value in the text. The type of null is None.
type literal struct {
	value  Value
	source string // a number as it was written
	at     int
}

// String returns a text that parses to an equal tree.
func (t *Tree) String() string {
	var b strings.Builder
	t.print(&b)
	return b.String()
}

func (t *Tree) print(b *strings.Builder) {
	start := b.Len()
	begin := func(word string) {
		if b.Len() > start {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	if t.where != nil {
		t.where.print(b)
	}
	for i, f := range t.sort {
		if i == 0 {
			begin("sort by ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(f.field.text)
		if f.desc {
			b.WriteString(" desc")
		}
	}
	if t.skip.set {
		begin("skip ")
		b.WriteString(strconv.FormatInt(t.skip.n, 10))
	}
	if t.limit.set {
		begin("limit ")
		if t.limit.none {
			b.WriteString("none")
		} else {
			b.WriteString(strconv.FormatInt(t.limit.n, 10))
		}
	}
}

// print needs brackets around the terms that would swallow what follows them.
func (l *logic) print(b *strings.Builder) {
	word := " and "
	if l.or {
		word = " or "
	}
	for i, term := range l.terms {
		if i == len(l.terms)-1 {
			term.print(b)
			return
		}
		switch term.(type) {
		case *logic, *negation:
			b.WriteByte('(')
			term.print(b)
			b.WriteByte(')')
		default:
			term.print(b)
		}
		b.WriteString(word)
	}
}

func (n *negation) print(b *strings.Builder) {
	b.WriteString("not ")
	n.of.print(b)
}

func (c constant) print(b *strings.Builder) { b.WriteString(strconv.FormatBool(bool(c))) }

func (f *flag) print(b *strings.Builder) { b.WriteString(f.field.text) }

func (e *emptiness) print(b *strings.Builder) {
	b.WriteString("isEmpty(")
	e.set.print(b)
	b.WriteByte(')')
}

func (c *comparison) print(b *strings.Builder) {
	if c.operand.function == noFunction {
		c.operand.set.print(b)
	} else {
		b.WriteString(c.operand.function.String())
		b.WriteByte('(')
		c.operand.set.print(b)
		b.WriteByte(')')
	}
	b.WriteString(" " + c.operator() + " ")
	switch c.op {
	case opBetween:
		c.args[0].print(b)
		b.WriteString(" and ")
		c.args[1].print(b)
	case opIn:
		b.WriteByte('[')
		for i, arg := range c.args {
			if i > 0 {
				b.WriteString(", ")
			}
			arg.print(b)
		}
		b.WriteByte(']')
	default:
		c.args[0].print(b)
	}
}

// operator returns the operator as it is written.
func (c *comparison) operator() string {
	switch {
	case c.negated && c.op == opEqual:
		return "!="
	case c.negated:
		return "not " + c.op.String()
	}
	return c.op.String()
}

func (s setExpr) print(b *strings.Builder) {
	if s.query == nil {
		b.WriteString(s.field.text)
		return
	}
	b.WriteString("from ")
	b.WriteString(s.field.text)
	b.WriteString(" where ")
	s.query.print(b)
}

// escaper writes the characters that a string literal cannot hold as they are.
var escaper = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\f", `\f`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

func (l literal) print(b *strings.Builder) {
	switch l.value.typ {
	case String:
		b.WriteByte('"')
		b.WriteString(escaper.Replace(l.value.text))
		b.WriteByte('"')
	case Int, Float:
		b.WriteString(l.source)
	case Time:
		b.WriteString("datetime(" + l.value.Time().Format(time.RFC3339Nano) + ")")
	default:
		b.WriteString(l.value.String())
	}
}

// asText returns a number as a string literal of the text it was written as.
func (l literal) asText() literal {
	if l.value.isNumber() {
		l.value = StringValue(l.source)
	}
	return l
}
