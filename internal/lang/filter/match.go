package filter

import (
	"bytes"
	"slices"
	"strings"
)

// test tells whether a value satisfies a comparison. It tolerates a value of
// any type: one that is absent, or a map's element of another type than the
// literal's, does not satisfy the plain form of an operator, and so does
// satisfy the negated one.
type test func(Value) bool

// newTest returns the test of a comparison for values of a field's type.
func newTest(s source, typ Type, c *comparison) (test, error) {
	args, ok := operands(typ, c)
	if !ok {
		return nil, s.errorAt(c.at, "%s cannot compare a %s with a %s", c.operator(), typ, c.args[0].value.typ)
	}
	t := plainTest(typ, c.op, args)
	if c.negated {
		return func(v Value) bool { return !t(v) }, nil
	}
	return t, nil
}

// operands returns the literals in the type that the comparison works in, and
// whether the operator can compare them with values of a field's type.
func operands(typ Type, c *comparison) ([]literal, bool) {
	first := c.args[0].value
	switch c.op {
	case opContains:
		return texts(c.args), typ == String || typ == Int || typ == Float || typ == Map
	case opIContains:
		return texts(c.args), typ == String || typ == Map
	case opEqual:
		if first.typ == None {
			return c.args, true
		}
	case opBetween:
		if typ == String {
			return nil, false
		}
	}
	switch typ {
	case Map:
		return c.args, true
	case String:
		return texts(c.args), first.typ == String || first.isNumber()
	case Int, Float:
		return c.args, first.isNumber()
	}
	return c.args, first.typ == typ
}

// inWords returns the comparison with numbers turned into the texts that they
// stand for.
func (c *comparison) inWords(numbers []string) *comparison {
	if len(numbers) == 0 || c.op != opEqual && c.op != opIn {
		return c
	}
	worded := *c
	worded.args = slices.Clone(c.args)
	for i, arg := range c.args {
		if v := arg.value.canonical(); v.typ == Int && 0 < v.bits && v.bits <= int64(len(numbers)) {
			worded.args[i] = literal{value: StringValue(numbers[v.bits-1]), at: arg.at}
		}
	}
	return &worded
}

// texts returns the literals with numbers turned into the texts they were
// written as.
func texts(args []literal) []literal {
	converted := make([]literal, len(args))
	for i, arg := range args {
		converted[i] = arg.asText()
	}
	return converted
}

func plainTest(typ Type, op operator, args []literal) test {
	arg := args[0].value
	switch op {
	case opContains:
		return containsTest(typ, args[0])
	case opIContains:
		f := newFolded(arg.text)
		return func(v Value) bool { return v.typ == String && f.in(v.text) }
	case opIn:
		return inTest(args)
	case opBetween:
		low, high := orderTo(arg), orderTo(args[1].value)
		return func(v Value) bool {
			l, ok := low(v)
			if !ok || l < 0 {
				return false
			}
			h, _ := high(v)
			return h < 0
		}
	case opEqual:
		return equalTest(arg)
	}
	return orderTest(op, arg)
}

func equalTest(arg Value) test {
	switch arg.typ {
	case String:
		text := arg.text
		return func(v Value) bool { return v.typ == String && v.text == text }
	case Int, Float:
		return func(v Value) bool { return v.isNumber() && compareNumbers(v, arg) == 0 }
	}
	// Null is the zero Value, which is what an absent value is.
	return func(v Value) bool { return v == arg }
}

// orderTo returns a function that orders values against arg. It reports
// whether the two can be ordered at all.
func orderTo(arg Value) func(Value) (int, bool) {
	switch arg.typ {
	case String:
		text := arg.text
		return func(v Value) (int, bool) { return strings.Compare(v.text, text), v.typ == String }
	case Time:
		return func(v Value) (int, bool) { return compareTimes(v, arg), v.typ == Time }
	}
	return func(v Value) (int, bool) {
		if !v.isNumber() {
			return 0, false
		}
		return compareNumbers(v, arg), true
	}
}

func orderTest(op operator, arg Value) test {
	order := orderTo(arg)
	switch op {
	case opLess:
		return func(v Value) bool { c, ok := order(v); return ok && c < 0 }
	case opLessEqual:
		return func(v Value) bool { c, ok := order(v); return ok && c <= 0 }
	case opGreater:
		return func(v Value) bool { c, ok := order(v); return ok && c > 0 }
	}
	return func(v Value) bool { c, ok := order(v); return ok && c >= 0 }
}

// containsTest looks into texts, and into the decimal texts of numbers if the
// field has numbers or the literal was one.
func containsTest(typ Type, arg literal) test {
	text := arg.value.text
	numbers := typ == Int || typ == Float || arg.source != ""
	if !numbers || typ == String {
		return func(v Value) bool { return v.typ == String && strings.Contains(v.text, text) }
	}
	digits := []byte(text)
	return func(v Value) bool {
		if v.isNumber() {
			var buf [32]byte
			return bytes.Contains(v.appendDecimal(buf[:0]), digits)
		}
		return v.typ == String && strings.Contains(v.text, text)
	}
}

func inTest(args []literal) test {
	if args[0].value.typ == String {
		texts := make(map[string]struct{}, len(args))
		for _, arg := range args {
			texts[arg.value.text] = struct{}{}
		}
		return func(v Value) bool {
			_, ok := texts[v.text]
			return ok && v.typ == String
		}
	}
	values := make(map[Value]struct{}, len(args))
	for _, arg := range args {
		values[arg.value.canonical()] = struct{}{}
	}
	return func(v Value) bool {
		_, ok := values[v.canonical()]
		return ok
	}
}
