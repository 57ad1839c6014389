package kind

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// Schema is a JSON schema in the dialect of OpenAPI 3.0.
type Schema = map[string]any

// RefTo points at a named schema of the document.
func RefTo(name string) Schema { return Schema{"$ref": "#/components/schemas/" + name} }

// ListOf is the schema of a list.
func ListOf(items Schema) Schema { return Schema{"type": "array", "items": items} }

// Nullable is a schema whose value may be null too.
func Nullable(s Schema) Schema {
	s = maps.Clone(s)
	s["nullable"] = true
	return s
}

// Described returns a schema that says in a sentence what it is for. A
// reference must stand alone, so that it is wrapped: all that is referred to
// are objects.
func Described(s Schema, doc string) Schema {
	if doc == "" {
		return s
	}
	s = maps.Clone(alone(s))
	s["description"] = doc
	return s
}

// alone wraps a schema that must have nothing beside it.
func alone(s Schema) Schema {
	if _, refers := s["$ref"]; refers {
		return Schema{"type": "object", "allOf": []any{s}}
	}
	return s
}

// Shared are the schemas that documents need which show what this package
// describes. Where one of them may be null is for those to say that refer to
// it.
func Shared() map[string]Schema {
	return map[string]Schema{
		"tags": {
			"type": "object", "nullable": true,
			"description": "Marks of your own by name, each a text, a boolean or null.",
			// No type is the one of both, and without one nullable says nothing.
			"additionalProperties": Schema{"anyOf": []any{Schema{"type": "string", "nullable": true}, Schema{"type": "boolean"}}},
		},
		"link": {
			"type": "object", "required": []string{"href"},
			"properties": Schema{"href": Schema{"type": "string", "description": "Where it is, relative to the API's root."}},
		},
		"links": {
			"type": "object", "additionalProperties": RefTo("link"),
			"description": "Where the record and what belongs to it are, by name.",
		},
		"entityRef": {
			"type": "object", "nullable": true, "required": []string{"_links", "entity", "id"},
			"description": "Which record it is and where.",
			"properties": Schema{
				"_links": RefTo("links"),
				"entity": Schema{"type": "string", "description": "Collection that the record is in, such as identities."},
				"id":     Schema{"type": "string", "description": "Id of the record."},
				"name":   Schema{"type": "string", "description": "What people call the record; left out if its kind has no names."},
			},
		},
	}
}

// BodySchema describes the bodies of a shape. It is what clients should send:
// Apply also takes an empty text for a default and a date-time without an
// offset, and ignores whatever is in members of another variant.
func (d *Def) BodySchema(shape Shape) Schema { return bodySchema(d.Fields, shape) }

// BodySchema describes the bodies that the input reads.
func (in *Input[T]) BodySchema() Schema { return bodySchema(in.Fields, Create) }

// Properties describes the members of bodies that hold these fields, by name.
func Properties(fields []*Field) Schema {
	props, _ := bodySchema(fields, Create)["properties"].(Schema)
	return props
}

// bodySchema describes an object with the fields that bodies may hold.
func bodySchema(fields []*Field, shape Shape) Schema {
	o := object{}
	for _, f := range fields {
		if !f.taken(shape) {
			continue
		}
		s, required := Described(f.shaped(shape), f.bodyDoc()), f.Required&shape != 0
		if f.initial.IsValid() {
			s["default"] = f.initial.Interface()
		}
		if !required || f.Nullable {
			s["nullable"] = true
		}
		o.add(f.last, s, required && f.When == "")
	}
	return o.schema()
}

// bodyDoc is what bodies are told of the field.
func (f *Field) bodyDoc() string {
	if len(f.Synonyms) == 0 {
		return f.Doc
	}
	words := f.synonyms(" is taken for ")
	for i := range words[1:] {
		words[i+1] = strings.Replace(words[i+1], " is taken", "", 1)
	}
	return strings.TrimSpace(f.Doc + " " + strings.Join(words, ", ") + ".")
}

