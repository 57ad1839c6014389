package kind

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The stored form of a record is a JSON object with its fields in the order of
// the struct, secrets included, and objects that somebody sent to the letter.
// There is one text for one record. What is empty is left out, and reads as
// empty again, except that a field with a default is written even when it is
// zero: a record without the field is one that was written before there was
// one, and reads with the default. A list for which a body said null is a null.

// Encode returns the stored form of a record, without any seals.
func (d *Def) Encode(rec Record) ([]byte, error) { return d.encode(rec, nil, false) }

// EncodeOwn is Encode of a record whose JSON was made here, by Delta or Encode: it is
// not looked at again.
func (d *Def) EncodeOwn(rec Record) ([]byte, error) { return d.encode(rec, nil, true) }

func (d *Def) encode(rec Record, s Sealer, own bool) ([]byte, error) {
	w := writers.Get().(*writer)
	defer writers.Put(w)
	w.dst, w.err, w.own = w.dst[:0], nil, own
	if w.sealer = s; s != nil {
		w.place = d.place(rec.Base().ID)
	}
	w.object(d.layout, reflect.ValueOf(rec).Elem())
	if w.err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", d.Name, rec.Base().ID, w.err)
	}
	return slices.Clone(w.dst), nil
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// writer writes stored forms. It goes on after an error, which is the first.
type writer struct {
	dst    []byte
	err    error
	sealer Sealer // nil for none
	place  string // of the record's fields
	open   bool   // whether what is secret or sealed is left out
	own    bool   // whether its JSON was made here
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// object writes a struct.
func (w *writer) object(l *layout, v reflect.Value) {
	w.dst = append(w.dst, '{')
	for _, f := range l.fields {
		w.member(f, v)
	}
	if l.unknown != nil {
		w.unknown(l.unknownIn(v))
	}
	w.dst = append(w.dst, '}')
}

// member writes a field of a struct, unless it is empty.
func (w *writer) member(f *Field, holder reflect.Value) {
	if w.open && (f.Secret || f.Sealed) {
		return
	}
	v := f.value(holder)
	if f.Null && v.IsNil() {
		w.name(f.key)
		w.dst = append(w.dst, "null"...)
		return
	}
	if f.empty(v) && !(f.staysZero && f.applies(holder)) && !(f.Form == Struct && !f.optional()) {
		return
	}
	start := len(w.dst)
	w.name(f.key)
	before := len(w.dst)
	if f.optional() {
		v = v.Elem()
	}
	w.value(f, v)
	if f.Form == Struct && !f.optional() && string(w.dst[before:]) == "{}" {
		w.dst = w.dst[:start]
		return
	}
	if f.Sealed && w.sealer != nil {
		w.sealFrom(before, f.Name)
	}
}

// name writes a member's name, with the comma that it needs.
func (w *writer) name(key Key) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, key...)
}

// unknown writes the members that a newer controller wrote.
func (w *writer) unknown(raw jsontext.Value) {
	if len(raw) == 0 {
		return
	}
	if raw.Kind() != '{' || !raw.IsValid() {
		w.fail(errors.New("unknown members are no object"))
		return
	}
	inside := bytes.TrimSpace(raw)
	if inside = bytes.TrimSpace(inside[1 : len(inside)-1]); len(inside) == 0 {
		return
	}
	w.name(nil)
	w.dst = append(w.dst, inside...)
}

// value writes a value of a field, which is no pointer any more.
func (w *writer) value(f *Field, v reflect.Value) {
	switch f.Form {
	case Text, Bool, Int:
		w.scalar(v)
	case Time:
		w.time(timeIn(v))
	case Bytes:
		w.dst = append(base64.StdEncoding.AppendEncode(append(w.dst, '"'), v.Bytes()), '"')
	case Texts:
		w.list(v.Len(), func(i int) { w.text((*at[[]string](v))[i]) })
	case Struct:
		w.object(f.layout, v)
	case Structs:
		w.list(v.Len(), func(i int) { w.object(f.layout, v.Index(i)) })
	case Map:
		w.dict(mapKeys(v), func(key string) { w.scalar(v.MapIndex(reflect.ValueOf(key))) })
	case Marks:
		tags := *at[Tags](v)
		w.dict(sortedKeys(tags), func(key string) { w.any(tags[key]) })
	case JSON:
		if raw := *at[jsontext.Value](v); w.own || raw.IsValid() {
			w.dst = append(w.dst, raw...)
		} else {
			w.fail(fmt.Errorf("%s holds no JSON", f.Name))
		}
	}
}

func (w *writer) scalar(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		w.text(textIn(v))
	case reflect.Bool:
		w.dst = strconv.AppendBool(w.dst, v.Bool())
	default:
		w.dst = strconv.AppendInt(w.dst, v.Int(), 10)
	}
}

// text writes a text. One that is no UTF-8 would not come back as it was.
func (w *writer) text(s string) {
	if plain(s) {
		w.dst = append(append(append(w.dst, '"'), s...), '"')
		return
	}
	dst, err := jsontext.AppendQuote(w.dst, s)
	if w.dst = dst; err != nil {
		w.fail(err)
	}
}

func (w *writer) time(t time.Time) {
	dst, err := t.AppendText(append(w.dst, '"'))
	if w.dst = append(dst, '"'); err != nil {
		w.fail(err)
	}
}

func (w *writer) list(n int, element func(i int)) {
	w.dst = append(w.dst, '[')
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		element(i)
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) dict(keys []string, element func(key string)) {
	w.dst = append(w.dst, '{')
	for i, key := range keys {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.text(key)
		w.dst = append(w.dst, ':')
		element(key)
	}
	w.dst = append(w.dst, '}')
}

// any writes the value of a tag, which is a text as a rule.
func (w *writer) any(v any) {
	if s, ok := v.(string); ok {
		w.text(s)
		return
	}
	b, err := json.Marshal(v, json.Deterministic(true))
	if w.dst = append(w.dst, b...); err != nil {
		w.fail(err)
	}
}
