// Package pack turns Go values into bytes and back, for files that the same build of the
// program reads again: bytes say nothing of the types that they are of, so who keeps them
// keeps their Shape too. It knows no kind and imports nothing of ours.
package pack

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Packed is a type that says itself what it is packed as. Both are methods of a pointer, and
// Unpack is called on a zero value.
type Packed interface {
	Pack(w *Writer)
	Unpack(r *Reader)
}

// Codec packs the values of one type.
type Codec struct {
	typ   reflect.Type
	shape string
	node
}

// node packs values of a type. What is none is told by a bit of the struct that it is in, and
// take is called for the others alone, on a zero value.
type node struct {
	put  func(w *Writer, v reflect.Value)
	take func(r *Reader, v reflect.Value)
	none func(v reflect.Value) bool
}

// Of returns the codec of a type, without what is not exported of it. It panics for one that
// it cannot pack: one with channels or functions, or that holds itself.
func Of(t reflect.Type) *Codec {
	m := &maker{open: map[reflect.Type]bool{}}
	n := m.node(t)
	return &Codec{t, m.shape.String(), n}
}

// Shape is a text that is another one for a type of which the bytes mean something else, its
// tags included.
func (c *Codec) Shape() string { return c.shape }

// Put packs what a pointer leads to.
func (c *Codec) Put(w *Writer, of reflect.Value) { c.put(w, of) }

// Take unpacks into a zero value.
func (c *Codec) Take(r *Reader, into reflect.Value) { c.take(r, into) }

// maker makes nodes, and notes what they are of.
type maker struct {
	shape strings.Builder
	open  map[reflect.Type]bool // structs that it is in
}

var (
	packedType = reflect.TypeFor[Packed]()
	timeType   = reflect.TypeFor[time.Time]()
	anyType    = reflect.TypeFor[any]()
)

func (m *maker) node(t reflect.Type) node {
	fmt.Fprintf(&m.shape, "%s.%s:%s(", t.PkgPath(), t.Name(), t.Kind())
	defer m.shape.WriteByte(')')
	switch {
	case reflect.PointerTo(t).Implements(packedType):
		return packedNode
	case t == timeType:
		return timeNode
	case t == anyType:
		return anyNode
	}
	switch t.Kind() {
	case reflect.String:
		return textNode
	case reflect.Bool:
		return boolNode
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intNode
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return uintNode
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return bytesNode
		}
		return listNode(m.element(t.Elem()))
	case reflect.Map:
		return mapNode(t, m.node(t.Key()), m.element(t.Elem()))
	case reflect.Pointer:
		return pointerNode(m.node(t.Elem()))
	case reflect.Struct:
		return m.structNode(t)
	}
	panic(fmt.Sprintf("pack: no value of %s can be packed", t))
}

func (m *maker) structNode(t reflect.Type) node {
	if m.open[t] {
		panic(fmt.Sprintf("pack: %s holds itself", t))
	}
	m.open[t] = true
	defer delete(m.open, t)
	var at []int
	var of []node
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() { // what a program keeps for itself is made again
			continue
		}
		fmt.Fprintf(&m.shape, "%s %q ", f.Name, f.Tag)
		at, of = append(at, i), append(of, m.node(f.Type))
	}
	if len(at) == 0 && t.NumField() > 0 {
		panic(fmt.Sprintf("pack: nothing of %s is exported", t))
	}
	return node{
		put: func(w *Writer, v reflect.Value) {
			begin := len(w.Bytes)
			for range (len(at) + 7) / 8 {
				w.Bytes = append(w.Bytes, 0)
			}
			for bit, i := range at {
				if f := v.Field(i); !of[bit].none(f) {
					w.Bytes[begin+bit/8] |= 1 << (bit % 8)
					of[bit].put(w, f)
				}
			}
		},
		take: func(r *Reader, v reflect.Value) {
			said := r.some((len(at) + 7) / 8)
			for bit, i := range at {
				if bit/8 < len(said) && said[bit/8]&(1<<(bit%8)) != 0 {
					of[bit].take(r, v.Field(i))
				}
			}
		},
		none: reflect.Value.IsZero,
	}
}

