package filter

import (
	"time"
)

// item is the row type of the tests: one field of every type, any of which
// may be absent.
type item struct {
	ID     string         `json:"id"`
	Name   *string        `json:"name"`
	Cost   *int64         `json:"cost"`
	Load   *float64       `json:"load"`
	Admin  *bool          `json:"admin"`
	MadeAt *time.Time     `json:"madeAt"`
	Tags   map[string]any `json:"tags"`
	Roles  []string       `json:"roles"`
	Ports  []int64        `json:"ports"`
	Parts  []*part        `json:"parts"`
}

// part is a row that items refer to.
type part struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Cost  int64    `json:"cost"`
	Roles []string `json:"roles"`
}

func optional[T any](p *T, value func(T) Value) Value {
	if p == nil {
		return Value{}
	}
	return value(*p)
}

func each[T any](values []T, value func(T) Value, yield func(Value) bool) {
	for _, v := range values {
		if !yield(value(v)) {
			return
		}
	}
}

var partSchema = NewSchema(
	Symbol[*part]{Name: "id", Type: String, One: func(p *part) Value { return StringValue(p.ID) }},
	Symbol[*part]{Name: "name", Type: String, One: func(p *part) Value { return StringValue(p.Name) }},
	Symbol[*part]{Name: "cost", Type: Int, One: func(p *part) Value { return IntValue(p.Cost) }},
	Symbol[*part]{Name: "roles", Type: String, Set: true,
		Many: func(p *part, yield func(Value) bool) { each(p.Roles, StringValue, yield) }},
)

var itemSchema = NewSchema(
	Symbol[*item]{Name: "id", Type: String, Index: "by-id", One: func(i *item) Value { return StringValue(i.ID) }},
	Symbol[*item]{Name: "name", Type: String, Index: "by-name",
		One: func(i *item) Value { return optional(i.Name, StringValue) }},
	Symbol[*item]{Name: "label", Type: String, Unlisted: true,
		One: func(i *item) Value { return optional(i.Name, StringValue) }},
	Symbol[*item]{Name: "cost", Type: Int, Index: "by-cost",
		One: func(i *item) Value { return optional(i.Cost, IntValue) }},
	Symbol[*item]{Name: "load", Type: Float, Index: "by-load",
		One: func(i *item) Value { return optional(i.Load, FloatValue) }},
	Symbol[*item]{Name: "admin", Type: Bool, One: func(i *item) Value { return optional(i.Admin, BoolValue) }},
	Symbol[*item]{Name: "madeAt", Type: Time, One: func(i *item) Value { return optional(i.MadeAt, TimeValue) }},
	Symbol[*item]{Name: "owner.cost", Type: Int, One: func(i *item) Value { return optional(i.Cost, IntValue) }},
	Symbol[*item]{Name: "limit", Type: Int, One: func(i *item) Value { return optional(i.Cost, IntValue) }},
	Symbol[*item]{Name: "tags", Type: Map, Key: func(i *item, key string) Value { return AnyValue(i.Tags[key]) }},
	Symbol[*item]{Name: "roles", Type: String, Set: true, Index: "by-role",
		Many: func(i *item, yield func(Value) bool) { each(i.Roles, StringValue, yield) }},
	Symbol[*item]{Name: "ports", Type: Int, Set: true,
		Many: func(i *item, yield func(Value) bool) { each(i.Ports, IntValue, yield) }},
	Symbol[*item]{Name: "parts", Type: String, Set: true,
		Many: func(i *item, yield func(Value) bool) {
			each(i.Parts, func(p *part) Value { return StringValue(p.ID) }, yield)
		},
		Sub: Through(partSchema, func(i *item, yield func(*part) bool) {
			for _, p := range i.Parts {
				if !yield(p) {
					return
				}
			}
		})},
)
