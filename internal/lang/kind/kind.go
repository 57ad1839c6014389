// Package kind turns a Go struct with tags into everything that follows from
// it: request bodies and their limits, storage, indexes, unique and reference
// rules, filter symbols, answers and schemas. It owns the tag vocabulary. It
// knows no particular kind and must not import state or model.
package kind

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/filter"
)

// Meta is what every record has. Kinds embed it.
type Meta struct {
	ID        string `json:"id" kind:"server" doc:"Identifies the record among those of its kind; the controller makes it, and it never changes."`
	CreatedAt Moment `json:"createdAt" kind:"server" doc:"When the record was created."`
	UpdatedAt Moment `json:"updatedAt" kind:"server" doc:"When the record was last changed; that of a new one is its createdAt."`
	Tags      Tags   `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null; the controller gives them no meaning."`
	System    bool   `json:"isSystem" kind:"server,hidden" doc:"Whether the controller keeps the record for itself, so that nobody can change or delete it."`

	// Unknown keeps members written by a newer controller, so that an older
	// one in the same cluster does not drop them. It sees those of the record
	// alone: a nested struct that may grow declares the same field. It is nil where there
	// are none.
	Unknown *jsontext.Value `json:",embed"`
}

// Base returns the shared part of a record.
func (m *Meta) Base() *Meta { return m }

// Record is a pointer to a struct that embeds Meta. Records handed out by a
// Reader are shared: never write to them.
type Record interface{ Base() *Meta }

// Tags are a user's own marks on a record: null, text or boolean values.
type Tags map[string]any

// Lane says how records of a kind are written.
type Lane uint8

const (
	// Model records are written one batch after another, every rule checked.
	Model Lane = iota
	// Session records are frequent and independent of each other.
	Session
	// Log records are entries: added with what they belong to, never changed,
	// and forgotten by their age. They are not in memory.
	Log
	// Volatile records are in no store: a Source holds them, and they are gone
	// after a restart. What becomes of one whose target is deleted is up to it.
	Volatile
)

// Reader finds records at one revision. Snapshots and writes in progress
// are Readers.
type Reader interface {
	Lookup(d *Def, id string) (Record, bool)
	// Select yields the records that an index files under key, by id.
	Select(d *Def, index, key string) iter.Seq[Record]
	All(d *Def) iter.Seq[Record]
	Len(d *Def) int
}

// Writer changes records as part of one write.
type Writer interface {
	Reader
	Now() time.Time
	NewID() string
	Create(d *Def, rec Record) error
	Edit(d *Def, id string, change func(Record) error) error
	Delete(d *Def, id string) error
}

// Spec declares a kind. What tags on the struct cannot say, its methods do,
// each of them optional:
//
//	Fill()                              sets fields that follow from others
//	Check(r Reader, old *T) error       holds further rules; old is nil on create
//	Guard(r Reader) error               may refuse a delete
//	Saved(w Writer, old *T) error       writes what must change with the record
//	Deleted(w Writer) error             writes what must change when it goes
//	Whole(r Reader, old *T) error       holds rules of a write as a whole, at its end; old is as before it
//	Ranked() (group, place string)      says where it comes in the kind's own order
type Spec[T any] struct {
	Name  string // singular, with dashes: "config-type"
	Path  string // collection in URLs: "config-types"
	Doc   string
	Lane  Lane
	Links []string // sub collections that answers link to
	// Verbs are what admins may do with the records, by whatever operations.
	Verbs Verbs
	// InFiles says that the records are what people decide, and so what they
	// may keep in files; others come from the network being used.
	InFiles bool
	// Unnoted says that nobody asks who changed a record of the model, and when:
	// the program keeps it for itself.
	Unnoted bool
	// Columns are the members of answers that a table shows.
	Columns []string
}

// Kind is a declared kind with typed access to its records.
type Kind[T any] struct{ *Def }

// Def is a declared kind without its type.
type Def struct {
	Name  string
	Path  string
	Doc   string
	Lane  Lane
	Links []string
	Verbs Verbs
	// InFiles says that people may keep the records in files.
	InFiles bool
	// Noted says that every change of a record leaves an entry.
	Noted bool
	// Columns are the members of answers that a table shows.
	Columns []string
	Fields  []*Field // Meta's first, then in the order of the struct

	Indexes    []*Index
	Attributes *Field // the role attributes, if the kind has any
	Symbols    *filter.Schema[Record]

	label  *Field   // what people call a record; usually its name
	naming []*Field // those that hold ids of other records
	typ    reflect.Type
	layout *layout
	apart  []apart
	hooks  hooks

	packing func() packing
}

