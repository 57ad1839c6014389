package kind

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/terse"
)

// Form is what a field's value is made of.
type Form uint8

// The forms, and the Go types that have them.
const (
	Text    Form = iota // string, terse.Text
	Bool                // bool
	Int                 // int, int32, int64
	Time                // time.Time, Moment, *time.Time for one that may be unset
	Bytes               // []byte, base64 in JSON
	Texts               // []string
	Struct              // a struct, a pointer to one for one that may be unset
	Structs             // a slice of structs
	Map                 // map[string] of texts, bools or ints
	Marks               // Tags
	JSON                // jsontext.Value, an object kept as it was sent
)

var formNames = [...]string{"text", "bool", "int", "time", "bytes", "texts", "struct", "structs", "map", "tags", "json"}

func (f Form) String() string { return formNames[f] }

// Shape is a way in which a body is read.
type Shape uint8

// The shapes. They are bits, so that a field can be required in several.
const (
	Create Shape = 1 << iota
	Replace
	Patch
)

// Field is one field of a kind, or one member of a struct in it.
type Field struct {
	Name    string // JSON name; dotted for members of a nested struct
	Doc     string // what it is, in a sentence for those who run a network
	Form    Form
	Members []*Field // of Struct and Structs

	Required   Shape
	Fixed      bool // set on create only
	Repeated   bool // though in other bodies too, where it changes nothing
	Server     bool // set by us, never read from a body
	Sealed     bool // stored so that nobody can read it without the keys
	Secret     bool // stored; never answered, filtered or repeated in an error
	Hidden     bool // not part of answers
	Keep       bool // a replace without it leaves the field
	Nullable   bool // answered as null when empty
	Null       bool // a list for which a body may say null, which is kept and answered
	Omit       bool // left out of answers when empty
	Unique     bool
	Indexed    bool
	Searched   bool   // filters that ask for a part of it are quick
	Few        bool   // many records have the same value
	Attributes bool   // role attributes
	Roles      string // role list over that kind
	Ref        string // id, or ids, of that kind
	OnDelete   OnDelete
	Among      []string // id, or ids, of any of these kinds; what becomes of them is up to the kind's own rules
	Linked     bool     // answers link to the target under its collection
	As         string   // answers carry a link object to the target under this name
	Out        string   // name in answers, if not Name
	Aliases    []string
	Limited    bool
	Min, Max   int64
	Enum       []string
	Synonyms   map[string]string // words that bodies may use for those of Enum
	Numbered   bool              // filters may say numbers for the words of Enum
	Format     string
	Default    string
	Usual      string   // what a command line says in a create if nobody does
	Was        []string // what stored records called it before, the latest first
	When       string   // "field:value", the variant that has this field
	NoFilter   bool

	last    string // last part of Name
	prefix  string // what comes before it, with the dot
	index   []int
	typ     reflect.Type
	initial reflect.Value // Default as a value; invalid if there is none
	usual   reflect.Value // Usual as a value; invalid if there is none
	when    []condition
	needed  bool // every body that creates it gives a value

	layout    *layout // of Members
	key       Key     // its name, as it is stored
	staysZero bool    // it has a default that its zero could be taken for
	alone     bool    // it is a text that no two records have
	withholds bool    // it is secret or sealed, or holds something that is
	seldom    bool    // it is in an embedded struct that is kept apart
}

// condition is a text that another field must have for a field to exist.
type condition struct {
	field *Field
	value string
}

// OnDelete is what happens to a record when a record it refers to is deleted.
type OnDelete uint8

// What a delete may do to a record that refers to the deleted one.
const (
	Restrict OnDelete = iota // the delete is refused
	Cascade                  // the referring record is deleted too
	Clear                    // the reference is removed
)

var (
	textType    = reflect.TypeFor[string]()
	terseType   = reflect.TypeFor[terse.Text]()
	textsType   = reflect.TypeFor[[]string]()
	timeType    = reflect.TypeFor[time.Time]()
	momentType  = reflect.TypeFor[Moment]()
	tagsType    = reflect.TypeFor[Tags]()
	jsonType    = reflect.TypeFor[jsontext.Value]()
	unknownType = reflect.TypeFor[*jsontext.Value]()
	spanType    = reflect.TypeFor[time.Duration]()
)

// misdeclared stops the program for a mistake in a struct's tags.
func misdeclared(owner reflect.Type, field, format string, args ...any) {
	panic(fmt.Sprintf("kind: field %s of %s: %s", field, owner, fmt.Sprintf(format, args...)))
}

