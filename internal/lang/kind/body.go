package kind

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
)

// Body is a request body: the raw members of one JSON object, so that absent,
// null and a value can be told apart.
type Body struct {
	members map[string]jsontext.Value
	trail   *trail
	at      string // where the object is in the request, with a dot behind
	naming  Naming // what its ids stand for; nil if they are ids
}

// ReadBody parses a JSON object. Names must not repeat, at any depth.
func ReadBody(data []byte) (Body, error) {
	b, err := readObject(data)
	if err != nil {
		return Body{}, err
	}
	return NewBody(b.members), nil
}

// NewBody is the body with these members, each of which is JSON.
func NewBody(members map[string]jsontext.Value) Body {
	return Body{members: members, trail: &trail{whole: members}}
}

func readObject(data []byte) (b Body, err error) {
	err = json.Unmarshal(data, &b.members)
	if broken, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return Body{}, fault.Wrap(fault.CodeBody, fmt.Errorf("the body must be a JSON object: %w", broken))
	}
	if err != nil || b.members == nil {
		return Body{}, fault.New(fault.CodeBody, "the body must be a JSON object")
	}
	return b, nil
}

// Has reports whether a member is present and not null.
func (b Body) Has(name string) bool {
	raw, ok := b.members[name]
	return ok && raw.Kind() != 'n'
}

// Holds reports whether a member is present with something in it: not null, and
// no list without entries.
func (b Body) Holds(name string) bool {
	return b.Has(name) && strings.Join(strings.Fields(string(b.members[name])), "") != "[]"
}

// Without is the body without some members, however they are spelled. Those that it had
// count as ignored.
func (b Body) Without(names ...string) Body {
	if len(names) == 0 {
		return b
	}
	b.trail.withheld = append(b.trail.withheld, names...)
	b.members = maps.Clone(b.members)
	maps.DeleteFunc(b.members, func(member string, _ jsontext.Value) bool {
		return slices.ContainsFunc(names, func(name string) bool { return lowered(name) == lowered(member) })
	})
	return b
}

// Apply reads a body into a record, as the shape says: Create and Replace
// reset what is absent, except that Replace keeps what its tag says; Patch
// leaves it. Members without a field are ignored, as Body.Ignored tells. On an
// error the record is left half written.
func (d *Def) Apply(shape Shape, rec Record, b Body) error {
	return d.layout.apply(shape, reflect.ValueOf(rec).Elem(), b, "")
}

// Input reads bodies of operations that are not a kind's own. T is a struct
// with the same tags.
type Input[T any] struct {
	Fields []*Field
	layout *layout
}

// NewInput reads T's tags. It panics on a mistake in them.
func NewInput[T any]() *Input[T] {
	t := reflect.TypeFor[T]()
	in := &Input[T]{Fields: readFields(t, "")}
	refuseRules(t, in.Fields)
	refuseWas(t, in.Fields)
	in.layout = newLayout(t, in.Fields)
	return in
}

// Read checks the body and returns its values.
func (in *Input[T]) Read(b Body) (T, error) {
	var v T
	err := in.layout.apply(Create, reflect.ValueOf(&v).Elem(), b, "")
	return v, err
}

// Check says which limit a value breaks that was not read from a body, if any.
func (in *Input[T]) Check(v *T) error {
	for _, f := range in.layout.limited {
		if err := f.breaks(reflect.ValueOf(v).Elem(), f.Name); err != nil {
			return err
		}
	}
	return nil
}

// apply reads an object into a struct. prefix is what errors put before names.
func (l *layout) apply(shape Shape, v reflect.Value, b Body, prefix string) error {
	b, err := l.fit(shape, b, prefix)
	if err != nil {
		return err
	}
	for _, f := range l.fields {
		dst := f.value(v)
		switch {
		case !f.applies(v):
			dst.SetZero()
			continue
		case f.settable(shape):
		case f.Repeated:
			dst = reflect.New(f.typ).Elem() // it is checked like any other, and dropped
		default:
			continue
		}
		if err := f.read(shape, dst, b, prefix+f.last); err != nil {
			return err
		}
	}
	return nil
}

// settable reports whether bodies of the shape may set the field.
func (f *Field) settable(shape Shape) bool { return !f.Server && (!f.Fixed || shape == Create) }

// taken reports whether bodies of the shape may hold the field.
func (f *Field) taken(shape Shape) bool { return f.settable(shape) || f.Repeated }

