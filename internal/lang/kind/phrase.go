package kind

import (
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Renamed is the body with what one member holds under another name. Who is told of
// members that nobody knows is not told of it.
func (b Body) Renamed(from, to string) Body {
	raw, there := b.members[from]
	b.Overlook(from)
	if !there {
		return b
	}
	b.members = maps.Clone(b.members)
	delete(b.members, from)
	b.members[to] = raw
	return b
}

// With is the body with a member that holds JSON, in place of what it held.
func (b Body) With(name string, value jsontext.Value) Body {
	b.members = maps.Clone(b.members)
	b.members[name] = value
	return b
}

// UsualJSON is what most people would give the field, and InitialJSON what it has if
// nobody says.
func (f *Field) UsualJSON() jsontext.Value { return jsonOf(f.usual.Interface()) }
func (f *Field) InitialJSON() jsontext.Value {
	if f.initial.IsValid() {
		return jsonOf(f.initial.Interface())
	}
	switch f.Form {
	case Bool:
		return jsontext.Value("false")
	case Int:
		return jsontext.Value("0")
	case Text:
		return jsontext.Value(`""`)
	case Texts, Structs:
		return jsontext.Value("[]")
	}
	return jsontext.Value("{}")
}

// jsonOf writes what a tag says, which is a text, a number or a truth.
func jsonOf(v any) jsontext.Value {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
