package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/spell"
)

// Symbol is a field of rows of type R that queries may name.
//
// A scalar has One. A set has Set, Type for its elements, and Many. A map has
// Type Map and Key. Accessors must be safe for concurrent use.
type Symbol[R any] struct {
	// Name is what a text calls the field. A name that is a reserved word,
	// or holds characters that field names cannot hold, is never found.
	Name string
	Type Type
	// Set says that the field has any number of values. Queries may use it
	// only inside anyOf, allOf, count and isEmpty, and cannot sort by it.
	Set bool
	// Unlisted keeps a name that queries may use out of Names.
	Unlisted bool

	// Numbers are the texts that whole numbers stand for in = and in: 1 for
	// the first of them.
	Numbers []string

	// One returns the value of a scalar.
	One func(R) Value
	// Fine, if set, is what rows are sorted by: a value that is finer than the
	// one of One, which is what answers show and queries compare with.
	Fine func(R) Value
	// Many passes the values of a set to yield until it returns false.
	Many func(row R, yield func(Value) bool)
	// Key returns the element of a map.
	Key func(row R, key string) Value

	// Index names an index over this field. The package only hands it back,
	// in Query.Needs and Query.Sort. Whoever looks rows up by it must find
	// every row whose value is not absent, rows with an empty text included.
	Index string
	// Sub makes a set of references open to sub queries.
	Sub *Sub[R]
}

// Sub leads from a row to the rows that one of its sets refers to.
type Sub[R any] struct {
	tally func(s source, tree *Tree, enough int64) (func(R) int64, error)
}

// Through returns a Sub to rows of type S. Sub queries name the fields of
// schema; each passes the rows behind a row to yield until it returns false.
func Through[R, S any](schema *Schema[S], each func(row R, yield func(S) bool)) *Sub[R] {
	return &Sub[R]{tally: func(s source, tree *Tree, enough int64) (func(R) int64, error) {
		q, err := compileTree(schema, s, tree)
		if err != nil {
			return nil, err
		}
		return tally(each, q.Match, enough), nil
	}}
}

// Schema is the set of fields that queries over rows of type R may name. It
// does not change once made.
type Schema[R any] struct {
	symbols map[string]*Symbol[R]
	names   []string
}

// idName is the field that every schema has: it breaks ties in every order.
const idName = "id"

// NewSchema returns a schema of the symbols. It panics if two have one name,
// if one lacks the accessor that its type asks for, or if there is no scalar
// named id.
func NewSchema[R any](symbols ...Symbol[R]) *Schema[R] {
	s := &Schema[R]{symbols: make(map[string]*Symbol[R], len(symbols))}
	for _, symbol := range symbols {
		if _, ok := s.symbols[symbol.Name]; ok {
			panic(fmt.Sprintf("filter: two symbols are named %q", symbol.Name))
		}
		s.add(symbol)
	}
	s.seal()
	return s
}

// With returns a copy that knows more symbols. One with the name of an
// earlier symbol takes its place.
func (s *Schema[R]) With(more ...Symbol[R]) *Schema[R] {
	c := &Schema[R]{symbols: maps.Clone(s.symbols)}
	for _, symbol := range more {
		c.add(symbol)
	}
	c.seal()
	return c
}

// Among returns a copy that knows the symbols of these names alone, as far as
// there are any.
func (s *Schema[R]) Among(names ...string) *Schema[R] {
	c := &Schema[R]{symbols: map[string]*Symbol[R]{}}
	for _, name := range names {
		if symbol, ok := s.symbols[name]; ok {
			c.symbols[name] = symbol
		}
	}
	c.seal()
	return c
}

func (s *Schema[R]) add(symbol Symbol[R]) {
	var complete bool
	switch {
	case symbol.Name == "":
	case symbol.Type == Map:
		complete = symbol.Key != nil && !symbol.Set
	case symbol.Type == None:
	case symbol.Set:
		complete = symbol.Many != nil
	default:
		complete = symbol.One != nil
	}
	if !complete {
		panic(fmt.Sprintf("filter: symbol %q lacks a name, a type or the accessor of its type", symbol.Name))
	}
	s.symbols[symbol.Name] = &symbol
}

// seal checks what only all symbols together can break, and lists the names.
func (s *Schema[R]) seal() {
	if id, ok := s.symbols[idName]; !ok || id.One == nil {
		panic("filter: a schema needs a scalar named id")
	}
	for name, symbol := range s.symbols {
		if !symbol.Unlisted {
			s.names = append(s.names, name)
		}
	}
	slices.Sort(s.names)
}

// Lookup returns the symbol of the name.
func (s *Schema[R]) Lookup(name string) (*Symbol[R], bool) {
	symbol, ok := s.symbols[name]
	return symbol, ok
}

// Names returns the listed names in order. They are the schema's own: never
// write to them.
func (s *Schema[R]) Names() []string { return s.names }

// resolve finds what a text means by a name: a symbol, or a map and a key.
func (s *Schema[R]) resolve(src source, n name) (symbol *Symbol[R], key string, err error) {
	if symbol, ok := s.symbols[n.text]; ok {
		if symbol.Type == Map {
			return nil, "", src.errorAt(n.at, "%s is a map: name an element of it, as in %s.key", excerpt(n.text), n.text)
		}
		return symbol, "", nil
	}
	for i := range len(n.text) {
		if n.text[i] != '.' {
			continue
		}
		if symbol, ok := s.symbols[n.text[:i]]; ok && symbol.Type == Map {
			return symbol, n.text[i+1:], nil
		}
	}
	near := spell.Near(n.text, s.names)
	if len(near) == 0 {
		return nil, "", src.errorAt(n.at, "unknown field %s", excerpt(n.text))
	}
	return nil, "", src.errorAt(n.at, "unknown field %s, perhaps %s is meant",
		excerpt(n.text), strings.Join(near, " or "))
}
