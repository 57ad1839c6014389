package kind

import "reflect"

// AppendOpen adds a record as answers show its own fields, without those that are
// sealed: whoever has such a value can use it, and what is told of changes is kept in
// many places. A nil record is null.
func (d *Def) AppendOpen(dst []byte, rec Record) []byte {
	if rec == nil {
		return append(dst, "null"...)
	}
	v := reflect.ValueOf(rec).Elem()
	dst = append(dst, '{')
	for _, f := range d.Fields {
		if f.Hidden || f.Secret || f.Sealed {
			continue
		}
		name := f.last
		if f.Out != "" {
			name = f.Out
		}
		dst = AppendKeyed(dst, NewKey(nil, name), func(dst []byte) []byte { return f.append(dst, v) })
	}
	return append(dst, '}')
}
