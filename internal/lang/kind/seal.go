package kind

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
)

// Sealer seals values on their way into the store, and opens them on their way
// out. A place is where a value stands, "<kind>/<id>/<field>": what was sealed
// for one place opens at no other. Equal values at one place are sealed alike,
// so that there is one text for one record.
type Sealer interface {
	// Seal returns a text that can stand in a JSON string as it is.
	Seal(place string, plain []byte) []byte
	Open(place string, sealed []byte) ([]byte, error)
}

// EncodeSealed is Encode with what tags call sealed under a seal.
func (d *Def) EncodeSealed(rec Record, s Sealer) ([]byte, error) {
	return d.encode(rec, s, false)
}

// DecodeSealed is Decode for what EncodeSealed returned of the record with an
// id. A field that should be sealed and is not cannot be read.
func (d *Def) DecodeSealed(data []byte, id string, s Sealer) (Record, error) {
	return d.decode(data, s, d.place(id))
}

// place is what the places of a record's fields begin with.
func (d *Def) place(id string) string { return d.Name + "/" + id + "/" }

// seal puts what was written since before under a seal.
func (w *writer) sealFrom(before int, name string) {
	sealed := w.sealer.Seal(w.place+name, w.dst[before:])
	w.dst = append(append(append(w.dst[:before], '"'), sealed...), '"')
}

var errUnopened = errors.New("it cannot be opened with the keys of this controller")

// sealed reads a value that is under a seal, which was stored under a name.
func (r *reader) sealed(f *Field, name string, dst reflect.Value) error {
	if r.PeekKind() != '"' {
		return r.wrong(dst.Type())
	}
	raw, err := r.ReadValue()
	if err != nil {
		return err
	}
	plain, err := r.sealer.Open(r.place+f.prefix+name, unquoted(raw))
	if err != nil {
		return fmt.Errorf("%s: %w", r.StackPointer(), errUnopened)
	}
	inner := readers.Get().(*reader)
	defer readers.Put(inner)
	defer inner.Reset(nothing{})
	inner.Reset(bytes.NewBuffer(plain), jsontext.AllowDuplicateNames(true))
	if err := inner.value(f, dst); err != nil {
		return fmt.Errorf("%s under its seal: %w", r.StackPointer(), err)
	}
	return inner.end()
}
