package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Param is a parameter that requests carry in their query or a header. It is
// declared once: the specification shows it, and requests are read by it,
// before the operation runs. Only operations that declare it can ask for its
// value.
type Param[T any] struct {
	name     string
	doc      string
	header   bool
	required bool
	schema   kind.Schema
	// parse reads the values that a request gives. It returns the one that is
	// wrong and why, if any is.
	parse func(values []string) (v T, wrong, reason string)
}

// Parameter is a Param of any type.
type Parameter interface {
	title() (name string, header bool)
	read(query url.Values, header http.Header) (any, error)
	spec() kind.Schema
}

// TextParam is a parameter that may be any text; an empty one is none.
func TextParam(name, doc string) *Param[string] {
	return &Param[string]{name: name, doc: doc, schema: text, parse: func(values []string) (string, string, string) {
		return values[0], "", ""
	}}
}

// FormatParam is a TextParam that must have a format, which the specification calls by
// name.
func FormatParam(name, doc, format, reason string, fits func(string) bool) *Param[string] {
	p := TextParam(name, doc)
	p.schema = kind.Schema{"type": "string", "format": format}
	p.parse = func(values []string) (string, string, string) {
		if !fits(values[0]) {
			return "", values[0], reason
		}
		return values[0], "", ""
	}
	return p
}

// ChoiceParam is a TextParam that is one of a few. same says which texts are alike.
func ChoiceParam(name, doc string, same func(a, b string) bool, choices ...string) *Param[string] {
	p := TextParam(name, doc)
	p.schema = kind.Schema{"type": "string", "enum": choices}
	p.parse = func(values []string) (string, string, string) {
		i := slices.IndexFunc(choices, func(choice string) bool { return same(choice, values[0]) })
		if i < 0 {
			return "", values[0], "must be one of " + strings.Join(choices, ", ")
		}
		return choices[i], "", ""
	}
	return p
}

// Exactly is for choices that must be written as they are.
func Exactly(a, b string) bool { return a == b }

// NumberParam is a parameter that is a whole number; nil if it is not given.
func NumberParam(name, doc string) *Param[*int64] {
	return &Param[*int64]{name: name, doc: doc, schema: whole, parse: func(values []string) (*int64, string, string) {
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return nil, values[0], "must be a whole number"
		}
		return &n, "", ""
	}}
}

// TextsParam is a parameter that may be given several times. check says what is
// wrong with one of them.
func TextsParam(name, doc string, check func(string) (reason string)) *Param[[]string] {
	return &Param[[]string]{name: name, doc: doc, schema: kind.ListOf(text), parse: func(values []string) ([]string, string, string) {
		for _, s := range values {
			if reason := check(s); reason != "" {
				return nil, s, reason
			}
		}
		return values, "", ""
	}}
}

// FieldsParam is a parameter that is names with commas between them.
func FieldsParam(name, doc string) *Param[[]string] {
	return &Param[[]string]{name: name, doc: doc, schema: text, parse: func(values []string) ([]string, string, string) {
		return strings.FieldsFunc(values[0], func(r rune) bool { return r == ',' }), "", ""
	}}
}

// Required refuses requests without the parameter.
func (p *Param[T]) Required() *Param[T] {
	p.required = true
	return p
}

// InHeader takes the parameter from a header.
func (p *Param[T]) InHeader() *Param[T] {
	p.header = true
	return p
}

// Of returns what a request gives, the zero value if it gives nothing. It
// panics if the operation does not declare the parameter.
func (p *Param[T]) Of(c *Call) T {
	i := slices.Index(c.op.Params, Parameter(p))
	if i < 0 {
		panic(fmt.Sprintf("rest: %s does not declare the parameter %s", c.op.Name, p.name))
	}
	v, _ := c.values[i].(T)
	return v
}

func (p *Param[T]) title() (string, bool) { return p.name, p.header }

// read returns the value that a request gives; nil for none.
func (p *Param[T]) read(query url.Values, header http.Header) (any, error) {
	values := query[p.name]
	if p.header {
		values = header.Values(p.name)
	}
	_, list := any(*new(T)).([]string)
	if len(values) == 0 || values[0] == "" && !list {
		if p.required {
			return nil, fault.Invalid(p.name, "is required", nil)
		}
		return nil, nil
	}
	v, wrong, reason := p.parse(values)
	if reason != "" {
		return nil, fault.Invalid(p.name, reason, wrong)
	}
	return v, nil
}

// spec describes the parameter.
func (p *Param[T]) spec() kind.Schema {
	in := "query"
	if p.header {
		in = "header"
	}
	return kind.Schema{"in": in, "name": p.name, "description": p.doc, "required": p.required, "schema": p.schema}
}

// readParams reads what the operation declares. Whatever else a request may
// carry, nobody can ask for it.
func (c *Call) readParams() error {
	c.values = make([]any, len(c.op.Params))
	if len(c.values) == 0 {
		return nil
	}
	query := c.request.URL.Query()
	for i, p := range c.op.Params {
		v, err := p.read(query, c.request.Header)
		if err != nil {
			return err
		}
		c.values[i] = v
	}
	return nil
}

// checkParams panics if two parameters would be one for a client.
func (o *operation) checkParams() {
	for i, p := range o.Params {
		name, header := p.title()
		if slices.ContainsFunc(o.Params[:i], func(other Parameter) bool {
			n, h := other.title()
			return n == name && h == header
		}) {
			panic(fmt.Sprintf("rest: %s declares the parameter %s twice", o.Name, name))
		}
	}
}
