package rest

import (
	"iter"
	"net/http"
	"slices"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
)

// Derived is a member of an answer that is computed when it is asked for.
type Derived struct {
	Name     string
	Doc      string // what it is, in a sentence; that of Schema if empty
	Schema   kind.Schema
	Optional bool
	Empty    bool        // it never holds anything: who sends something in it is told
	Params   []Parameter // that it reads: operations that show it declare them
	// Append adds the member's JSON value; adding nothing leaves the member
	// out.
	Append func(dst []byte, c *Call, rec kind.Record) []byte
}

// Joins are filter symbols that look at other records.
type Joins func(r kind.Reader) []filter.Symbol[kind.Record]

// Asked are filter symbols whose values depend on the request. They are asked
// for once without any, to know their names.
type Asked func(c *Call) []filter.Symbol[kind.Record]

// View is how answers show records of a kind.
type View struct {
	kind    *kind.Def
	symbols *filter.Schema[kind.Record]
	joins   Joins
	asked   Asked
	names   []string // that filters may use
	columns []Derived
	shown   []string    // names of the columns
	empty   []string    // those of them that never hold anything
	keys    []kind.Key  // the same as they stand in JSON
	params  []Parameter // that the columns read
	schema  kind.Schema // a reference to the one in the specification
}

// View shows the kind's own fields, its links and what is derived. A derived
// member takes the place of a field with its name. The specification calls it
// by noun, as in "identityDetail".
func (a *API) View(noun string, d *kind.Def, derived ...Derived) *View {
	return a.viewWithout(noun, d, nil, derived...)
}

// viewWithout is a View without some members, which filters must not know either.
func (a *API) viewWithout(noun string, d *kind.Def, without []string, derived ...Derived) *View {
	v := &View{kind: d, symbols: d.Symbols, columns: a.columns(d, derived)}
	v.columns = slices.DeleteFunc(v.columns, func(col Derived) bool { return slices.Contains(without, col.Name) })
	return v.complete(a, noun)
}

// Join lets filters of the lists that use the view look at other records.
func (v *View) Join(joins Joins) {
	v.joins = joins
	v.names = v.symbolsIn(nil).Names()
}

// Ask lets filters of the lists that use the view name what depends on the
// request.
func (v *View) Ask(asked Asked) {
	v.asked = asked
	v.names = v.symbolsIn(nil).Names()
}

// symbolsIn is what filters may name, with values as a request sees them; none
// does where only names count.
func (v *View) symbolsIn(c *Call) *filter.Schema[kind.Record] {
	symbols := v.symbols
	if v.joins != nil {
		var r kind.Reader
		if c != nil {
			r = c.Snap
		}
		symbols = symbols.With(v.joins(r)...)
	}
	if v.asked != nil {
		symbols = symbols.With(v.asked(c)...)
	}
	if c != nil && !c.revealsAll(v.kind) { // who may not see a secret must not find it out by asking
		symbols = symbols.Among(slices.DeleteFunc(symbols.Names(), func(name string) bool { return isSealed(v.kind, name) })...)
	}
	return symbols
}

func (v *View) complete(a *API, noun string) *View {
	v.names = v.symbols.Names()
	for _, col := range v.columns {
		v.shown = append(v.shown, col.Name)
		if col.Empty {
			v.empty = append(v.empty, col.Name)
		}
		v.keys = append(v.keys, kind.NewKey(nil, col.Name))
		v.params = append(v.params, col.Params...)
	}
	v.schema = a.schema(noun+"Detail", "One of the "+spoken(v.kind.Path)+" as answers show it.", v.describe())
	return v
}

// PartialView is a View of these members alone. Filters cannot name others
// either, nor the field in whose place a derived member is: they would tell what
// is not shown.
func (a *API) PartialView(noun string, d *kind.Def, members []string, derived ...Derived) *View {
	own := slices.DeleteFunc(slices.Clone(members), func(name string) bool {
		return slices.ContainsFunc(derived, func(col Derived) bool { return col.Name == name })
	})
	v := &View{kind: d, symbols: d.Symbols.Among(own...)}
	for _, col := range a.columns(d, derived) {
		if slices.Contains(members, col.Name) {
			v.columns = append(v.columns, col)
		}
	}
	return v.complete(a, noun)
}