var (
	textNode = node{
		put:  func(w *Writer, v reflect.Value) { w.Text(v.String()) },
		take: func(r *Reader, v reflect.Value) { v.SetString(r.Text()) },
		none: func(v reflect.Value) bool { return v.Len() == 0 },
	}
	boolNode = node{
		put:  func(w *Writer, v reflect.Value) { w.Count(truth(v.Bool())) },
		take: func(r *Reader, v reflect.Value) { v.SetBool(r.Count() != 0) },
		none: func(v reflect.Value) bool { return !v.Bool() },
	}
	intNode = node{
		put:  func(w *Writer, v reflect.Value) { w.Number(v.Int()) },
		take: func(r *Reader, v reflect.Value) { v.SetInt(r.Number()) },
		none: func(v reflect.Value) bool { return v.Int() == 0 },
	}
	uintNode = node{
		put:  func(w *Writer, v reflect.Value) { w.Count(v.Uint()) },
		take: func(r *Reader, v reflect.Value) { v.SetUint(r.Count()) },
		none: func(v reflect.Value) bool { return v.Uint() == 0 },
	}
	bytesNode = node{
		put:  func(w *Writer, v reflect.Value) { w.Data(v.Bytes()) },
		take: func(r *Reader, v reflect.Value) { v.SetBytes(r.Data()) },
		none: reflect.Value.IsNil,
	}
	timeNode = node{
		put: func(w *Writer, v reflect.Value) {
			t := v.Interface().(time.Time)
			w.Number(t.Unix())
			w.Number(int64(t.Nanosecond()))
		},
		take: func(r *Reader, v reflect.Value) {
			seconds, nanos := r.Number(), r.Number()
			v.Set(reflect.ValueOf(time.Unix(seconds, nanos).UTC()))
		},
		none: func(v reflect.Value) bool { return v.Interface().(time.Time).IsZero() },
	}
	packedNode = node{
		put:  func(w *Writer, v reflect.Value) { v.Addr().Interface().(Packed).Pack(w) },
		take: func(r *Reader, v reflect.Value) { v.Addr().Interface().(Packed).Unpack(r) },
		none: reflect.Value.IsZero,
	}
	anyNode = node{put: putAny, take: takeAny, none: reflect.Value.IsNil}
)

// What is in an any: what marks of people may be, and no more.
const (
	anyNothing = iota
	anyText
	anyFalse
	anyTrue
)

func putAny(w *Writer, v reflect.Value) {
	switch is := v.Interface().(type) {
	case nil:
		w.Count(anyNothing)
	case string:
		w.Count(anyText)
		w.Text(is)
	case bool:
		w.Count(anyFalse + truth(is))
	default:
		w.fail(fmt.Errorf("pack: a %T cannot be packed as any", is))
	}
}

func takeAny(r *Reader, v reflect.Value) {
	switch r.Count() {
	case anyNothing:
	case anyText:
		v.Set(reflect.ValueOf(r.Text()))
	case anyFalse:
		v.Set(reflect.ValueOf(false))
	case anyTrue:
		v.Set(reflect.ValueOf(true))
	default:
		r.Fail(errors.New("pack: it is not known what is in an any"))
	}
}

func truth(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// element is the node of what lists and maps have, of which some may be nil.
func (m *maker) element(t reflect.Type) node {
	of := m.node(t)
	if k := t.Kind(); k != reflect.Slice && k != reflect.Map && k != reflect.Pointer {
		return of
	}
	return node{
		put: func(w *Writer, v reflect.Value) {
			if v.IsNil() {
				w.Count(0)
				return
			}
			w.Count(1)
			of.put(w, v)
		},
		take: func(r *Reader, v reflect.Value) {
			if r.Count() != 0 {
				of.take(r, v)
			}
		},
	}
}

func listNode(of node) node {
	return node{
		put: func(w *Writer, v reflect.Value) {
			w.Count(uint64(v.Len()))
			for i := range v.Len() {
				of.put(w, v.Index(i))
			}
		},
		take: func(r *Reader, v reflect.Value) {
			n := r.length()
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				of.take(r, v.Index(i))
			}
		},
		none: reflect.Value.IsNil,
	}
}

func mapNode(t reflect.Type, key, of node) node {
	return node{
		put: func(w *Writer, v reflect.Value) {
			w.Count(uint64(v.Len()))
			k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem() // which can be addressed
			for it := v.MapRange(); it.Next(); {
				k.SetIterKey(it)
				key.put(w, k)
				e.SetIterValue(it)
				of.put(w, e)
			}
		},
		take: func(r *Reader, v reflect.Value) {
			n := r.length()
			v.Set(reflect.MakeMapWithSize(t, n))
			for range n {
				k, e := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
				key.take(r, k)
				of.take(r, e)
				v.SetMapIndex(k, e)
			}
		},
		none: reflect.Value.IsNil,
	}
}

func pointerNode(to node) node {
	return node{
		put: func(w *Writer, v reflect.Value) { to.put(w, v.Elem()) },
		take: func(r *Reader, v reflect.Value) {
			v.Set(reflect.New(v.Type().Elem()))
			to.take(r, v.Elem())
		},
		none: reflect.Value.IsNil,
	}
}