// read takes one field from the body.
func (f *Field) read(shape Shape, dst reflect.Value, b Body, path string) error {
	raw, present := b.members[f.last]
	null := present && raw.Kind() == 'n'
	switch {
	case present && !null:
		return f.decode(shape, dst, raw, b, path)
	case f.Required&shape != 0 && !(null && f.Nullable):
		return fault.Invalid(path, "is required", nil)
	case null && f.Nullable && (f.Form == Time || f.Form == Struct && f.optional()):
		f.reset(shape, dst) // no date-time, and no object, says that there is none
		return nil
	case null && f.Null && shape != Patch:
		dst.SetZero()
		return nil
	case shape == Patch || shape == Replace && f.Keep:
		return nil
	}
	f.reset(shape, dst)
	return nil
}

// reset gives the field its default. In a struct it leaves what bodies of the
// shape cannot set.
func (f *Field) reset(shape Shape, dst reflect.Value) {
	if f.Form == Struct && !f.optional() {
		for _, m := range f.Members {
			switch {
			case !m.applies(dst):
				m.value(dst).SetZero()
			case m.settable(shape):
				m.reset(shape, m.value(dst))
			}
		}
		return
	}
	dst.SetZero()
	if first := f.first(); first.IsValid() {
		dst.Set(first)
	}
}

// decode reads a member of an object that is present and not null.
func (f *Field) decode(shape Shape, dst reflect.Value, raw jsontext.Value, from Body, path string) error {
	if f.Form == Struct {
		return f.decodeStruct(shape, dst, raw, from, path)
	}
	fresh := reflect.New(f.typ).Elem()
	if err := f.parse(fresh, raw, from, path); err != nil {
		return err
	}
	if from.naming != nil {
		if err := f.rename(fresh, from.naming, path); err != nil {
			return err
		}
	}
	if shape == Patch && f.emptyObject(fresh) {
		return nil
	}
	if f.empty(fresh) {
		fresh.SetZero() // an empty list is stored like none
	}
	if f.Null && fresh.Len() == 0 {
		fresh.Set(unsaid)
	}
	if f.Form == Text {
		f.settle(fresh)
	}
	if err := f.limit(fresh, path); err != nil {
		return err
	}
	dst.Set(fresh)
	return nil
}

// settle writes a text as it is kept: a synonym as what it stands for, an
// empty one as the default.
func (f *Field) settle(text reflect.Value) {
	if word, ok := f.Synonyms[text.String()]; ok {
		text.SetString(word)
	}
	if text.Len() == 0 && f.initial.IsValid() {
		text.Set(f.initial)
	}
}

// emptyObject reports whether the value is an object without members: in a
// patch that counts as absent.
func (f *Field) emptyObject(v reflect.Value) bool {
	switch f.Form {
	case Marks, Map:
		return v.Len() == 0
	case JSON:
		return string(v.Bytes()) == "{}"
	}
	return false
}

// decodeStruct merges an object into a struct, member by member.
func (f *Field) decodeStruct(shape Shape, dst reflect.Value, raw jsontext.Value, from Body, path string) error {
	body, err := from.inside(raw, f.last)
	if err != nil {
		return f.mismatch(path)
	}
	if shape == Patch && len(body.members) == 0 {
		return nil
	}
	if !f.optional() {
		return f.layout.apply(shape, dst, body, path+".")
	}
	// A struct that was unset has nothing to merge with, so that a patch must
	// bring all that it needs.
	if dst.IsNil() {
		shape = Create
		dst.Set(reflect.New(f.typ.Elem()))
	}
	return f.layout.apply(shape, dst.Elem(), body, path+".")
}

// parse decodes a value that is present and not null.
func (f *Field) parse(dst reflect.Value, raw jsontext.Value, from Body, path string) error {
	switch f.Form {
	case Structs:
		return f.parseStructs(dst, raw, from, path)
	case Map:
		return f.parseMap(dst, raw, path)
	case Texts:
		return f.parseTexts(dst, raw, path)
	case Time:
		return f.parseTime(dst, raw, path)
	case JSON:
		raw = slices.Clone(raw)
		if raw.Kind() != '{' || raw.Compact() != nil {
			return f.mismatch(path)
		}
		dst.SetBytes(raw)
		return nil
	}
	if !plainly(dst, raw) && json.Unmarshal(raw, dst.Addr().Interface()) != nil {
		return f.mismatch(path)
	}
	return nil
}

