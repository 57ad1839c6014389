package message

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// A message is a struct whose fields carry their number in a tag, `pb:"7"`. The
// Go type says how a field travels: texts and bytes with their length, whole
// numbers and truth values as varints, float64 in eight bytes, structs and
// pointers to structs as messages inside, slices as repeated fields, maps as
// repeated pairs. What is zero is left out, except behind a pointer.

// ErrDamaged says that bytes are no message of the type asked for.
var ErrDamaged = errors.New("message: damaged")

// maxElements is how many entries of lists and maps one message may have in
// all: an entry of two bytes may need a hundred in memory.
const maxElements = 100_000

// Marshal returns the message's bytes. The same message always gives the same.
func Marshal[T any](m *T) []byte {
	return planOf(reflect.TypeFor[T]()).append(nil, reflect.ValueOf(m).Elem())
}

// Unmarshal reads a message. Fields that it does not know are passed over.
func Unmarshal[T any](data []byte) (*T, error) {
	m := new(T)
	d := decoder{left: maxElements}
	if err := d.message(planOf(reflect.TypeFor[T]()), data, reflect.ValueOf(m).Elem()); err != nil {
		return nil, fmt.Errorf("%T: %w", *m, err)
	}
	return m, nil
}

// plan is how the fields of a struct travel, by number.
type plan struct {
	fields []field
	byNum  map[protowire.Number]*field
}

type field struct {
	num   protowire.Number
	index int
	value codec
}

// codec is how one Go type travels.
type codec struct {
	typ  reflect.Type
	kind reflect.Kind
	wire protowire.Type // of one value
	// elem is what a slice or map holds and a pointer points to; key is the
	// key of a map.
	elem, key *codec
}

var plans sync.Map // of reflect.Type to *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{byNum: map[protowire.Number]*field{}}
	for i := range t.NumField() {
		sf := t.Field(i)
		n, err := strconv.ParseInt(sf.Tag.Get("pb"), 10, 32)
		if err != nil || n < 1 {
			panic(fmt.Sprintf("message: field %s of %s has no number", sf.Name, t))
		}
		p.fields = append(p.fields, field{protowire.Number(n), i, codecOf(sf.Type)})
	}
	slices.SortFunc(p.fields, func(a, b field) int { return cmp.Compare(a.num, b.num) })
	for i := range p.fields {
		p.byNum[p.fields[i].num] = &p.fields[i]
	}
	kept, _ := plans.LoadOrStore(t, p)
	return kept.(*plan)
}

func codecOf(t reflect.Type) codec {
	c := codec{typ: t, kind: t.Kind(), wire: protowire.BytesType}
	switch c.kind {
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		c.wire = protowire.VarintType
	case reflect.Float64:
		c.wire = protowire.Fixed64Type
	case reflect.String, reflect.Struct:
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && t.Elem() == reflect.TypeFor[byte]() {
			break // bytes, not a list
		}
		fallthrough
	case reflect.Pointer:
		elem := codecOf(t.Elem())
		c.elem = &elem
	case reflect.Map:
		key, elem := codecOf(t.Key()), codecOf(t.Elem())
		c.key, c.elem = &key, &elem
	default:
		panic(fmt.Sprintf("message: a field of type %s cannot travel", t))
	}
	return c
}

func (p *plan) append(dst []byte, v reflect.Value) []byte {
	for i := range p.fields {
		f := &p.fields[i]
		if fv := v.Field(f.index); !fv.IsZero() {
			dst = f.value.appendField(dst, f.num, fv)
		}
	}
	return dst
}

func (c *codec) appendField(dst []byte, num protowire.Number, v reflect.Value) []byte {
	switch {
	case c.kind == reflect.Map:
		return c.appendMap(dst, num, v)
	case c.kind == reflect.Pointer:
		return c.elem.appendField(dst, num, v.Elem())
	case c.kind != reflect.Slice || c.elem == nil:
		return c.appendValue(protowire.AppendTag(dst, num, c.wire), v)
	case c.elem.wire == protowire.VarintType:
		var packed []byte
		for i := range v.Len() {
			packed = c.elem.appendValue(packed, v.Index(i))
		}
		return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), packed)
	}
	for i := range v.Len() {
		dst = c.elem.appendValue(protowire.AppendTag(dst, num, c.elem.wire), v.Index(i))
	}
	return dst
}

// appendMap adds a map's pairs by key.
func (c *codec) appendMap(dst []byte, num protowire.Number, v reflect.Value) []byte {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int {
		switch {
		case a.Kind() == reflect.String:
			return cmp.Compare(a.String(), b.String())
		case a.CanInt():
			return cmp.Compare(a.Int(), b.Int())
		}
		return cmp.Compare(a.Uint(), b.Uint())
	})
	for _, k := range keys {
		pair := c.key.appendField(nil, 1, k)
		pair = c.elem.appendField(pair, 2, v.MapIndex(k))
		dst = protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), pair)
	}
	return dst
}

