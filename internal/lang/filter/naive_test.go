package filter

import (
	"math/big"
	"strconv"
	"strings"
	"time"
)

// record is a row as the naive evaluator sees it: scalars are nil, string,
// int64, float64, bool or time.Time, sets are []any, sub query rows []record.
type record struct {
	types  map[string]Type
	fields map[string]any
	tags   map[string]any
	sets   map[string][]any
	subs   map[string][]record
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func anys[T any](values []T) []any {
	var list []any
	for _, v := range values {
		list = append(list, v)
	}
	return list
}

func recordOf(i *item) record {
	r := record{
		types: map[string]Type{"id": String, "name": String, "cost": Int, "load": Float, "admin": Bool,
			"madeAt": Time, "roles": String, "ports": Int, "parts": String},
		fields: map[string]any{"id": i.ID, "name": deref(i.Name), "cost": deref(i.Cost), "load": deref(i.Load),
			"admin": deref(i.Admin), "madeAt": deref(i.MadeAt)},
		tags: i.Tags,
		sets: map[string][]any{"roles": anys(i.Roles), "ports": anys(i.Ports)},
		subs: map[string][]record{},
	}
	for _, p := range i.Parts {
		r.sets["parts"] = append(r.sets["parts"], p.ID)
		r.subs["parts"] = append(r.subs["parts"], record{
			types:  map[string]Type{"id": String, "name": String, "cost": Int, "roles": String},
			fields: map[string]any{"id": p.ID, "name": p.Name, "cost": p.Cost},
			sets:   map[string][]any{"roles": anys(p.Roles)},
		})
	}
	return r
}

// matches walks a tree as slowly and plainly as the language allows.
func (r record) matches(n node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case constant:
		return bool(n)
	case *negation:
		return !r.matches(n.of)
	case *logic:
		first := r.matches(n.terms[0])
		if len(n.terms) == 1 {
			return first
		}
		rest := r.matches(&logic{or: n.or, terms: n.terms[1:]})
		if n.or {
			return first || rest
		}
		return first && rest
	case *flag:
		v, _ := r.scalar(n.field.text)
		return v == true
	case *emptiness:
		return len(r.elements(n.set)) == 0
	case *comparison:
		return r.compares(n)
	}
	panic("unknown node")
}

func (r record) scalar(name string) (any, Type) {
	if key, ok := strings.CutPrefix(name, "tags."); ok {
		return r.tags[key], Map
	}
	return r.fields[name], r.types[name]
}

func (r record) elements(s setExpr) []any {
	if s.query == nil {
		return r.sets[s.field.text]
	}
	var found []any
	for _, sub := range r.subs[s.field.text] {
		if sub.matches(s.query.where) {
			found = append(found, sub)
		}
	}
	if n := s.query.skip.n; n > 0 {
		found = found[min(int(n), len(found)):]
	}
	if n := s.query.limit.n; n > 0 {
		found = found[:min(int(n), len(found))]
	}
	return found
}

func (r record) compares(c *comparison) bool {
	field := c.operand.set.field.text
	switch c.operand.function {
	case count:
		return naiveCompare(int64(len(r.elements(c.operand.set))), Int, c)
	case anyOf:
		for _, v := range r.sets[field] {
			if naiveCompare(v, r.types[field], c) {
				return true
			}
		}
		return false
	case allOf:
		for _, v := range r.sets[field] {
			if !naiveCompare(v, r.types[field], c) {
				return false
			}
		}
		return true
	}
	v, typ := r.scalar(field)
	return naiveCompare(v, typ, c)
}

func naiveCompare(v any, typ Type, c *comparison) bool {
	return naivePlain(v, typ, c) != c.negated
}

func naivePlain(v any, typ Type, c *comparison) bool {
	arg := naiveLiteral(c.args[0], typ)
	if arg == nil {
		return v == nil
	}
	switch c.op {
	case opContains, opIContains:
		return naiveContains(v, typ, c)
	case opIn:
		for _, item := range c.args {
			if order, ok := naiveOrder(v, naiveLiteral(item, typ)); ok && order == 0 {
				return true
			}
		}
		return false
	case opBetween:
		low, ok := naiveOrder(v, arg)
		high, _ := naiveOrder(v, naiveLiteral(c.args[1], typ))
		return ok && low >= 0 && high < 0
	}
	order, ok := naiveOrder(v, arg)
	if !ok {
		return false
	}
	switch c.op {
	case opEqual:
		return order == 0
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	}
	return order >= 0
}

func naiveContains(v any, typ Type, c *comparison) bool {
	literal, isText := naiveLiteral(c.args[0], None).(string)
	if !isText {
		literal = c.args[0].source
	}
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return false
	}
	if _, stored := v.(string); !stored && typ == Map && (isText || c.op == opIContains) {
		return false
	}
	if c.op == opIContains {
		return strings.Contains(strings.ToLower(text), strings.ToLower(literal))
	}
	return strings.Contains(text, literal)
}

// naiveLiteral returns a literal as a Go value, numbers as they are written
// if they meet a string field.
func naiveLiteral(l literal, typ Type) any {
	switch l.value.Type() {
	case String:
		return l.value.String()
	case Int, Float:
		if typ == String {
			return l.source
		}
		if l.value.Type() == Int {
			return l.value.Int()
		}
		return l.value.Float()
	case Bool:
		return l.value.Bool()
	case Time:
		return l.value.Time()
	}
	return nil
}

// naiveOrder orders two values, and reports whether they have an order.
func naiveOrder(a, b any) (int, bool) {
	if x, ok := naiveNumber(a); ok {
		if y, ok := naiveNumber(b); ok {
			return x.Cmp(y), true
		}
		return 0, false
	}
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return strings.Compare(a, b), ok
	case time.Time:
		b, ok := b.(time.Time)
		return a.Compare(b), ok
	case bool:
		b, ok := b.(bool)
		if a == b {
			return 0, ok
		}
		return 1, ok
	}
	return 0, false
}

func naiveNumber(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), true
	case float64:
		return new(big.Rat).SetFloat64(v), true
	}
	return nil, false
}
