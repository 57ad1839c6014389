package zitidb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"go.etcd.io/bbolt"
)

// The types that a value names in its first byte.
const (
	typeBool = iota + 1
	typeInt32
	typeInt64
	typeFloat
	typeText
	typeTime
	typeNull
)

// listSize is the key that tells a list from a map, and how long it is.
const listSize = "__list__size__36484231-110c-4767-afe2-01b6e3db107a"

// Bounds of what a file may hold that was not written by a controller.
const (
	maxDepth = 64
	maxList  = 1 << 20
)

// value returns what a stored value stands for; nil for null.
func value(b []byte) (any, error) {
	if len(b) == 0 {
		return nil, errors.New("a value without a type")
	}
	kind, b := b[0], b[1:]
	if want := map[byte]int{typeBool: 1, typeInt32: 4, typeInt64: 8, typeFloat: 8}[kind]; want > 0 && len(b) != want {
		return nil, fmt.Errorf("a value of type %d has %d bytes", kind, len(b))
	}
	switch kind {
	case typeBool:
		return b[0] == 1, nil
	case typeInt32:
		return int32(binary.LittleEndian.Uint32(b)), nil
	case typeInt64:
		return int64(binary.LittleEndian.Uint64(b)), nil
	case typeFloat:
		f := math.Float64frombits(binary.LittleEndian.Uint64(b))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errors.New("a number that is none")
		}
		return f, nil
	case typeText:
		if !utf8.Valid(b) {
			return nil, errors.New("a text that is not UTF-8")
		}
		return string(b), nil
	case typeTime:
		var t time.Time
		if err := t.UnmarshalBinary(b); err != nil {
			return nil, errors.New("a time that is none")
		}
		return t.UTC(), nil
	case typeNull:
		return nil, nil
	}
	return nil, fmt.Errorf("a value of the unknown type %d", kind)
}

// tree returns a map or a list of values, with all that is in it.
func tree(b *bbolt.Bucket, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values lie more than %d deep", maxDepth)
	}
	size := b.Get([]byte(listSize))
	if size == nil {
		members := map[string]any{}
		err := b.ForEach(func(k, v []byte) (err error) {
			members[string(k)], err = member(b, k, v, depth)
			return err
		})
		return members, err
	}
	n, err := value(size)
	// Its length is one of the keys, and nothing is kept as that.
	if n, is := n.(int32); err == nil && is && n >= 0 && int(n) < keys(b, maxList) {
		list := make([]any, n)
		for i := range list {
			key := binary.LittleEndian.AppendUint32([]byte{typeInt32}, uint32(i))
			if list[i], err = member(b, key, b.Get(key), depth); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, errors.New("a list without a length")
}

// keys is how many a bucket has, and most if it has more.
func keys(b *bbolt.Bucket, most int) (n int) {
	c := b.Cursor()
	for k, _ := c.First(); k != nil && n < most; k, _ = c.Next() {
		n++
	}
	return n
}

func member(b *bbolt.Bucket, k, v []byte, depth int) (any, error) {
	if v != nil {
		return value(v)
	}
	if inner := b.Bucket(k); inner != nil {
		return tree(inner, depth+1)
	}
	return nil, nil
}

// texts returns a set of texts, in order.
func texts(b *bbolt.Bucket) ([]string, error) {
	var all []string
	err := b.ForEach(func(k, _ []byte) error {
		v, err := value(k)
		text, is := v.(string)
		if err == nil && !is {
			err = errors.New("something that is no text is in a set of texts")
		}
		all = append(all, text)
		return err
	})
	return all, err
}

// decode fills a struct from a bucket. What a field is in the file follows from its Go
// type: texts, numbers, truths and times are values, []string is a set, a struct or a
// pointer to one a bucket, map[string]any whatever JSON can say, any other map a
// bucket of its values, and []byte bytes as they are. A pointer is nil if nothing is stored.
func decode(b *bbolt.Bucket, into reflect.Value) error {
	for i := range into.NumField() {
		f, field := into.Type().Field(i), into.Field(i)
		name, in := f.Tag.Lookup("db")
		switch {
		case f.Anonymous:
			if err := decode(b, field); err != nil {
				return err
			}
		case in && name != "":
			if err := decodeField(b, []byte(name), field); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func decodeField(b *bbolt.Bucket, key []byte, field reflect.Value) error {
	if v := b.Get(key); v != nil {
		if field.Type() == reflect.TypeFor[[]byte]() {
			field.SetBytes(bytes.Clone(v))
			return nil
		}
		v, err := value(v)
		if err != nil || v == nil {
			return err
		}
		return set(field, v)
	}
	inner := b.Bucket(key)
	if inner == nil {
		return nil
	}
	switch t := field.Type(); {
	case t == reflect.TypeFor[[]string]():
		all, err := texts(inner)
		field.Set(reflect.ValueOf(all))
		return err
	case t == reflect.TypeFor[map[string]any]():
		all, err := tree(inner, 0)
		if members, is := all.(map[string]any); is {
			field.Set(reflect.ValueOf(members))
		} else if err == nil {
			err = errors.New("it should be a map and is a list")
		}
		return err
	case t.Kind() == reflect.Map:
		field.Set(reflect.MakeMap(t))
		return inner.ForEach(func(k, _ []byte) error {
			elem := reflect.New(t.Elem()).Elem()
			if err := decodeField(inner, k, elem); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
			field.SetMapIndex(reflect.ValueOf(string(k)), elem)
			return nil
		})
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		field.Set(reflect.New(t.Elem()))
		return decode(inner, field.Elem())
	case t.Kind() == reflect.Struct:
		return decode(inner, field)
	}
	return errors.New("it should be a value and is more")
}

// set puts a value into a field of its type, or a pointer to it.
func set(field reflect.Value, v any) error {
	got := reflect.ValueOf(v)
	if field.Kind() == reflect.Pointer && got.Type() == field.Type().Elem() {
		field.Set(reflect.New(got.Type()))
		field = field.Elem()
	}
	switch {
	case got.Type() == field.Type():
		field.Set(got)
	case field.Kind() == reflect.Int64 && got.CanInt():
		field.SetInt(got.Int())
	default:
		return fmt.Errorf("it should be of type %s and is %s", field.Type(), got.Type())
	}
	return nil
}

// names are the keys that a struct knows: those that it reads, and those that
// it says are computed from others.
func names(t reflect.Type) map[string]bool {
	all := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for name := range names(f.Type) {
				all[name] = true
			}
			continue
		}
		all[f.Tag.Get("db")] = true
		for name := range strings.FieldsSeq(f.Tag.Get("derived")) {
			all[name] = true
		}
	}
	delete(all, "")
	return all
}
