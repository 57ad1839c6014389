package kind

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/terse"
)

// Decode reads the stored form of a record without seals. A field that it lacks has its
// default, one may have the name that it had before, and texts are as they
// would be written today.
func (d *Def) Decode(data []byte) (Record, error) { return d.decode(data, nil, "") }

func (d *Def) decode(data []byte, s Sealer, place string) (Record, error) {
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.sealer, r.place = s, place
	defer r.Reset(nothing{})                                           // hold on to nobody's secrets
	r.Reset(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true)) // we look for them where we look at names
	rec := d.made()
	err := r.object(d.layout, rec.Elem())
	if err == nil {
		err = r.end()
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", d.Name, err)
	}
	return rec.Interface().(Record), nil
}

var readers = sync.Pool{New: func() any { return &reader{Decoder: jsontext.NewDecoder(nothing{})} }}

// nothing is a text that ends before it begins.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

// reader reads stored forms. Its errors say where something is wrong and never
// repeat what is there.
type reader struct {
	*jsontext.Decoder
	// met holds texts that were read before: records say the same words over
	// and over, and one copy serves all of them. What no other record says is
	// left out, or it would take the place of what many say.
	met  [2048]string
	list []string

	sealer Sealer // nil for none
	place  string // of the record's fields
}

// end fails if there is more to read.
func (r *reader) end() error {
	_, err := r.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("there is more behind the record")
	}
	return err
}

// wrong says that the next value is none of a type.
func (r *reader) wrong(t reflect.Type) error {
	if err := r.SkipValue(); err != nil {
		return err
	}
	return r.misread(t)
}

// misread says that the last value is none of a type.
func (r *reader) misread(t reflect.Type) error {
	return fmt.Errorf("%s holds no %s", r.StackPointer(), t)
}

// again says that the last name was there before.
func (r *reader) again() error { return fmt.Errorf("%s is there twice", r.StackPointer()) }

// open reads the bracket with which a value of a type begins.
func (r *reader) open(bracket jsontext.Kind, t reflect.Type) error {
	if r.PeekKind() != bracket {
		return r.wrong(t)
	}
	_, err := r.ReadToken()
	return err
}

// more reports whether a list or object goes on, and reads its end if not.
func (r *reader) more(end jsontext.Kind) (bool, error) {
	if r.PeekKind() != end {
		return true, nil
	}
	_, err := r.ReadToken()
	return false, err
}

// object reads a struct.
func (r *reader) object(l *layout, v reflect.Value) error {
	if err := r.open('{', v.Type()); err != nil {
		return err
	}
	var few [64]uint8
	given := few[:]
	if len(l.fields) > len(few) {
		given = make([]uint8, len(l.fields))
	}
	var unknown []byte
	for {
		more, err := r.more('}')
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if unknown, err = r.member(l, v, given, unknown); err != nil {
			return err
		}
	}
	if unknown != nil {
		raw := jsontext.Value(append(unknown, '}'))
		if !raw.IsValid() { // all that can be is a name that is there twice
			return r.again()
		}
		*at[*jsontext.Value](v.FieldByIndex(l.unknown)) = &raw
	}
	l.initialise(v, given)
	return nil
}

// member reads a member of a struct. given says of each field whether it was
// read, and under which of its names: the newest counts.
func (r *reader) member(l *layout, v reflect.Value, given []uint8, unknown []byte) ([]byte, error) {
	name, err := r.ReadValue()
	if err != nil {
		return unknown, err
	}
	p, known := l.named[string(unquoted(name))]
	if !known {
		return r.unknown(l, name, unknown)
	}
	switch is := given[p.field]; {
	case is == p.name:
		return unknown, r.again()
	case is != 0 && is < p.name || r.PeekKind() == 'n' && !l.fields[p.field].Null:
		return unknown, r.SkipValue()
	}
	f := l.fields[p.field]
	dst := f.value(v)
	if given[p.field] != 0 {
		dst.SetZero()
	}
	given[p.field] = p.name
	if r.PeekKind() == 'n' {
		return unknown, r.SkipValue()
	}
	if f.Sealed && r.sealer != nil {
		return unknown, r.sealed(f, f.names()[p.name-ownName], dst)
	}
	return unknown, r.value(f, dst)
}

// unknown reads a member that no field has, and keeps it where the struct has
// a place for it.
func (r *reader) unknown(l *layout, name, kept []byte) ([]byte, error) {
	if l.unknown == nil {
		return nil, r.SkipValue()
	}
	if kept == nil {
		kept = []byte{'{'}
	} else {
		kept = append(kept, ',')
	}
	kept = append(append(kept, name...), ':')
	value, err := r.ReadValue()
	if err != nil {
		return nil, err
	}
	value = slices.Clone(value)
	if err := value.Compact(); err != nil {
		return nil, err
	}
	return append(kept, value...), nil
}

// value reads a value into a field, which is zero.
func (r *reader) value(f *Field, dst reflect.Value) error {
	if f.optional() {
		dst.Set(reflect.New(f.typ.Elem()))
		dst = dst.Elem()
	}
	if err := r.form(f, dst); err != nil {
		return err
	}
	if f.Format != "" {
		f.tidy(dst)
	}
	if f.Null && dst.IsNil() {
		dst.Set(unsaid)
	}
	return nil
}