// plainly reads what most fields hold, and reports whether it did: to have it
// decoded takes longer than all that is done with it.
func plainly(dst reflect.Value, raw jsontext.Value) bool {
	switch first := raw.Kind(); {
	case first == '"' && dst.Kind() == reflect.String:
		dst.SetString(string(unquoted(raw)))
	case (first == 't' || first == 'f') && dst.Kind() == reflect.Bool:
		dst.SetBool(first == 't')
	case first == '0' && dst.CanInt():
		n, err := strconv.ParseInt(string(raw), 10, dst.Type().Bits())
		if err != nil {
			return false
		}
		dst.SetInt(n)
	default:
		return dst.Kind() == reflect.Map && string(raw) == "{}"
	}
	return true
}

// parseStructs reads a list, which is always replaced as a whole.
func (f *Field) parseStructs(dst reflect.Value, raw jsontext.Value, from Body, path string) error {
	items, err := f.items(raw)
	if err != nil {
		return f.mismatch(path)
	}
	if reason := f.outside(int64(len(items)), " long"); reason != "" && len(items) > 0 {
		return f.invalid(path, reason, len(items))
	}
	dst.Set(reflect.MakeSlice(f.typ, len(items), len(items)))
	for i, item := range items {
		index := strconv.Itoa(i)
		at := path + "." + index
		body, err := from.inside(item, f.last, index)
		if err != nil {
			return fault.On(fault.CodeBody, at, wanted[Struct], nil)
		}
		if err := f.layout.apply(Create, dst.Index(i), body, at+"."); err != nil {
			return err
		}
	}
	return nil
}

// items takes a list apart, and gives up when it is longer than it may be: what
// a client sends in a few bytes takes more of them here.
func (f *Field) items(raw jsontext.Value) (items []jsontext.Value, err error) {
	from := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if begin, err := from.ReadToken(); err != nil || begin.Kind() != '[' {
		return nil, errors.New("no list")
	}
	for from.PeekKind() != ']' {
		item, err := from.ReadValue()
		if err != nil {
			return nil, err
		}
		items = append(items, item.Clone())
		if f.Limited && int64(len(items)) > f.Max {
			break
		}
	}
	return items, nil
}

// parseMap reads the members one by one: a null among them is no value.
func (f *Field) parseMap(dst reflect.Value, raw jsontext.Value, path string) error {
	if plainly(dst, raw) {
		return nil
	}
	body, err := readObject(raw)
	if err != nil {
		return f.mismatch(path)
	}
	dst.Set(reflect.MakeMapWithSize(f.typ, len(body.members)))
	for _, key := range sortedKeys(body.members) {
		value := reflect.New(f.typ.Elem())
		if !body.Has(key) || json.Unmarshal(body.members[key], value.Interface()) != nil {
			return fault.On(fault.CodeBody, f.member(path, key), wanted[f.element()], nil)
		}
		dst.SetMapIndex(reflect.ValueOf(key), value.Elem())
	}
	return nil
}

// parseTexts reads a list. Role lists and attributes are sets: they are kept
// sorted, and each text once.
func (f *Field) parseTexts(dst reflect.Value, raw jsontext.Value, path string) error {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	defer r.Reset(nothing{})
	r.Reset(bytes.NewBuffer(raw))
	if r.texts(dst) != nil {
		return f.mismatch(path)
	}
	if list := at[[]string](dst); f.Attributes || f.Roles != "" {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return nil
}

// parseTime reads a date-time, UTC if it has no offset.
func (f *Field) parseTime(dst reflect.Value, raw jsontext.Value, path string) error {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return f.mismatch(path)
	}
	var t time.Time
	if t.UnmarshalText([]byte(text)) != nil && t.UnmarshalText([]byte(text+"Z")) != nil {
		return f.mismatch(path)
	}
	// An offset can lead out of the years that a date-time can say.
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return f.mismatch(path)
	}
	switch {
	case t.IsZero(): // stored like one that is not set
	case f.optional():
		dst.Set(reflect.ValueOf(&t))
	default:
		setTime(dst, t)
	}
	return nil
}

// wanted says what a body must hold for each form.
var wanted = [...]string{
	Text: "must be a text", Bool: "must be true or false", Int: "must be a whole number",
	Time: "must be a date-time such as 2006-01-02T15:04:05Z", Bytes: "must be a base64 text",
	Texts: "must be a list of texts", Struct: "must be an object", Structs: "must be a list of objects",
	Map: "must be an object", Marks: "must be an object", JSON: "must be an object",
}

func (f *Field) mismatch(path string) error {
	return fault.On(fault.CodeBody, path, wanted[f.Form], nil)
}

// member is the path of a map's member. The names in a secret are secret.
func (f *Field) member(path, key string) string {
	if f.Secret {
		return path
	}
	return path + "." + key
}