// Define reads the struct's tags. It panics on a mistake in them: a kind is
// declared at start or not at all.
func Define[T any, P interface {
	*T
	Record
}](s Spec[T]) *Kind[T] {
	d := &Def{
		Name: s.Name, Path: s.Path, Doc: s.Doc, Lane: s.Lane, Links: s.Links,
		Verbs: s.Verbs, InFiles: s.InFiles, Columns: s.Columns, typ: reflect.TypeFor[T](),
		Noted: s.Lane == Model && !s.Unnoted,
	}
	if d.Name == "" || strings.Contains(d.Name, "/") {
		panic(fmt.Sprintf("kind: %q is no name for the kind of %s", d.Name, d.typ))
	}
	d.hooks = hooksOf[T]()
	d.Fields = readFields(d.typ, "")
	d.layout = newLayout(d.typ, d.Fields)
	d.finish()
	d.apart = d.keptApart()
	d.packing = sync.OnceValue(d.newPacking)
	d.checkVolatile()
	return &Kind[T]{d}
}

// finish derives what follows from the fields.
func (d *Def) finish() {
	var symbols []filter.Symbol[Record]
	for _, f := range leaves(d.Fields, nil) {
		d.checkPlace(f)
		if f.Name == "name" && f.Form == Text && !f.Secret && !f.Hidden {
			d.label = f
		}
		if f.Attributes {
			d.Attributes = f
		}
		if f.Targets() != nil {
			d.naming = append(d.naming, f)
		}
		if ix := newIndex(f); ix != nil {
			d.Indexes = append(d.Indexes, ix)
		}
		symbols = append(symbols, f.symbols()...)
	}
	d.Symbols = filter.NewSchema(symbols...)
}

// checkPlace panics if the field has a word that nobody follows where it is.
func (d *Def) checkPlace(f *Field) {
	refuseRules(d.typ, f.Members)
	switch {
	case f.As != "" && f.prefix != "":
		misdeclared(d.typ, f.Name, "a link object needs a field of the record itself")
	case f.Attributes && d.Attributes != nil:
		misdeclared(d.typ, f.Name, "a kind has one list of attributes, and this one has %s", d.Attributes.Name)
	}
}

// New returns a record that has nothing but its defaults.
func (d *Def) New() Record {
	rec := d.made()
	d.layout.initialise(rec.Elem(), nil)
	return rec.Interface().(Record)
}

// Clone returns a deep copy that may be written to.
func (d *Def) Clone(rec Record) Record {
	c := reflect.New(d.typ)
	c.Elem().Set(reflect.ValueOf(rec).Elem())
	detach(c.Elem())
	d.own(c.Elem())
	return c.Interface().(Record)
}

// Label returns what people call the record.
func (d *Def) Label(rec Record) string {
	if d.label == nil {
		return rec.Base().ID
	}
	return d.label.text(rec)
}

// New returns a record that has nothing but its defaults. Whoever makes one
// without a body starts here.
func (k *Kind[T]) New() *T { return any(k.Def.New()).(*T) }

// Get returns the record with an id.
func (k *Kind[T]) Get(r Reader, id string) (*T, bool) {
	rec, ok := r.Lookup(k.Def, id)
	if !ok {
		return nil, false
	}
	return any(rec).(*T), true
}

// Find returns the first record that an index files under key.
func (k *Kind[T]) Find(r Reader, index, key string) (*T, bool) {
	for rec := range k.Select(r, index, key) {
		return rec, true
	}
	return nil, false
}

// Select yields the records that an index files under key.
func (k *Kind[T]) Select(r Reader, index, key string) iter.Seq[*T] {
	return typedSeq[T](r.Select(k.Def, index, key))
}

// All yields every record, by id.
func (k *Kind[T]) All(r Reader) iter.Seq[*T] { return typedSeq[T](r.All(k.Def)) }

// Create adds a record. An empty ID is filled in.
func (k *Kind[T]) Create(w Writer, rec *T) error { return w.Create(k.Def, any(rec).(Record)) }

// Edit changes a copy of the record with an id.
func (k *Kind[T]) Edit(w Writer, id string, change func(*T) error) error {
	return w.Edit(k.Def, id, func(rec Record) error { return change(any(rec).(*T)) })
}

// Upsert changes the record with an id, and creates it if there is none.
func (k *Kind[T]) Upsert(w Writer, id string, change func(*T)) error {
	if _, there := k.Get(w, id); there {
		return k.Edit(w, id, func(rec *T) error {
			change(rec)
			return nil
		})
	}
	rec := k.New()
	any(rec).(Record).Base().ID = id
	change(rec)
	return k.Create(w, rec)
}

// Delete removes the record with an id and what depends on it.
func (k *Kind[T]) Delete(w Writer, id string) error { return w.Delete(k.Def, id) }

func typedSeq[T any](seq iter.Seq[Record]) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for rec := range seq {
			if !yield(any(rec).(*T)) {
				return
			}
		}
	}
}
