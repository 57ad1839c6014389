package kind

import "reflect"

// detach replaces what a shallow copy in v shares with its source. v must be
// addressable.
func detach(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		p := reflect.New(v.Type().Elem())
		p.Elem().Set(v.Elem())
		detach(p.Elem())
		v.Set(p)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		s := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(s, v)
		if v.Type().Elem().Kind() == reflect.Struct {
			for i := range s.Len() {
				detach(s.Index(i))
			}
		}
		v.Set(s)
	case reflect.Map:
		if v.IsNil() {
			return
		}
		// The values of every form of map are plain.
		m := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			m.SetMapIndex(it.Key(), it.Value())
		}
		v.Set(m)
	case reflect.Struct:
		if v.Type() == timeType || v.Type() == momentType {
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				detach(f)
			}
		}
	}
}
