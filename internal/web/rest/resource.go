package rest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
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
	// Without are members of the kind that are neither shown nor taken here. Filters
	// must not know them either.
	Without []string
	// From is where the records are read if they are of a volatile kind; others
	// are in the snapshot.
	From kind.Reader
	// Log is where the records are read if they are entries of a log, which are
	// in the store alone.
	Log Log
	// Docs say what operations do that a kind's path and verb do not tell.
	Docs map[kind.Verbs]string

	// Path is where the resource is; the kind's path if empty.
	Path string
	// Lists may be narrowed to what a caller may see or further parameters
	// select: Narrow returns the records that remain.
	Narrow func(c *Call) (Selection, error)
	Params []Parameter
	Joins  Joins
	Asked  Asked
	// Prepare does what a create needs beyond the record, which gets this id,
	// such as making keys. It runs before the write and must leave no trace:
	// there may never be one. What it returns runs in the write.
	Prepare func(c *Call, body kind.Body, id string) (Prepared, error)
	// Announce, if set, is told of every record that was created.
	Announce func(rec kind.Record)
	// Identify, if set, gives a new record the id that follows from what it
	// holds. To create what is there already is to change it.
	Identify func(r kind.Reader, rec kind.Record) error
	// Inputs are members of a create's body that are not fields of the kind.
	Inputs []*kind.Field
	// Refuse says why a record cannot be replaced or patched here.
	Refuse func(rec kind.Record) error
	// Phrasing, if not nil, is how clients of this API write the records.
	Phrasing *Phrasing
}

// Log finds entries of a log.
type Log interface {
	// Query returns a page of the entries that match, and how many match in all.
	Query(ctx context.Context, q *filter.Query[kind.Record], page filter.Page) ([]kind.Record, int64, error)
	Lookup(ctx context.Context, id string) (kind.Record, bool, error)
}

// Mounted is a resource on an API.
type Mounted struct {
	Resource
	View *View
}

// Operation is what the operation is called that does one thing to a record: create,
// update, patch or delete it. It is empty if there are no operations of the kind.
func (m *Mounted) Operation(verb string) string {
	if m.Noun == "" {
		return ""
	}
	return verb + upperFirst(m.Noun)
}

// Mount adds the resource's operations to the API.
func (r Resource) Mount(a *API) *Mounted {
	if r.Noun == "" {
		r.Noun = kind.Camel(r.Kind.Name)
	}
	if r.Path == "" {
		r.Path = r.Kind.Path
	}
	if r.Verbs == 0 {
		r.Verbs = r.Kind.Verbs
	}
	v := a.viewWithout(r.Noun, r.Kind, r.Without, r.Derived...)
	if r.Asked != nil {
		v.Ask(r.Asked)
	}
	if r.Joins != nil {
		v.Join(r.Joins)
	}
	m := &Mounted{r, v}
	add := func(verb kind.Verbs, method, path, op, name, doc string, status int, handle func(*Call) error, more func(*operation)) {
		if !r.Verbs.Has(verb) {
			return
		}
		if own := r.Docs[verb]; own != "" {
			doc = own
		}
		o := &operation{
			Op:     Op{Method: method, Path: path, Name: op + upperFirst(name), Tag: r.Path, Doc: doc, Auth: r.Auth},
			handle: handle, status: status, data: done, some: r.From == nil && r.Log == nil,
		}
		if r.Auth == Admin {
			o.Need = needFor(r.Kind, verb)
		}
		if o.some && strings.HasSuffix(path, "/{id}") {
			o.of = r.Kind
		}
		if more != nil {
			more(o)
		}
		a.add(o)
	}
	var past []Parameter
	if a.Past != nil && r.Kind.Noted && r.From == nil {
		past = []Parameter{AtParam}
	}
	all, one := "/"+r.Path, "/"+r.Path+"/{id}"
	words := spoken(r.Path)
	add(kind.Lists, http.MethodGet, all, "list", kind.Camel(r.Path), "List "+words+".", 200, m.list, func(o *operation) {
		o.list, o.data, o.Params = true, kind.ListOf(v.schema), slices.Concat(recordParams, r.Params, v.params, past)
	})
	add(kind.Creates, http.MethodPost, all, "create", r.Noun, r.Kind.Doc, 201, m.create, func(o *operation) {
		o.body.json, o.data = a.schema(r.Noun+"Create", "What to create one of the "+words+" with.", r.createSchema()), kind.RefTo("createLocation")
		o.body.fields = slices.Concat(settable(r.Kind.Fields, kind.Create), r.Inputs)
	})
	add(kind.Gets, http.MethodGet, one, "detail", r.Noun, "Get one of the "+words+".", 200, m.get, func(o *operation) {
		o.data, o.Params = v.schema, slices.Concat(v.params, past)
	})
	add(kind.Replaces, http.MethodPut, one, "update", r.Noun, "Replace all fields of one of the "+words+".", 200, m.replace, func(o *operation) {
		o.body.json = a.schema(r.Noun+"Update", "What to replace one of the "+words+" with.", r.bodySchema(kind.Replace))
		o.body.fields = r.taken(kind.Replace)
	})
	add(kind.Patches, http.MethodPatch, one, "patch", r.Noun, "Change fields of one of the "+words+".", 200, m.patch, func(o *operation) {
		o.body.json = a.schema(r.Noun+"Patch", "What to change of one of the "+words+".", r.bodySchema(kind.Patch))
		o.body.fields = r.taken(kind.Patch)
	})
	add(kind.Deletes, http.MethodDelete, one, "delete", r.Noun, "Delete one of the "+words+".", 200, m.delete, nil)
	return m
}

