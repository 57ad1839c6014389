package rest

import (
	"net/http"
	"strconv"

	"netkeep.internal/internal/lang/kind"
)

// answer is what a handler may return besides a plain struct.
type answer interface {
	describe(o *operation)
	send(c *Call) error
}

// Empty answers with an empty object.
type Empty struct{}

func (Empty) describe(o *operation) { o.data = done }

// done describes an answer that has nothing to add.
var done = kind.Schema{"type": "object", "description": "Empty: it is done, and there is no more to say."}

func (Empty) send(c *Call) error {
	return c.send(c.op.status, func(dst []byte) []byte { return append(dst, "{}"...) })
}

// Counted answers with an object that tells of several things, and how many
// they are.
type Counted[T any] struct {
	Data  T
	Total int
}

func (Counted[T]) describe(o *operation) {
	o.data = says("What was asked for.", kind.NewOutput[T]().Schema())
}

func (a Counted[T]) send(c *Call) error {
	return c.build(c.op.status, func(dst []byte) []byte {
		dst = kind.NewOutput[T]().Append(append(dst, `{"data":`...), &a.Data)
		dst = append(dst, `,"meta":{"pagination":{"limit":-1,"offset":0,"totalCount":`...)
		return append(strconv.AppendInt(dst, int64(a.Total), 10), `}}}`...)
	})
}

// Created answers 201 with the id and address of a new record.
type Created struct {
	Path string // collection
	ID   string
	Self string // address, if it is not the id in the collection
}

func (Created) describe(o *operation) {
	o.status = http.StatusCreated
	o.data = kind.RefTo("createLocation")
}

func (a Created) send(c *Call) error { return Located(a).send(c) }

// Located answers with the id and address of a record.
type Located Created

func (Located) describe(o *operation) { o.data = kind.RefTo("createLocation") }

func (a Located) send(c *Call) error {
	if a.Self == "" {
		a.Self = a.Path + "/" + a.ID
	}
	c.target = a.ID
	return c.send(c.op.status, func(dst []byte) []byte {
		dst = append(dst, `{"id":`...)
		dst = kind.AppendText(dst, a.ID)
		dst = append(dst, `,"_links":{"self":{"href":`...)
		dst = kind.AppendText(dst, "./"+a.Self)
		return append(dst, `}}}`...)
	})
}

// Ref is a link object to a record, for answers that are structs.
type Ref struct {
	Links  kind.Links `json:"_links" doc:"Where the record is."`
	Entity string     `json:"entity" doc:"Collection that the record is in, such as identities."`
	ID     string     `json:"id" doc:"Id of the record."`
	Name   string     `json:"name" doc:"What people call the record."`
}

// RefOf returns the link object of a record.
func RefOf(c *Call, d *kind.Def, id string) Ref {
	ref := Ref{Entity: d.Path, ID: id, Links: kind.SelfAt("./" + d.Path + "/" + id)}
	if rec, ok := c.Shown().Lookup(d, id); ok {
		ref.Name = d.Label(rec)
	}
	return ref
}

// File answers with a body of its own, without an envelope.
type File struct {
	Type string
	Body []byte
}

func (File) describe(*operation) {}

// Envelope returns the usual JSON answer as a File, for operations that answer
// in several types.
func Envelope[T any](data *T) File {
	body := kind.NewOutput[T]().Append([]byte(`{"data":`), data)
	return File{Type: jsonType, Body: append(body, `,"meta":{}}`...)}
}

func (f File) send(c *Call) error {
	c.write(http.StatusOK, f.Type, f.Body)
	return nil
}
