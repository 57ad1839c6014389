package kind

import (
	"encoding/base64"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Column is one member of an answer.
type Column struct {
	Name     string
	Optional bool // may be left out
	Schema   Schema
	// Null tells of a list whether null was said for it, which an API may answer;
	// nil for whatever has no null of its own.
	Null func(rec Record) bool
	// Append adds the member's JSON value; adding nothing leaves the member
	// out.
	Append func(dst []byte, r Reader, rec Record) []byte
}

// Columns lists what answers show of the kind's own fields: everything but
// secrets, with a link object beside each reference that asks for one and a
// readable list beside each list of roles.
func (s *Catalog) Columns(d *Def) []Column {
	var cols []Column
	for _, f := range d.Fields {
		if f.Secret || f.Hidden {
			continue
		}
		cols = append(cols, f.column())
		if f.As != "" {
			cols = append(cols, f.refColumn(s.byName[f.Ref]))
		}
		if f.Roles != "" {
			cols = append(cols, f.rolesColumn(s.byName[f.Roles]))
		}
	}
	return cols
}

func (f *Field) column() Column {
	col := Column{
		Name: f.shownAs(), Schema: f.Schema(), Optional: f.leftOut(),
		Append: func(dst []byte, _ Reader, rec Record) []byte {
			return f.append(dst, reflect.ValueOf(rec).Elem())
		},
	}
	if f.Null {
		col.Null = f.SaidNull
	}
	return col
}

// leftOut reports whether answers may lack the field.
func (f *Field) leftOut() bool { return f.Omit || f.When != "" }

// append adds the JSON value of the field in v, or nothing where it is left
// out.
func (f *Field) append(dst []byte, v reflect.Value) []byte {
	if !f.applies(v) {
		return dst
	}
	v = f.value(v)
	switch {
	case f.Omit && f.empty(v):
		return dst
	case f.Nullable && f.empty(v) || f.optional() && v.IsNil():
		return append(dst, "null"...)
	case f.optional():
		v = v.Elem()
	}
	switch f.Form {
	case Text:
		return AppendText(dst, textIn(v))
	case Bool:
		return strconv.AppendBool(dst, v.Bool())
	case Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	case Time:
		return AppendTime(dst, timeIn(v))
	case Bytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Bytes())
		return append(dst, '"')
	case Texts:
		return AppendTexts(dst, *at[[]string](v))
	case Struct:
		return appendStruct(dst, f.Members, v)
	case Structs:
		return f.appendStructs(dst, v)
	case Marks:
		return (*at[Tags](v)).Append(dst)
	case JSON:
		if v.Len() == 0 {
			return append(dst, "{}"...)
		}
		return append(dst, v.Bytes()...)
	}
	return appendMap(dst, v)
}

func appendStruct(dst []byte, members []*Field, v reflect.Value) []byte {
	dst = append(dst, '{')
	for _, m := range members {
		if !m.Secret && !m.Hidden {
			dst = AppendMember(dst, m.shownAs(), func(dst []byte) []byte { return m.append(dst, v) })
		}
	}
	return append(dst, '}')
}

func (f *Field) appendStructs(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '[')
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendStruct(dst, f.Members, v.Index(i))
	}
	return append(dst, ']')
}

// Append adds the tags as a JSON object.
func (t Tags) Append(dst []byte) []byte {
	dst = append(dst, '{')
	for _, key := range sortedKeys(t) {
		dst = AppendMember(dst, key, func(dst []byte) []byte { return AppendAny(dst, t[key]) })
	}
	return append(dst, '}')
}

func appendMap(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '{')
	for _, key := range mapKeys(v) {
		dst = AppendMember(dst, key, func(dst []byte) []byte {
			switch value := v.MapIndex(reflect.ValueOf(key)); value.Kind() {
			case reflect.String:
				return AppendText(dst, value.String())
			case reflect.Bool:
				return strconv.AppendBool(dst, value.Bool())
			default:
				return strconv.AppendInt(dst, value.Int(), 10)
			}
		})
	}
	return append(dst, '}')
}

// refColumn is the link object of a reference.
func (f *Field) refColumn(target *Def) Column {
	schema := Described(RefTo("entityRef"), "Name and address of the "+spoken(target.Name)+" that "+f.shownAs()+" refers to.")
	if !f.Omit {
		schema["nullable"] = true
	}
	return Column{
		Name: f.As, Schema: schema, Optional: f.leftOut(),
		Append: func(dst []byte, r Reader, rec Record) []byte {
			id := f.text(rec)
			switch {
			case id != "":
				return AppendRef(dst, r, target, id)
			case f.Omit || !f.applies(reflect.ValueOf(rec).Elem()):
				return dst
			}
			return append(dst, "null"...)
		},
	}
}

// spoken writes a kind's name as one would say it.
func spoken(name string) string { return strings.ReplaceAll(name, "-", " ") }