// createSchema is the kind's own with the further inputs.
func (r Resource) createSchema() kind.Schema {
	s := r.Kind.BodySchema(kind.Create)
	props := s["properties"].(kind.Schema)
	for name, input := range kind.Properties(r.Inputs) {
		props[name] = input
	}
	r.Phrasing.describe(r.Kind, kind.Create, s)
	return s
}

// bodySchema is what bodies of a shape may hold here.
func (r Resource) bodySchema(shape kind.Shape) kind.Schema {
	s := r.Kind.BodySchema(shape)
	if props, ok := s["properties"].(kind.Schema); ok {
		for _, name := range r.Without {
			delete(props, name)
		}
	}
	r.Phrasing.describe(r.Kind, shape, s)
	return s
}

// taken are the fields that bodies of a shape may set here.
func (r Resource) taken(shape kind.Shape) []*kind.Field {
	fields := slices.DeleteFunc(settable(r.Kind.Fields, shape), func(f *kind.Field) bool { return slices.Contains(r.Without, f.Name) })
	if r.Phrasing != nil {
		fields = append(fields, r.Phrasing.Edits...)
	}
	return fields
}

// settable are the fields that bodies of a shape may set.
func settable(fields []*kind.Field, shape kind.Shape) []*kind.Field {
	return slices.DeleteFunc(slices.Clone(fields), func(f *kind.Field) bool { return !f.Taken(shape) })
}

// spoken writes a path as one would say it.
func spoken(path string) string { return strings.NewReplacer("-", " ", "/", " ").Replace(path) }

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (m *Mounted) list(c *Call) error {
	q, page, err := Query(c, m.View.symbolsIn(c))
	if err != nil {
		return err
	}
	if m.Narrow != nil {
		among, err := m.Narrow(c)
		if err != nil {
			return err
		}
		if among.Records != nil {
			among = m.readable(c, among)
			recs, total := q.Select(filter.Rows[kind.Record]{Seq: among.Records, ByID: true, Count: among.Len}, page)
			return m.View.page(c, page, recs, total)
		}
	}
	if m.Log == nil && m.From == nil && !c.over(m.Kind, kind.Lists).Whole() {
		recs, total := q.Select(filter.Rows[kind.Record]{Seq: c.Readable(m.Kind, c.Snap.All(m.Kind)), ByID: true}, page)
		return m.View.page(c, page, recs, total)
	}
	if m.Log != nil {
		recs, total, err := m.Log.Query(c.Context(), q, page)
		if err != nil {
			return err
		}
		return m.View.page(c, page, recs, total)
	}
	if m.From != nil {
		recs, total := q.Select(filter.Rows[kind.Record]{Seq: m.From.All(m.Kind), ByID: true}, page)
		return m.View.page(c, page, recs, total)
	}
	recs, total := c.Snap.Query(m.Kind, q, page)
	return m.View.page(c, page, recs, total)
}

// readable is those of a selection that the caller may read. How many that are is only
// known without a look at each if all are.
func (m *Mounted) readable(c *Call, among Selection) Selection {
	if c.over(m.Kind, kind.Lists).Whole() {
		return among
	}
	return Selection{Records: c.Readable(m.Kind, among.Records)}
}

func (m *Mounted) get(c *Call) error {
	rec, err := m.find(c)
	if err != nil {
		return err
	}
	return m.View.detail(c, rec)
}

func (m *Mounted) find(c *Call) (kind.Record, error) {
	var from kind.Reader = c.Snap
	if m.From != nil {
		from = m.From
	}
	id := c.Param("id")
	rec, ok := from.Lookup(m.Kind, id)
	if m.Log != nil {
		var err error
		if rec, ok, err = m.Log.Lookup(c.Context(), id); err != nil {
			return nil, err
		}
	}
	if !ok {
		return nil, fault.NotFound(m.Kind.Name, id)
	}
	return rec, nil
}

func (m *Mounted) create(c *Call) error {
	body, err := c.body(false)
	if err != nil {
		return err
	}
	if _, body, err = m.phrase(kind.Creates, body); err != nil {
		return err
	}
	step, err := m.Step(c, kind.Creates, "", body)
	if err != nil {
		return err
	}
	var rec kind.Record
	err = c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) (err error) {
		rec, err = step.create(tx, body)
		return err
	})
	if err != nil {
		return err
	}
	step.Announce(rec)
	return Created{Path: m.Path, ID: rec.Base().ID}.send(c)
}

func (m *Mounted) replace(c *Call) error { return m.change(c, kind.Replaces) }
func (m *Mounted) patch(c *Call) error   { return m.change(c, kind.Patches) }

// change merges the body into the record as it is when the write runs, so
// that changes of different fields at the same time all stay.
func (m *Mounted) change(c *Call, verb kind.Verbs) error {
	body, err := c.body(false)
	if err != nil {
		return err
	}
	if verb, body, err = m.phrase(verb, body); err != nil {
		return err
	}
	adjust, err := m.adjust(c, body)
	if err != nil {
		return err
	}
	at := m.stead(c, c.Param("id"))
	if at != m {
		body.Overlook(m.View.shown...)
	}
	step, err := at.Step(c, verb, c.Param("id"), body)
	if err != nil {
		return err
	}
	body = body.Without(at.Without...)
	err = c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		return tx.Edit(at.Kind, step.target, func(rec kind.Record) error {
			if err := step.merge(tx, rec, body); err != nil {
				return err
			}
			return adjust(rec)
		})
	})
	if err != nil {
		return err
	}
	return Empty{}.send(c)
}

func (m *Mounted) delete(c *Call) error {
	rec, err := m.find(c)
	if err != nil {
		return err
	}
	if err := removable(rec); err != nil {
		return err
	}
	if err := c.State.Delete(c.Context(), c.Author(), m.Kind, rec.Base().ID); err != nil {
		return err
	}
	return Empty{}.send(c)
}