// form reads a value as the field's form has it.
func (r *reader) form(f *Field, dst reflect.Value) error {
	switch f.Form {
	case Text, Bool, Int:
		if f.alone && r.PeekKind() == '"' {
			raw, err := r.ReadValue()
			if err == nil {
				dst.SetString(string(unquoted(raw)))
			}
			return err
		}
		return r.scalar(dst)
	case Time:
		return r.time(dst)
	case Bytes:
		return r.bytes(dst)
	case Texts:
		return r.texts(dst)
	case Struct:
		return r.object(f.layout, dst)
	case Structs:
		return r.structs(f.layout, dst)
	case Map, Marks:
		return r.dict(dst)
	}
	raw, err := r.ReadValue()
	if err == nil && !raw.IsValid() {
		return r.again()
	}
	dst.SetBytes(slices.Clone(raw))
	return err
}

func (r *reader) scalar(dst reflect.Value) error {
	next := r.PeekKind()
	switch kind := dst.Kind(); {
	case kind == reflect.String && next == '"' && dst.Type() == terseType:
		raw, err := r.ReadValue()
		if err == nil {
			dst.SetString(string(terse.Of(unquoted(raw))))
		}
		return err
	case kind == reflect.String && next == '"':
		s, err := r.text()
		dst.SetString(s)
		return err
	case kind == reflect.Bool && (next == 't' || next == 'f'):
		t, err := r.ReadToken()
		if err == nil {
			dst.SetBool(t.Bool())
		}
		return err
	case kind != reflect.String && kind != reflect.Bool && next == '0':
		raw, err := r.ReadValue()
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(raw), 10, dst.Type().Bits())
		if err != nil {
			return r.misread(dst.Type())
		}
		dst.SetInt(n)
		return nil
	}
	return r.wrong(dst.Type())
}

// text reads a text that is known to come next.
func (r *reader) text() (string, error) {
	raw, err := r.ReadValue()
	if err != nil {
		return "", err
	}
	return r.meet(unquoted(raw)), nil
}

var seed = maphash.MakeSeed()

// meet returns a text, the one that was met before if it still is at hand.
func (r *reader) meet(b []byte) string {
	const longest = 64
	if len(b) > longest {
		return string(b)
	}
	s := &r.met[maphash.Bytes(seed, b)%uint64(len(r.met))]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}

// unquoted returns what a JSON text says. The decoder has found it to be one.
func unquoted(raw jsontext.Value) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	b, _ := jsontext.AppendUnquote(nil, raw)
	return b
}

func (r *reader) time(dst reflect.Value) error {
	if r.PeekKind() != '"' {
		return r.wrong(timeType)
	}
	raw, err := r.ReadValue()
	if err != nil {
		return err
	}
	var t time.Time
	if t.UnmarshalText(unquoted(raw)) != nil {
		return r.misread(timeType)
	}
	setTime(dst, t)
	return nil
}

func (r *reader) bytes(dst reflect.Value) error {
	if r.PeekKind() != '"' {
		return r.wrong(dst.Type())
	}
	raw, err := r.ReadValue()
	if err != nil {
		return err
	}
	b, err := base64.StdEncoding.AppendDecode(nil, unquoted(raw))
	if err != nil {
		return r.misread(dst.Type())
	}
	dst.SetBytes(b)
	return nil
}

func (r *reader) texts(dst reflect.Value) error {
	if err := r.open('[', textsType); err != nil {
		return err
	}
	r.list = r.list[:0]
	for {
		more, err := r.more(']')
		if err != nil {
			return err
		}
		if !more {
			*at[[]string](dst) = slices.Clone(r.list)
			return nil
		}
		if r.PeekKind() != '"' {
			return r.wrong(textType)
		}
		s, err := r.text()
		if err != nil {
			return err
		}
		r.list = append(r.list, s)
	}
}

func (r *reader) structs(l *layout, dst reflect.Value) error {
	if err := r.open('[', dst.Type()); err != nil {
		return err
	}
	for n := 0; ; n++ {
		more, err := r.more(']')
		if err != nil || !more {
			return err
		}
		dst.Set(reflect.Append(dst, reflect.Zero(dst.Type().Elem())))
		if err := r.object(l, dst.Index(n)); err != nil {
			return err
		}
	}
}

// dict reads a map of scalars, or of whatever tags hold.
func (r *reader) dict(dst reflect.Value) error {
	if err := r.open('{', dst.Type()); err != nil {
		return err
	}
	dst.Set(reflect.MakeMap(dst.Type()))
	value := reflect.New(dst.Type().Elem()).Elem()
	for n := 1; ; n++ {
		more, err := r.more('}')
		if err != nil || !more {
			return err
		}
		key, err := r.text()
		if err != nil {
			return err
		}
		if value.Kind() == reflect.Interface {
			err = r.any(value)
		} else {
			err = r.scalar(value)
		}
		if err != nil {
			return err
		}
		if dst.SetMapIndex(reflect.ValueOf(key), value); dst.Len() < n {
			return r.again()
		}
	}
}

// any reads the value of a tag, which is a text as a rule.
func (r *reader) any(dst reflect.Value) error {
	dst.SetZero()
	if r.PeekKind() == '"' {
		s, err := r.text()
		dst.Set(reflect.ValueOf(s))
		return err
	}
	raw, err := r.ReadValue()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, dst.Addr().Interface())
}
