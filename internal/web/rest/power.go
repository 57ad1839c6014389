package rest

import (
	"iter"
	"slices"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Extent is the records that a caller may do something to.
type Extent interface {
	// Whole reports whether it is all of them, and None whether there is none.
	Whole() bool
	None() bool
	Has(d *kind.Def, rec kind.Record) bool
}

// AnyPower is the Need of operations that ask themselves for what they need, of
// those alone who have any power.
const AnyPower = "*"

// The verbs of operations on records, as powers call them.
var powerVerbs = map[kind.Verbs]string{
	kind.Lists: "read", kind.Gets: "read", kind.Creates: "create", kind.Replaces: "update", kind.Patches: "update", kind.Deletes: "delete",
}

// needFor is the power that it takes to do something to records of a kind.
func needFor(d *kind.Def, verb kind.Verbs) string { return d.Name + ":" + powerVerbs[verb] }

// place finds out which record an operation is about.
func (a *API) place(o *operation) {
	what, _, _ := strings.Cut(o.Need, ":")
	for _, d := range a.State.Kinds().Defs {
		if d.Name == what && d.Lane != kind.Volatile && d.Lane != kind.Log && strings.HasPrefix(o.Path, "/"+d.Path+"/{id}") {
			o.of, o.some = d, true
		}
	}
}

// now is the state by which the caller is judged.
func (c *Call) now() *state.Snapshot {
	if c.present == nil { // a stream keeps none
		return c.Latest()
	}
	return c.present
}

// permitted reports whether the caller may call the operation at all.
func (c *Call) permitted() bool {
	if c.Caller == nil {
		return false
	}
	if c.op.Auth != Admin {
		return c.Caller.Access() >= c.op.Auth
	}
	over := c.Caller.Over(c.now(), c.op.Need)
	return c.Caller.Access() >= Full && !over.None() && (over.Whole() || c.op.some)
}

// missing says which power the operation needs, to somebody who has shown who they are:
// another login would not help. It says the same whatever the operation is about.
func (c *Call) missing() string {
	switch {
	case c.Caller == nil || c.op.Auth != Admin || c.Caller.Access() < Full:
		return ""
	case c.op.Need == AnyPower:
		return "this is for those who have an admin role"
	}
	if !c.Caller.Over(c.now(), c.op.Need).None() {
		return "this needs the power " + c.op.Need + " over all records, and your admin roles have it over some"
	}
	return lacking(c.op.Need)
}

// lacking says that somebody has a power over nothing at all.
func lacking(need string) string {
	return "this needs the power " + need + ", and none of your admin roles has it"
}

// reach refuses a record that the caller may do nothing to, as if it were not
// there.
func (c *Call) reach() error {
	if c.op.of == nil || c.op.Auth != Admin {
		return nil
	}
	over := c.Caller.Over(c.now(), c.op.Need)
	if over.Whole() {
		return nil
	}
	id := c.Param("id")
	if rec, ok := c.Snap.Lookup(c.op.of, id); !ok || !over.Has(c.op.of, rec) {
		return fault.NotFound(c.op.of.Name, id)
	}
	return nil
}

// over returns the records of a kind that the caller may do something to. What is
// not for those with power alone is for its callers as it is.
func (c *Call) over(d *kind.Def, verb kind.Verbs) Extent {
	if c.op.Auth != Admin {
		return everyRecord{}
	}
	return c.Caller.Over(c.now(), needFor(d, verb))
}

// readable finds the records of each kind that the caller may read, once for all that a
// request has of it.
func (c *Call) readable() func(d *kind.Def) Extent {
	found := map[*kind.Def]Extent{}
	return func(d *kind.Def) Extent {
		over, known := found[d]
		if !known {
			over = c.Reads(d)
			found[d] = over
		}
		return over
	}
}

// everyRecord is all of them.
type everyRecord struct{}

func (everyRecord) Whole() bool                     { return true }
func (everyRecord) None() bool                      { return false }
func (everyRecord) Has(*kind.Def, kind.Record) bool { return true }

// Reads returns the records of a kind that the caller may read.
func (c *Call) Reads(d *kind.Def) Extent { return c.over(d, kind.Lists) }

// Readable yields those of some records of a kind that the caller may read.
func (c *Call) Readable(d *kind.Def, recs iter.Seq[kind.Record]) iter.Seq[kind.Record] {
	over := c.Reads(d)
	if over.Whole() {
		return recs
	}
	return func(yield func(kind.Record) bool) {
		for rec := range recs {
			if over.Has(d, rec) && !yield(rec) {
				return
			}
		}
	}
}

// isSealed reports whether a member is a secret that its owner may read again.
func isSealed(d *kind.Def, member string) bool {
	f := d.Field(member)
	return f != nil && f.Sealed && !f.Secret
}

// May reports whether the caller may do something to the whole network.
func (c *Call) May(need string) bool { return c.Caller.Over(c.now(), need).Whole() }

// Reveals reports whether the caller may see the secrets of a record, given the power
// that it takes.
func (c *Call) Reveals(need string, d *kind.Def, rec kind.Record) bool {
	return c.op.Auth != Admin || c.Caller.Over(c.now(), need).Has(d, rec)
}

// revealsAll reports whether the caller may see all secrets of a kind, which is so if
// it has none.
func (c *Call) revealsAll(d *kind.Def) bool {
	if c.op.Auth != Admin || !slices.ContainsFunc(d.Fields, func(f *kind.Field) bool { return f.Sealed && !f.Secret }) {
		return true
	}
	return c.Caller.Over(c.now(), d.Name+":reveal").Whole()
}