// readFields reads the fields of a struct type, embedded ones in place.
func readFields(t reflect.Type, prefix string) []*Field {
	fields := listFields(t, prefix)
	for i, f := range fields {
		f.resolveWhen(t, fields[:i])
		if slices.ContainsFunc(fields[:i], func(other *Field) bool { return other.last == f.last }) {
			misdeclared(t, f.Name, "the name is taken")
		}
	}
	return fields
}

// listFields is readFields of a struct that may be embedded in another: what its fields say of
// others is not looked at yet.
func listFields(t reflect.Type, prefix string) (fields []*Field) {
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		switch {
		case tag == "-" || isUnknown(sf):
		case sf.Anonymous && tag == "":
			fields = append(fields, embeddedFields(t, sf, prefix)...)
		default:
			fields = append(fields, readField(t, sf, prefix))
		}
	}
	return fields
}

// isUnknown reports whether a struct keeps members here that no field has.
func isUnknown(sf reflect.StructField) bool {
	return sf.Tag.Get("json") == ",embed" && sf.Type == unknownType
}

func embeddedFields(t reflect.Type, sf reflect.StructField, prefix string) []*Field {
	seldom := sf.Type.Kind() == reflect.Pointer
	if deref(sf.Type).Kind() != reflect.Struct || sf.Tag.Get("kind") != "" || seldom && (!sf.IsExported() || prefix != "") {
		misdeclared(t, sf.Name, "an embedded field must be a struct without a tag or, in a record, an exported pointer to one")
	}
	fields := listFields(deref(sf.Type), prefix)
	for _, f := range fields {
		f.index = append(slices.Clone(sf.Index), f.index...)
		f.seldom = f.seldom || seldom
	}
	return fields
}

func readField(t reflect.Type, sf reflect.StructField, prefix string) *Field {
	name := sf.Tag.Get("json")
	// An option would change what is stored behind our back: we have words of
	// our own for all that they say.
	if !sf.IsExported() || name == "" || strings.Contains(name, ",") {
		misdeclared(t, sf.Name, "needs a json tag with a name and no options, and must be exported")
	}
	f := &Field{Name: prefix + name, Doc: sf.Tag.Get("doc"), last: name, prefix: prefix, index: sf.Index, typ: sf.Type}
	var ok bool
	if f.Form, ok = formOf(sf.Type); !ok {
		misdeclared(t, f.Name, "no form for type %s", sf.Type)
	}
	f.readTag(t, sf.Tag.Get("kind"))
	if f.typ == terseType && !f.canBeTerse() {
		misdeclared(t, f.Name, "a text that is kept in few bytes is set by us alone, and nothing is found or judged by it")
	}
	f.needed = f.Required&Create != 0 && !f.Nullable
	switch f.Form {
	case Struct:
		f.Members = readFields(f.structType(), f.Name+".")
	case Structs:
		f.Members = readFields(f.structType(), "")
	}
	if slices.ContainsFunc(f.Members, func(m *Field) bool { return m.seldom }) {
		misdeclared(t, f.Name, "only a record keeps some of its fields apart")
	}
	f.inherit()
	return f
}

// canBeTerse reports whether nothing looks at the value but who writes and shows it.
func (f *Field) canBeTerse() bool {
	return f.Server && f.needsRecord() == "" && f.Among == nil && !f.Limited && f.Enum == nil && f.Format == "" && !f.initial.IsValid()
}

// inherit passes on to members what a struct says of all of them.
func (f *Field) inherit() {
	for _, m := range f.Members {
		m.Secret, m.NoFilter = m.Secret || f.Secret, m.NoFilter || f.NoFilter
		m.inherit()
	}
}

// resolveWhen finds the field that decides whether f exists. Bodies are read
// in the order of the struct, so it must come first.
func (f *Field) resolveWhen(t reflect.Type, earlier []*Field) {
	if f.When == "" || f.when != nil {
		return
	}
	name, value, _ := strings.Cut(f.When, ":")
	for _, s := range earlier {
		if s.last != name || s.Form != Text || s.typ == terseType {
			continue
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
			misdeclared(t, f.Name, "field %q is never %q", name, value)
		}
		f.when = []condition{{s, value}}
		return
	}
	misdeclared(t, f.Name, "depends on %q, which is no text field before it", name)
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func formOf(t reflect.Type) (f Form, ok bool) {
	switch t {
	case timeType, momentType:
		return Time, true
	case tagsType:
		return Marks, true
	case jsonType:
		return JSON, true
	case textsType:
		return Texts, true
	}
	switch t.Kind() {
	case reflect.String:
		return Text, true
	case reflect.Bool:
		return Bool, true
	case reflect.Int, reflect.Int32, reflect.Int64:
		return Int, true
	case reflect.Struct:
		return Struct, true
	case reflect.Pointer:
		f, ok = formOf(t.Elem())
		return f, ok && t.Elem().Kind() == reflect.Struct && t.Elem() != momentType
	case reflect.Map:
		f, ok = formOf(t.Elem())
		return Map, ok && t.Key() == textType && t.Elem() != terseType && (f == Text || f == Bool || f == Int)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return Bytes, true
		}
		f, ok = formOf(t.Elem())
		return Structs, ok && f == Struct && t.Elem().Kind() == reflect.Struct
	}
	return 0, false
}

