package filter

import (
	"strconv"
	"time"

	"pgregory.net/rapid"
)

// The generators draw from small pools, so that random queries meet random
// rows often.
var (
	someTexts = rapid.SampledFrom([]string{"", "a", "A", "ab", "Ba", "1", "1.5", "10", "é", "É\n", `q"\`, "K", "\u212a"})
	someInts  = rapid.SampledFrom([]int64{0, 1, -1, 2, 10, 1<<53 + 1, 1 << 53, -1 << 63, 1<<63 - 1})
	// Floats as they are written, since a literal keeps its text.
	someFloats = rapid.SampledFrom([]string{"0.0", "-0.0", "1.0", "1.5", "1e1", "9007199254740992.0", "1E300", "-2.5e-3"})
	someTimes  = rapid.SampledFrom([]time.Time{
		time.Date(2023, 4, 26, 10, 11, 12, 345e6, time.UTC),
		time.Date(2023, 4, 26, 12, 11, 12, 345e6, time.FixedZone("", 7200)),
		time.Date(2023, 4, 26, 10, 11, 12, 345e6+1, time.UTC),
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
	})
)

func float(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return f
}

// maybe draws a pointer that is nil now and then.
func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) *T {
	return rapid.Ptr(g, true).Draw(t, label)
}

// drawRow draws an item.
func drawRow(t *rapid.T, id string) *item {
	row := &item{
		ID:     id,
		Name:   maybe(t, someTexts, "name"),
		Cost:   maybe(t, someInts, "cost"),
		Load:   maybe(t, rapid.Map(someFloats, float), "load"),
		Admin:  maybe(t, rapid.Bool(), "admin"),
		MadeAt: maybe(t, someTimes, "madeAt"),
		Roles:  rapid.SliceOfN(someTexts, 0, 3).Draw(t, "roles"),
		Ports:  rapid.SliceOfN(someInts, 0, 3).Draw(t, "ports"),
		Tags:   map[string]any{},
	}
	for _, key := range []string{"k", "a-1"} {
		row.Tags[key] = rapid.OneOf(
			rapid.Just[any](nil), someTexts.AsAny(), someInts.AsAny(),
			rapid.Map(someFloats, float).AsAny(), rapid.Bool().AsAny(), someTimes.AsAny(),
		).Draw(t, "tag")
	}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		row.Parts = append(row.Parts, &part{
			ID:    someTexts.Draw(t, "part"),
			Name:  someTexts.Draw(t, "part name"),
			Cost:  someInts.Draw(t, "part cost"),
			Roles: rapid.SliceOfN(someTexts, 0, 2).Draw(t, "part roles"),
		})
	}
	return row
}

// planner draws trees that have a meaning under a schema.
type planner struct {
	t       *rapid.T
	scalars map[string]Type
	sets    map[string]Type
	subs    map[string]*planner
}

func newPlanner(t *rapid.T) *planner {
	parts := &planner{
		t:       t,
		scalars: map[string]Type{"id": String, "name": String, "cost": Int},
		sets:    map[string]Type{"roles": String},
	}
	return &planner{
		t: t,
		scalars: map[string]Type{"id": String, "name": String, "cost": Int, "load": Float, "admin": Bool,
			"madeAt": Time, "tags.k": Map, "tags.a-1": Map},
		sets: map[string]Type{"roles": String, "ports": Int, "parts": String},
		subs: map[string]*planner{"parts": parts},
	}
}

func pick[T any](t *rapid.T, label string, from ...T) T {
	return rapid.SampledFrom(from).Draw(t, label)
}

func field[V any](t *rapid.T, from map[string]V) (string, V) {
	var names []string
	for name := range from {
		names = append(names, name)
	}
	// Draws must not depend on the order of a map.
	name := rapid.SampledFrom(sorted(names)).Draw(t, "field")
	return name, from[name]
}

// node draws a predicate of at most the depth.
func (p *planner) node(depth int) node {
	kinds := []string{"comparison", "comparison", "comparison", "constant", "empty"}
	if depth > 0 {
		kinds = append(kinds, "logic", "logic", "logic", "not")
	}
	switch pick(p.t, "node", kinds...) {
	case "logic":
		terms := []node{p.node(depth - 1)}
		var ors []bool
		for range rapid.IntRange(1, 4).Draw(p.t, "terms") {
			ors = append(ors, rapid.Bool().Draw(p.t, "or"))
			terms = append(terms, p.node(depth-1))
		}
		return fold(terms, ors)
	case "not":
		return &negation{of: p.node(depth - 1)}
	case "constant":
		return constant(rapid.Bool().Draw(p.t, "constant"))
	case "empty":
		return &emptiness{set: p.setExpr(depth)}
	}
	return p.comparison(depth)
}

func (p *planner) setExpr(depth int) setExpr {
	if len(p.subs) == 0 || rapid.Bool().Draw(p.t, "plain set") {
		name, _ := field(p.t, p.sets)
		return setExpr{field: named(name)}
	}
	name, sub := field(p.t, p.subs)
	query := &Tree{where: sub.node(depth - 1)}
	if rapid.Bool().Draw(p.t, "skip") {
		query.skip = clause{set: true, n: rapid.Int64Range(-1, 3).Draw(p.t, "n")}
	}
	if rapid.Bool().Draw(p.t, "limit") {
		query.limit = clause{set: true, n: rapid.Int64Range(-1, 3).Draw(p.t, "n")}
	}
	return setExpr{field: named(name), query: query}
}

func (p *planner) comparison(depth int) node {
	c := &comparison{}
	var name string
	var typ Type
	switch c.operand.function = pick(p.t, "function", noFunction, noFunction, anyOf, allOf, count); c.operand.function {
	case noFunction:
		name, typ = field(p.t, p.scalars)
		if (typ == Bool || typ == Map) && pick(p.t, "bare", false, false, true) {
			return &flag{field: named(name)}
		}
		c.operand.set.field = named(name)
	case count:
		c.operand.set, typ = p.setExpr(depth), Int
	default:
		name, typ = field(p.t, p.sets)
		c.operand.set.field = named(name)
	}
	p.operation(c, typ)
	return c
}

// operation draws an operator and the literals that it takes with a type.
func (p *planner) operation(c *comparison, typ Type) {
	ops := []operator{opEqual, opEqual, opLess, opLessEqual, opGreater, opGreaterEqual, opIn}
	literals := map[Type][]Type{
		String: {String, Int, Float}, Int: {Int, Float}, Float: {Int, Float},
		Bool: {Bool}, Time: {Time}, Map: {String, Int, Float, Bool, Time},
	}[typ]
	switch typ {
	case String:
		ops = append(ops, opContains, opIContains)
	case Int, Float:
		ops = append(ops, opContains, opBetween)
	case Time:
		ops = append(ops, opBetween)
	case Map:
		ops = append(ops, opContains, opIContains, opBetween)
	case Bool:
		ops = []operator{opEqual}
	}
	c.op = pick(p.t, "operator", ops...)
	n := 1
	switch c.op {
	case opEqual:
		literals = append(literals, None)
	case opContains, opIContains:
		literals = []Type{String, Int, Float}
	case opBetween:
		n = 2
		if typ == Map {
			literals = []Type{Int, Float, Time}
		}
	case opIn:
		n = rapid.IntRange(1, 4).Draw(p.t, "items")
		if typ == Map {
			literals = []Type{String, Int, Float, Time}
		}
	default:
		if typ == Map {
			literals = []Type{String, Int, Float, Time}
		}
	}
	c.negated = (c.op == opEqual || c.op >= opContains) && rapid.Bool().Draw(p.t, "negated")
	first := pick(p.t, "literal", literals...)
	for range n {
		of := first
		if of == Int || of == Float {
			of = pick(p.t, "number", Int, Float)
		}
		c.args = append(c.args, p.literal(of))
	}
}

func (p *planner) literal(of Type) literal {
	switch of {
	case String:
		return literal{value: StringValue(someTexts.Draw(p.t, "text"))}
	case Int:
		i := someInts.Draw(p.t, "int")
		return literal{value: IntValue(i), source: strconv.FormatInt(i, 10)}
	case Float:
		text := someFloats.Draw(p.t, "float")
		return literal{value: FloatValue(float(text)), source: text}
	case Bool:
		return literal{value: BoolValue(rapid.Bool().Draw(p.t, "bool"))}
	case Time:
		return literal{value: TimeValue(someTimes.Draw(p.t, "time"))}
	}
	return literal{}
}

func named(text string) name { return name{text: text} }
