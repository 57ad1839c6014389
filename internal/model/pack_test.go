package model_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/pack"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
)

// TestPacked has records of every kind that is kept come back as they were packed: with
// nothing but their defaults, and with something in every field.
func TestPacked(t *testing.T) {
	for _, d := range model.All.Defs {
		if d.Lane != kind.Model && d.Lane != kind.Session {
			continue
		}
		for _, full := range []bool{false, true} {
			rec := d.New()
			if full {
				n := 0
				fill(reflect.ValueOf(rec).Elem(), &n)
			}
			w := &pack.Writer{}
			d.Pack(w, d.Kept(rec), nil)
			r := pack.NewReader(w.Bytes)
			back, err := d.Unpack(r, nil)
			if err != nil || w.Err() != nil || r.Len() != 0 {
				t.Errorf("%s: %v, %v, %d bytes are left", d.Name, w.Err(), err, r.Len())
				continue
			}
			unexported := cmp.FilterPath(func(p cmp.Path) bool {
				f, is := p.Last().(cmp.StructField)
				return is && (f.Name() == "_" || f.Name()[0] >= 'a')
			}, cmp.Ignore())
			if diff := cmp.Diff(rec, back, unexported, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s came back as:\n%s", d.Name, diff)
			}
			before, err := d.Encode(rec)
			if err != nil {
				t.Fatal(err)
			}
			if after, err := d.Encode(back); err != nil || string(after) != string(before) {
				t.Errorf("%s: %s came back as %s (%v)", d.Name, before, after, err)
			}
		}
	}
}

// fill puts something into every field, everywhere something else.
func fill(v reflect.Value, n *int) {
	*n++
	switch is := v.Addr().Interface().(type) {
	case *time.Time:
		*is = time.Unix(int64(*n)*1000, 0).UTC()
		return
	case *kind.Moment:
		*is = kind.MomentOf(time.Unix(int64(*n)*1000, 0))
		return
	case *kind.Tags:
		*is = kind.Tags{"a": fmt.Sprint(*n), "b": true, "c": nil}
		return
	case *jsontext.Value:
		*is = jsontext.Value(fmt.Sprintf(`{"member%d":%d}`, *n, *n))
		return
	case *terse.Text:
		*is = terse.Of(fmt.Appendf(nil, "text %d", *n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f, n)
			}
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf(fmt.Sprint("any ", *n)))
	default:
		panic(v.Type().String())
	}
}
