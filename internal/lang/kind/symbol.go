package kind

import (
	"reflect"
	"time"

	"netkeep.internal/internal/lang/filter"
)

// symbols are the names under which queries may use the field: its own, the
// one that answers give it and the aliases that clients know.
func (f *Field) symbols() []filter.Symbol[Record] {
	if f.Secret || f.NoFilter {
		return nil
	}
	s, ok := f.symbol()
	if !ok {
		return nil
	}
	if f.Unique || f.Indexed || f.Ref != "" && !s.Set || f.Attributes || f.Name == "id" {
		s.Index = f.Name
	}
	if f.Numbered {
		s.Numbers = f.Enum
	}
	names := append([]string{f.Name}, f.Aliases...)
	if f.Out != "" {
		names = append(names, f.prefix+f.Out)
	}
	all := make([]filter.Symbol[Record], len(names))
	for i, name := range names {
		s.Name = name
		all[i] = s
	}
	return all
}

func (f *Field) symbol() (s filter.Symbol[Record], ok bool) {
	switch f.Form {
	case Text:
		return f.scalar(filter.String, func(v reflect.Value) filter.Value { return f.textValue(textIn(v), "") }), true
	case JSON:
		return f.scalar(filter.String, func(v reflect.Value) filter.Value { return f.textValue(string(v.Bytes()), "{}") }), true
	case Bool:
		return f.scalar(filter.Bool, func(v reflect.Value) filter.Value { return filter.BoolValue(v.Bool()) }), true
	case Int:
		return f.scalar(filter.Int, func(v reflect.Value) filter.Value { return filter.IntValue(v.Int()) }), true
	case Time:
		s = f.scalar(filter.Time, shownTime)
		s.Fine = f.scalar(filter.Time, exactTime).One
		return s, true
	case Texts:
		return filter.Symbol[Record]{Type: filter.String, Set: true, Many: func(rec Record, yield func(filter.Value) bool) {
			for _, s := range f.texts(rec) {
				if !yield(filter.StringValue(s)) {
					return
				}
			}
		}}, true
	case Marks:
		return filter.Symbol[Record]{Type: filter.Map, Key: func(rec Record, key string) filter.Value {
			v := f.in(rec)
			if !v.IsValid() {
				return filter.Value{}
			}
			return filter.AnyValue((*at[Tags](v))[key])
		}}, true
	}
	return s, false
}

// scalar is a symbol with one value, absent where the record's variant does
// not have the field or a struct on the way to it is unset.
func (f *Field) scalar(typ filter.Type, get func(reflect.Value) filter.Value) filter.Symbol[Record] {
	return filter.Symbol[Record]{Type: typ, One: func(rec Record) filter.Value {
		top := reflect.ValueOf(rec).Elem()
		v := f.value(top)
		if !v.IsValid() || !f.applies(top) {
			return filter.Value{}
		}
		return get(v)
	}}
}

// textValue is absent for an empty text that answers do not show; where they
// do, it is what they show.
func (f *Field) textValue(s, empty string) filter.Value {
	switch {
	case s != "":
		return filter.StringValue(s)
	case f.Nullable || f.Omit:
		return filter.Value{}
	}
	return filter.StringValue(empty)
}

// shownTime is a time as answers show it: a client that asks for what it saw
// must find it.
func shownTime(v reflect.Value) filter.Value {
	exact := exactTime(v)
	if exact.Type() != filter.Time {
		return exact
	}
	return filter.TimeValue(exact.Time().Truncate(time.Millisecond))
}

// exactTime is absent for a time that is not set.
func exactTime(v reflect.Value) filter.Value {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return filter.Value{}
		}
		v = v.Elem()
	}
	t := timeIn(v)
	if t.IsZero() {
		return filter.Value{}
	}
	return filter.TimeValue(t)
}