// rolesColumn is a list of roles for people to read, with the names of the
// records that it lists. Those that are gone are left out.
func (f *Field) rolesColumn(target *Def) Column {
	text := Schema{"type": "string"}
	role := object{}
	role.add("name", Described(text, "The role for people to read, with the name of the record in place of its id."), true)
	role.add("role", Described(text, "The role as it is in "+f.shownAs()+"."), true)
	doc := "The " + f.shownAs() + " for people to read: each with the name of what it lists, without those that are gone."
	return Column{
		Name: f.shownAs() + "Display", Schema: Described(ListOf(role.schema()), doc), Optional: f.leftOut(),
		Append: func(dst []byte, r Reader, rec Record) []byte {
			roles := f.texts(rec)
			if f.Omit && len(roles) == 0 || !f.applies(reflect.ValueOf(rec).Elem()) {
				return dst
			}
			dst = append(dst, '[')
			for _, role := range roles {
				dst = appendRole(dst, r, target, role)
			}
			return append(dst, ']')
		},
	}
}

// appendRole adds a role with its name, and the comma that it needs. dst must
// be inside a list.
func appendRole(dst []byte, r Reader, target *Def, role string) []byte {
	name := role
	if id, isID := strings.CutPrefix(role, "@"); isID {
		rec, ok := r.Lookup(target, id)
		if !ok {
			return dst
		}
		name = "@" + target.Label(rec)
	}
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"name":`...)
	dst = AppendText(dst, name)
	dst = append(dst, `,"role":`...)
	dst = AppendText(dst, role)
	return append(dst, '}')
}

// AppendRef adds the link object of a record: its kind, id, name and address.
func AppendRef(dst []byte, r Reader, d *Def, id string) []byte {
	dst = append(dst, `{"_links":{"self":{"href":`...)
	dst = AppendText(dst, "./"+d.Path+"/"+id)
	dst = append(dst, `}},"entity":`...)
	dst = AppendText(dst, d.Path)
	dst = append(dst, `,"id":`...)
	dst = AppendText(dst, id)
	if rec, ok := r.Lookup(d, id); ok && d.label != nil {
		dst = append(dst, `,"name":`...)
		dst = AppendText(dst, d.Label(rec))
	}
	return append(dst, '}')
}

// Links is where a record is, in answers that are structs.
type Links struct {
	Self Link `json:"self" doc:"The record itself."`
}

// Link is where something is.
type Link struct {
	Href string `json:"href" doc:"Where it is, relative to the API's root."`
}

// SelfAt returns the links of a record that is at an address.
func SelfAt(href string) Links { return Links{Link{href}} }

// AppendMember adds `"name":value` with the comma that it needs, or nothing
// if value adds nothing. dst must be inside an object.
func AppendMember(dst []byte, name string, value func([]byte) []byte) []byte {
	var key [64]byte
	return AppendKeyed(dst, NewKey(key[:0], name), value)
}

// Key is a member's name in JSON with its colon.
type Key []byte

// NewKey adds a name to dst, so that it is written as JSON once.
func NewKey(dst []byte, name string) Key { return append(AppendText(dst, name), ':') }

// AppendKeyed is AppendMember with a name that is JSON already.
func AppendKeyed(dst []byte, key Key, value func([]byte) []byte) []byte {
	start := len(dst)
	if dst[start-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, key...)
	before := len(dst)
	if dst = value(dst); len(dst) == before {
		return dst[:start]
	}
	return dst
}

// AppendText adds a JSON text. Bytes that are not UTF-8 are replaced.
func AppendText(dst []byte, s string) []byte {
	if !plain(s) {
		// The error says that bytes were replaced, which is what we want.
		dst, _ = jsontext.AppendQuote(dst, s)
		return dst
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// plain reports whether a text stands in JSON as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// AppendTexts adds a JSON list of texts.
func AppendTexts(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendText(dst, s)
	}
	return append(dst, ']')
}

// AppendTime adds a date-time with three fraction digits.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	if year < 0 || year > 9999 {
		return append(t.AppendFormat(append(dst, '"'), "2006-01-02T15:04:05.000Z"), '"')
	}
	dst = append(dst, '"')
	dst = appendDigits(dst, year, 4)
	dst = appendDigits(append(dst, '-'), int(month), 2)
	dst = appendDigits(append(dst, '-'), day, 2)
	dst = appendDigits(append(dst, 'T'), hour, 2)
	dst = appendDigits(append(dst, ':'), minute, 2)
	dst = appendDigits(append(dst, ':'), second, 2)
	dst = appendDigits(append(dst, '.'), t.Nanosecond()/int(time.Millisecond), 3)
	return append(dst, 'Z', '"')
}

// appendDigits adds a number with as many digits, which is what AppendFormat
// does with more ado: pages are full of times.
func appendDigits(dst []byte, n, digits int) []byte {
	for range digits {
		dst = append(dst, '0')
	}
	for i := len(dst) - 1; n > 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
	return dst
}

// AppendAny adds the JSON of a value that has no faster way, null if it has
// none.
func AppendAny(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return AppendText(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	}
	b, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return append(dst, "null"...)
	}
	return append(dst, b...)
}

// Output writes answers of operations that are not a kind's own. T is a
// struct with the same tags.
type Output[T any] struct{ fields []*Field }

// NewOutput reads T's tags. It panics on a mistake in them.
func NewOutput[T any]() *Output[T] {
	t := reflect.TypeFor[T]()
	o := &Output[T]{readFields(t, "")}
	refuseRules(t, o.fields)
	refuseWas(t, o.fields)
	return o
}

// Append adds the JSON of v.
func (o *Output[T]) Append(dst []byte, v *T) []byte {
	return appendStruct(dst, o.fields, reflect.ValueOf(v).Elem())
}

// Schema describes what Append adds.
func (o *Output[T]) Schema() Schema { return answerSchema(o.fields) }
