package rest

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/filter"
	"netkeep/internal/lang/kind"
)

// Resource offers a kind's records as list, create, get, replace, patch and
// delete.
type Resource struct {
	Kind *kind.Def
	// Noun names the schemas and operations: "configType". It follows from the
	// kind's name unless given.
	Noun string
	Auth Access
	// Verbs are what is offered here; the kind's if 0.
	Verbs   kind.Verbs
	Derived []Derived

	// Path is where the resource is; the kind's path if empty.
	Path string
	// Lists may be narrowed to what a caller may see or further parameters
	// select: Narrow returns the records that remain.
	Narrow func(c *Call) (Selection, error)
	Params []Parameter
	Joins  Joins
	// Prepare does what a create needs beyond the record, such as making
	// keys. It runs before the write; what it returns runs in it.
	Prepare func(c *Call, body kind.Body, rec kind.Record) (also func(tx *state.Tx) error, err error)
	// Inputs are members of a create's body that are not fields.
	Inputs kind.Schema
	// Refuse says why a record cannot be replaced or patched here.
	Refuse func(rec kind.Record) error
}

// Mount adds the resource's operations to the API and returns how it shows
// records.
func (r Resource) Mount(a *API) *View {
	if r.Noun == "" {
		r.Noun = kind.Camel(r.Kind.Name)
	}
	if r.Path == "" {
		r.Path = r.Kind.Path
	}
	if r.Verbs == 0 {
		r.Verbs = r.Kind.Verbs
	}
	v := a.View(r.Noun, r.Kind, r.Derived...)
	if r.Joins != nil {
		v.Join(r.Joins)
	}
	m := mount{r, a, v}
	add := func(verb kind.Verbs, method, path, op, name, doc string, status int, handle func(*Call) error, more func(*operation)) {
		if !r.Verbs.Has(verb) {
			return
		}
		o := &operation{
			Op:     Op{Method: method, Path: path, Name: op + upperFirst(name), Tag: r.Path, Doc: doc, Auth: r.Auth},
			handle: handle, status: status, data: done,
		}
		if more != nil {
			more(o)
		}
		a.add(o)
	}
	all, one := "/"+r.Path, "/"+r.Path+"/{id}"
	words := spoken(r.Path)
	add(kind.Lists, http.MethodGet, all, "list", kind.Camel(r.Path), "List "+words+".", 200, m.list, func(o *operation) {
		o.list, o.data, o.Params = true, kind.ListOf(v.schema), slices.Concat(recordParams, r.Params, v.params)
	})
	add(kind.Creates, http.MethodPost, all, "create", r.Noun, r.Kind.Doc, 201, m.create, func(o *operation) {
		o.body.json, o.data = a.schema(r.Noun+"Create", "What to create one of the "+words+" with.", r.createSchema()), kind.RefTo("createLocation")
	})
	add(kind.Gets, http.MethodGet, one, "detail", r.Noun, "Get one of the "+words+".", 200, m.get, func(o *operation) {
		o.data, o.Params = v.schema, v.params
	})
	add(kind.Replaces, http.MethodPut, one, "update", r.Noun, "Replace all fields of one of the "+words+".", 200, m.replace, func(o *operation) {
		o.body.json = a.schema(r.Noun+"Update", "What to replace one of the "+words+" with.", r.Kind.BodySchema(kind.Replace))
	})
	add(kind.Patches, http.MethodPatch, one, "patch", r.Noun, "Change fields of one of the "+words+".", 200, m.patch, func(o *operation) {
		o.body.json = a.schema(r.Noun+"Patch", "What to change of one of the "+words+".", r.Kind.BodySchema(kind.Patch))
	})
	add(kind.Deletes, http.MethodDelete, one, "delete", r.Noun, "Delete one of the "+words+".", 200, m.delete, nil)
	return v
}

// createSchema is the kind's own with the further inputs.
func (r Resource) createSchema() kind.Schema {
	s := r.Kind.BodySchema(kind.Create)
	props := s["properties"].(kind.Schema)
	for name, input := range r.Inputs {
		props[name] = input
	}
	return s
}

// spoken writes a path as one would say it.
func spoken(path string) string { return strings.NewReplacer("-", " ", "/", " ").Replace(path) }

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// mount is a resource on an API.
type mount struct {
	Resource
	api  *API
	view *View
}

func (m mount) list(c *Call) error {
	q, page, err := Query(c, m.view.symbolsIn(c.Snap))
	if err != nil {
		return err
	}
	if m.Narrow != nil {
		among, err := m.Narrow(c)
		if err != nil {
			return err
		}
		if among.Records != nil {
			recs, total := q.Select(filter.Rows[kind.Record]{Seq: among.Records, Ordered: len(q.Sort()) == 0, Count: among.Len}, page)
			return m.view.page(c, page, recs, total)
		}
	}
	recs, total := c.Snap.Query(m.Kind, q, page)
	return m.view.page(c, page, recs, total)
}

func (m mount) get(c *Call) error {
	rec, err := m.find(c)
	if err != nil {
		return err
	}
	return m.view.detail(c, rec)
}

func (m mount) find(c *Call) (kind.Record, error) {
	id := c.Param("id")
	rec, ok := c.Snap.Lookup(m.Kind, id)
	if !ok {
		return nil, fault.NotFound(m.Kind.Name, id)
	}
	return rec, nil
}

func (m mount) create(c *Call) error {
	body, err := c.body(false)
	if err != nil {
		return err
	}
	body.Overlook(m.view.shown...)
	body.Overlook(slices.Collect(maps.Keys(m.Inputs))...) // which Prepare reads
	rec := m.Kind.New()
	if err := m.Kind.Apply(kind.Create, rec, body); err != nil {
		return err
	}
	also := func(*state.Tx) error { return nil }
	if m.Prepare != nil {
		// What is prepared may carry the id, so it is made now.
		rec.Base().ID = state.NewID()
		if also, err = m.Prepare(c, body, rec); err != nil {
			return err
		}
	}
	var id string
	err = c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		fresh := m.Kind.Clone(rec) // the closure may run again
		if err := tx.Create(m.Kind, fresh); err != nil {
			return err
		}
		id = fresh.Base().ID
		return also(tx)
	})
	if err != nil {
		return err
	}
	return Created{Path: m.Path, ID: id}.send(c)
}

func (m mount) replace(c *Call) error { return m.change(c, kind.Replace) }
func (m mount) patch(c *Call) error   { return m.change(c, kind.Patch) }

// change merges the body into the record as it is when the write runs, so
// that changes of different fields at the same time all stay.
func (m mount) change(c *Call, shape kind.Shape) error {
	body, err := c.body(false)
	if err != nil {
		return err
	}
	body.Overlook(m.view.shown...)
	err = c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		return tx.Edit(m.Kind, c.Param("id"), func(rec kind.Record) error {
			if rec.Base().System {
				return fault.New(fault.CodeUnchangeable, "the system keeps this record; it cannot be changed")
			}
			if m.Refuse != nil {
				if err := m.Refuse(rec); err != nil {
					return err
				}
			}
			return m.Kind.Apply(shape, rec, body)
		})
	})
	if err != nil {
		return err
	}
	return Empty{}.send(c)
}

func (m mount) delete(c *Call) error {
	rec, err := m.find(c)
	if err != nil {
		return err
	}
	if rec.Base().System {
		return fault.New(fault.CodeUndeletable, "the system keeps this record; it cannot be deleted")
	}
	if err := c.State.Delete(c.Context(), c.Author(), m.Kind, rec.Base().ID); err != nil {
		return err
	}
	return Empty{}.send(c)
}
