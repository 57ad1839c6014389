package kind

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/pack"
)

// A record can be packed, for files that the same build of the program reads again: it is
// read in a quarter of the time that its stored form takes. What that has under a seal is
// under one here too.

// packing is how records of a kind are packed.
type packing struct {
	*pack.Codec
	sealed []*Field
}

func (d *Def) newPacking() packing {
	p := packing{Codec: pack.Of(d.typ)}
	for _, f := range leaves(d.Fields, nil) {
		if f.Sealed {
			p.sealed = append(p.sealed, f)
		}
	}
	return p
}

// Shape is a text that is another one for a kind whose packed records mean something else.
func (d *Def) Shape() string { return d.Name + " " + d.packing().Shape() }

// Pack packs a record that is kept.
func (d *Def) Pack(w *pack.Writer, rec Record, s Sealer) {
	p := d.packing()
	v := reflect.ValueOf(rec).Elem()
	under := p.closed(d, v, s)
	closed := false
	for _, text := range under {
		w.Data(text)
		closed = closed || text != nil
	}
	p.Put(w, p.bare(d, v, closed))
}

// bare is a record without what is under seals, if anything is, and without structs that it
// has in common with others.
func (p packing) bare(d *Def, v reflect.Value, closed bool) reflect.Value {
	if !closed && len(d.apart) == 0 {
		return v
	}
	c := reflect.New(d.typ).Elem() // of which nobody else sees what is left out
	c.Set(v)
	if closed {
		detach(c)
		for _, f := range p.sealed {
			if is := f.value(c); is.IsValid() {
				is.SetZero()
			}
		}
	}
	for _, a := range d.apart {
		if v.Field(a.at).Pointer() == a.common.Pointer() {
			c.Field(a.at).SetZero()
		}
	}
	return c
}

// closed is what the fields hold that are sealed, under their seals, none where they are empty.
func (p packing) closed(d *Def, v reflect.Value, s Sealer) (under [][]byte) {
	for _, f := range p.sealed {
		var text []byte
		if is := f.value(v); is.IsValid() && !f.empty(is) {
			w := writers.Get().(*writer)
			w.dst, w.err, w.own, w.sealer = w.dst[:0], nil, false, nil
			w.value(f, is)
			if text = bytes.Clone(w.dst); s != nil {
				text = s.Seal(d.place(v.Addr().Interface().(Record).Base().ID)+f.Name, text)
			}
			writers.Put(w)
		}
		under = append(under, text)
	}
	return under
}

// Unpack reads a record that was packed.
func (d *Def) Unpack(r *pack.Reader, s Sealer) (Record, error) {
	p := d.packing()
	under := make([][]byte, len(p.sealed))
	for i := range under {
		under[i] = r.Data()
	}
	v := reflect.New(d.typ)
	p.Take(r, v.Elem())
	if r.Err() != nil {
		return nil, fmt.Errorf("unpack %s: %w", d.Name, r.Err())
	}
	for _, a := range d.apart {
		if f := v.Elem().Field(a.at); f.IsNil() {
			f.Set(a.common)
		}
	}
	rec := v.Interface().(Record)
	for i, f := range p.sealed {
		if len(under[i]) == 0 {
			continue
		}
		if err := p.opened(d, f, v.Elem(), under[i], s); err != nil {
			return nil, fmt.Errorf("unpack %s: %s: %w", d.Name, f.Name, err)
		}
	}
	return rec, nil
}

// opened reads a field that was under a seal.
func (p packing) opened(d *Def, f *Field, v reflect.Value, text []byte, s Sealer) error {
	if s != nil {
		plain, err := s.Open(d.place(v.Addr().Interface().(Record).Base().ID)+f.Name, text)
		if err != nil {
			return errUnopened
		}
		text = plain
	}
	inner := readers.Get().(*reader)
	defer readers.Put(inner)
	defer inner.Reset(nothing{})
	inner.Reset(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
	if err := inner.value(f, f.value(v)); err != nil {
		return err
	}
	return inner.end()
}