// synonyms lists words with what they stand for.
func (f *Field) synonyms(between string) (list []string) {
	for _, word := range sortedKeys(f.Synonyms) {
		list = append(list, word+between+f.Synonyms[word])
	}
	return list
}

// answerSchema describes an object with the fields that answers show.
func answerSchema(fields []*Field) Schema {
	o := object{}
	for _, f := range fields {
		if !f.Secret && !f.Hidden {
			o.add(f.shownAs(), f.Schema(), !f.leftOut())
		}
	}
	return o.schema()
}

// object collects the members of an object's schema.
type object struct {
	props    Schema
	required []string
}

func (o *object) add(name string, s Schema, required bool) {
	if o.props == nil {
		o.props = Schema{}
	}
	o.props[name] = s
	if required {
		o.required = append(o.required, name)
	}
}

func (o *object) schema() Schema {
	s := Schema{"type": "object"}
	if o.props != nil {
		s["properties"] = o.props
	}
	if o.required != nil {
		slices.Sort(o.required)
		s["required"] = o.required
	}
	return s
}

// answer stands for no shape of body.
const answer Shape = 0

// Schema describes the field as answers show it. They promise no range: it
// binds what is sent, and a field that nobody sent is outside of it.
func (f *Field) Schema() Schema {
	s := Described(f.shaped(answer), f.Doc)
	if f.Nullable || f.optional() && !f.Omit {
		s["nullable"] = true
	}
	return s
}

// shaped describes the field's values in bodies of a shape or in answers.
func (f *Field) shaped(shape Shape) Schema {
	switch f.Form {
	case Text:
		if shape == answer && f.mayBeEmpty() {
			return Schema{"type": "string"}
		}
		return f.bounded(shape, f.textSchema(), "minLength", "maxLength")
	case Bool:
		return Schema{"type": "boolean"}
	case Int:
		return f.bounded(shape, Schema{"type": "integer"}, "minimum", "maximum")
	case Time:
		return Schema{"type": "string", "format": "date-time"}
	case Bytes:
		return Schema{"type": "string", "format": "byte"}
	case Texts:
		return f.bounded(shape, ListOf(f.textSchema()), "minItems", "maxItems")
	case Struct:
		return f.memberSchema(shape)
	case Structs:
		if shape != answer {
			shape = Create // lists are never merged
		}
		return f.bounded(shape, ListOf(f.memberSchema(shape)), "minItems", "maxItems")
	case Map:
		return Schema{"type": "object", "additionalProperties": f.elementSchema(shape)}
	case Marks:
		return alone(RefTo("tags"))
	}
	return Schema{"type": "object"}
}

// mayBeEmpty reports whether answers can show an empty text, which no enum
// or format allows.
func (f *Field) mayBeEmpty() bool {
	return f.Required&Create == 0 && f.Default == "" && !f.Omit && !f.Nullable
}

func (f *Field) memberSchema(shape Shape) Schema {
	if shape == answer {
		return answerSchema(f.Members)
	}
	return bodySchema(f.Members, shape)
}

// elementSchema describes the values of a map.
func (f *Field) elementSchema(shape Shape) Schema {
	switch f.element() {
	case Bool:
		return Schema{"type": "boolean"}
	case Int:
		return f.bounded(shape, Schema{"type": "integer"}, "minimum", "maximum")
	}
	return f.textSchema()
}

func (f *Field) textSchema() Schema {
	s := Schema{"type": "string"}
	if len(f.Enum) > 0 {
		s["enum"] = f.Enum
	}
	if name := formats[f.Format].schema; name != "" {
		s["format"] = name
	}
	return s
}

// bounded adds the field's range to the schema of a body.
func (f *Field) bounded(shape Shape, s Schema, lo, hi string) Schema {
	if f.Limited && shape != answer {
		s[lo] = f.Min
		if f.Max != math.MaxInt64 {
			s[hi] = f.Max
		}
	}
	return s
}