// element is the form of a map's values.
func (f *Field) element() Form {
	e, _ := formOf(f.typ.Elem())
	return e
}

// structType is the type of the struct, or of each in a list.
func (f *Field) structType() reflect.Type {
	if f.Form == Structs {
		return f.typ.Elem()
	}
	return deref(f.typ)
}

// Lasts reports whether the field is how long something takes, in nanoseconds.
func (f *Field) Lasts() bool { return f.typ == spanType }

// optional reports whether the field may be unset, as a pointer may.
func (f *Field) optional() bool { return f.typ.Kind() == reflect.Pointer }

// leaves lists the fields that hold values, members of nested structs
// included and the structs themselves left out. parent is the struct that
// holds them, as seen from the record.
func leaves(fields []*Field, parent *Field) (all []*Field) {
	for _, f := range fields {
		f = f.within(parent)
		if f.Form == Struct {
			all = append(all, leaves(f.Members, f)...)
		} else {
			all = append(all, f)
		}
	}
	return all
}

// within returns a member of parent as seen from the record: it exists only
// where parent does.
func (f *Field) within(parent *Field) *Field {
	if parent == nil {
		return f
	}
	c := *f
	c.index = slices.Concat(parent.index, f.index)
	c.seldom = parent.seldom
	c.needed = f.needed && (parent.needed || parent.optional()) // an unset one has no members
	c.when = slices.Clone(parent.when)
	for _, w := range f.when {
		c.when = append(c.when, condition{w.field.within(parent), w.value})
	}
	return &c
}

// value returns the field in v. The result is invalid if a pointer on the
// way is nil, but for that to what is kept apart, which a record may lack that somebody
// has just made.
func (f *Field) value(v reflect.Value) reflect.Value {
	for n, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && f.seldom && n == 1 {
				v.Set(reflect.New(v.Type().Elem()))
			}
			if v.IsNil() {
				return reflect.Value{}
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

func (f *Field) in(rec Record) reflect.Value { return f.value(reflect.ValueOf(rec).Elem()) }

func (f *Field) text(rec Record) string {
	if v := f.in(rec); v.IsValid() {
		return textIn(v)
	}
	return ""
}

// textIn is the text that a value of form Text says.
func textIn(v reflect.Value) string {
	if v.Type() == terseType {
		return terse.Text(v.String()).String()
	}
	return v.String()
}

// timeIn is the time that a value of form Time says, which is no pointer.
func timeIn(v reflect.Value) time.Time {
	if v.Type() == momentType {
		return at[Moment](v).Time()
	}
	return *at[time.Time](v)
}

// setTime has a value of form Time, which is no pointer, say a time.
func setTime(v reflect.Value, t time.Time) {
	if v.Type() == momentType {
		*at[Moment](v) = MomentOf(t)
		return
	}
	*at[time.Time](v) = t
}

// texts returns the list in the record, without copying it.
func (f *Field) texts(rec Record) []string {
	if v := f.in(rec); v.IsValid() {
		return *at[[]string](v)
	}
	return nil
}

// at returns a pointer to what an addressable value holds. Unlike Interface
// it copies nothing to the heap.
func at[T any](v reflect.Value) *T { return v.Addr().Interface().(*T) }

// applies reports whether the variant in v has this field.
func (f *Field) applies(v reflect.Value) bool {
	for _, w := range f.when {
		if is := w.field.value(v); !is.IsValid() || is.String() != w.value {
			return false
		}
	}
	return true
}

// empty reports whether a value of the field is as good as none.
func (f *Field) empty(v reflect.Value) bool {
	switch f.Form {
	case Texts, Structs, Bytes, Map, Marks, JSON:
		return v.Len() == 0
	}
	return v.IsZero()
}

// names are what stored members of the field may be called, the newest first.
func (f *Field) names() []string { return append([]string{f.last}, f.Was...) }

// shownAs is the field's name in answers.
func (f *Field) shownAs() string {
	if f.Out != "" {
		return f.Out
	}
	return f.last
}