// appendValue adds one value without its tag.
func (c *codec) appendValue(dst []byte, v reflect.Value) []byte {
	switch c.kind {
	case reflect.String:
		return protowire.AppendString(dst, v.String())
	case reflect.Slice:
		return protowire.AppendBytes(dst, v.Bytes())
	case reflect.Bool:
		return protowire.AppendVarint(dst, protowire.EncodeBool(v.Bool()))
	case reflect.Int32, reflect.Int64:
		return protowire.AppendVarint(dst, uint64(v.Int()))
	case reflect.Uint32, reflect.Uint64:
		return protowire.AppendVarint(dst, v.Uint())
	case reflect.Float64:
		return protowire.AppendFixed64(dst, math.Float64bits(v.Float()))
	}
	return protowire.AppendBytes(dst, planOf(c.typ).append(nil, v))
}

// decoder reads one message with everything in it.
type decoder struct{ left int }

// count takes note of an entry of a list or map.
func (d *decoder) count() error {
	if d.left--; d.left < 0 {
		return fmt.Errorf("%w: more than %d entries", ErrDamaged, maxElements)
	}
	return nil
}

func (d *decoder) message(p *plan, data []byte, v reflect.Value) error {
	return eachField(data, func(num protowire.Number, typ protowire.Type, value []byte) error {
		f := p.byNum[num]
		if f == nil {
			return nil
		}
		if err := d.field(&f.value, typ, value, v.Field(f.index)); err != nil {
			return fmt.Errorf("field %d: %w", num, err)
		}
		return nil
	})
}

// eachField calls fn for every field of a message, with its value as it
// travels.
func eachField(data []byte, fn func(num protowire.Number, typ protowire.Type, value []byte) error) error {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return ErrDamaged
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(num, typ, data); n < 0 {
			return ErrDamaged
		}
		if err := fn(num, typ, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (d *decoder) field(c *codec, typ protowire.Type, value []byte, v reflect.Value) error {
	switch {
	case c.kind == reflect.Map:
		return d.pair(c, typ, value, v)
	case c.kind == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(c.typ.Elem()))
		}
		return d.field(c.elem, typ, value, v.Elem())
	case c.kind == reflect.Slice && c.elem != nil:
		return d.element(c, typ, value, v)
	}
	return d.value(c, typ, value, v)
}

// element adds to a list: one value, or several numbers packed together.
func (d *decoder) element(c *codec, typ protowire.Type, value []byte, v reflect.Value) error {
	if c.elem.wire != protowire.VarintType || typ != protowire.BytesType {
		return d.grow(c, typ, value, v)
	}
	packed, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return ErrDamaged
	}
	for len(packed) > 0 {
		_, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return ErrDamaged
		}
		if err := d.grow(c, protowire.VarintType, packed[:n], v); err != nil {
			return err
		}
		packed = packed[n:]
	}
	return nil
}

func (d *decoder) grow(c *codec, typ protowire.Type, value []byte, v reflect.Value) error {
	if err := d.count(); err != nil {
		return err
	}
	e := reflect.New(c.elem.typ).Elem()
	if err := d.field(c.elem, typ, value, e); err != nil {
		return err
	}
	v.Set(reflect.Append(v, e))
	return nil
}

// pair adds an entry to a map. A missing key or value is zero.
func (d *decoder) pair(c *codec, typ protowire.Type, value []byte, v reflect.Value) error {
	if err := d.count(); err != nil {
		return err
	}
	data, n := protowire.ConsumeBytes(value)
	if typ != protowire.BytesType || n < 0 {
		return ErrDamaged
	}
	key, elem := reflect.New(c.key.typ).Elem(), reflect.New(c.elem.typ).Elem()
	err := eachField(data, func(num protowire.Number, typ protowire.Type, value []byte) error {
		switch num {
		case 1:
			return d.field(c.key, typ, value, key)
		case 2:
			return d.field(c.elem, typ, value, elem)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(c.typ))
	}
	v.SetMapIndex(key, elem)
	return nil
}

// value reads one value. Of a value that comes twice the last counts, and
// messages are merged.
func (d *decoder) value(c *codec, typ protowire.Type, value []byte, v reflect.Value) error {
	if typ != c.wire {
		return fmt.Errorf("%w: wire type %d instead of %d", ErrDamaged, typ, c.wire)
	}
	switch c.wire {
	case protowire.VarintType:
		n, _ := protowire.ConsumeVarint(value)
		setNumber(v, n)
		return nil
	case protowire.Fixed64Type:
		n, _ := protowire.ConsumeFixed64(value)
		v.SetFloat(math.Float64frombits(n))
		return nil
	}
	data, _ := protowire.ConsumeBytes(value)
	switch c.kind {
	case reflect.String:
		v.SetString(string(data))
	case reflect.Slice:
		v.SetBytes(slices.Clone(data))
	default:
		return d.message(planOf(c.typ), data, v)
	}
	return nil
}

// setNumber cuts a number to the size of its type, as the format has it.
func setNumber(v reflect.Value, n uint64) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(n != 0)
	case reflect.Int32:
		v.SetInt(int64(int32(n)))
	case reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint32:
		v.SetUint(uint64(uint32(n)))
	default:
		v.SetUint(n)
	}
}