// columns are a kind's own fields, what is derived, and links.
func (a *API) columns(d *kind.Def, derived []Derived) []Derived {
	taken := map[string]bool{}
	for _, x := range derived {
		taken[x.Name] = true
	}
	var columns []Derived
	for _, col := range a.State.Kinds().Columns(d) {
		if taken[col.Name] {
			continue
		}
		sealed := isSealed(d, col.Name)
		saidNull := func(kind.Record) bool { return false }
		if a.Nulls && col.Null != nil {
			saidNull, col.Schema = col.Null, kind.Nullable(col.Schema)
		}
		columns = append(columns, Derived{
			Name: col.Name, Schema: col.Schema, Optional: col.Optional,
			Append: func(dst []byte, c *Call, rec kind.Record) []byte {
				if sealed && !c.Reveals(d.Name+":reveal", d, rec) {
					return append(dst, `""`...)
				}
				if saidNull(rec) {
					return append(dst, "null"...)
				}
				return col.Append(dst, c.Shown(), rec)
			},
		})
	}
	columns = append(columns, derived...)
	if !taken["_links"] {
		leads := a.State.Kinds().Leads(d)
		columns = append(columns, linksColumn(func(dst []byte, rec kind.Record) []byte { return appendLinks(dst, d, leads, rec) }))
	}
	return columns
}

// Append adds the JSON of a record.
func (v *View) Append(dst []byte, c *Call, rec kind.Record) []byte {
	dst = append(dst, '{')
	for i := range v.columns {
		dst = kind.AppendKeyed(dst, v.keys[i], func(dst []byte) []byte { return v.columns[i].Append(dst, c, rec) })
	}
	return append(dst, '}')
}

// describe is the schema of what Append adds.
func (v *View) describe() kind.Schema {
	props, required := kind.Schema{}, []string{}
	for _, col := range v.columns {
		props[col.Name] = kind.Described(col.Schema, col.Doc)
		if !col.Optional {
			required = append(required, col.Name)
		}
	}
	return kind.Schema{"type": "object", "properties": props, "required": required}
}

// Show adds an operation that answers with one record.
func Show[In any](a *API, op Op, v *View, fn func(c *Call, in In) (kind.Record, error)) {
	read, body := inputOf[In](op.BodyOptional)
	op.Params = slices.Concat(op.Params, v.params)
	a.add(&operation{Op: op, body: body, status: http.StatusOK, data: v.schema, handle: func(c *Call) error {
		in, err := read(c)
		if err != nil {
			return err
		}
		rec, err := fn(c, in)
		if err != nil {
			return err
		}
		return v.detail(c, rec)
	}})
}

// Records are some records of a kind, by id.
type Records = iter.Seq[kind.Record]

// Selection is some records of a kind, by id. The zero value stands for all of them.
type Selection struct {
	Records Records
	Len     int64 // 0 if nobody knows
}

// SelectionOf returns the records that have the ordinals of a bitmap.
func SelectionOf(c *Call, d *kind.Def, bits *cow.Bitmap) Selection {
	return Selection{c.Snap.Within(d, bits), int64(bits.GetCardinality())}
}

// ShowList adds an operation that answers with a page of records; nil is none.
func ShowList(a *API, op Op, v *View, find func(c *Call) (Records, error)) {
	op.Params = slices.Concat(recordParams, op.Params, v.params)
	a.add(&operation{Op: op, status: http.StatusOK, list: true, data: kind.ListOf(v.schema), handle: func(c *Call) error {
		q, page, err := Query(c, v.symbolsIn(c))
		if err != nil {
			return err
		}
		seq, err := find(c)
		if err != nil {
			return err
		}
		if seq == nil {
			seq = func(func(kind.Record) bool) {}
		}
		recs, total := q.Select(filter.Rows[kind.Record]{Seq: c.Readable(v.kind, seq), ByID: true}, page)
		return v.page(c, page, recs, total)
	}})
}

func (v *View) detail(c *Call, rec kind.Record) error {
	return c.send(c.op.status, func(dst []byte) []byte { return v.Append(dst, c, rec) })
}

// page answers with a page of records.
func (v *View) page(c *Call, page filter.Page, recs []kind.Record, total int64) error {
	some, err := v.only(fieldsParam.Of(c))
	if err != nil {
		return err
	}
	return List{
		Page: page, Total: total, Fields: v.names, Len: len(recs),
		Append: func(dst []byte, i int) []byte { return some.Append(dst, c, recs[i]) },
	}.send(c)
}

// only is the view with some of its members; all if none are named.
func (v *View) only(members []string) (*View, error) {
	if len(members) == 0 {
		return v, nil
	}
	some := &View{}
	for i, col := range v.columns {
		if slices.Contains(members, col.Name) {
			some.columns, some.keys = append(some.columns, col), append(some.keys, v.keys[i])
		}
	}
	for _, name := range members {
		if !slices.Contains(v.shown, name) {
			return nil, fault.Invalid("fields", "must name members of an entry; the nearest is "+spell.Nearest(name, v.shown), name)
		}
	}
	return some, nil
}
