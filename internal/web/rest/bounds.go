package rest

import (
	"errors"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// bounds are what somebody may write, and what it may refer to.
type bounds struct {
	over  Extent                   // the records that they may do this to
	reads func(d *kind.Def) Extent // the records that they may read
	// knows reports whether they may know of a record; nil if of all there are.
	knows func(d *kind.Def, rec kind.Record) bool
	kinds *kind.Catalog
}

// bounds are those of the caller, who may do something to these records.
func (c *Call) bounds(over Extent) bounds {
	b := bounds{over: over, kinds: c.State.Kinds()}
	if c.op.Auth == Admin && c.Caller.Access() < Admin {
		b.reads = c.readable()
		b.knows = c.knowing(b.reads)
	}
	return b
}

// knowing tells which records the caller may know of: what they may read, what the system
// keeps, what says that it is common, and themselves.
func (c *Call) knowing(reads func(d *kind.Def) Extent) func(d *kind.Def, rec kind.Record) bool {
	return func(d *kind.Def, rec kind.Record) bool {
		common, ok := rec.(interface{ Common() bool })
		return rec.Base().System || ok && common.Common() || reads(d).Has(d, rec) || c.Caller.Knows(c.now(), rec)
	}
}

// Confine refuses a record that an operation is about to write by itself if it refers to
// what its caller may not read, and old does not.
func (c *Call) Confine(r kind.Reader, d *kind.Def, old, rec kind.Record) error {
	return c.bounds(everyRecord{}).confined(r, d, old, rec)
}

// Knows reports whether the caller may know of a record.
func (c *Call) Knows(d *kind.Def, rec kind.Record) bool {
	b := c.bounds(everyRecord{})
	return b.knows == nil || b.knows(d, rec)
}

// confined refuses what would lead somebody to records that they cannot read, as if those
// were not there, or to make a part of what their power is not over. Who may read none of a
// kind is told so, whatever they name.
func (b bounds) confined(r kind.Reader, d *kind.Def, old, rec kind.Record) error {
	if b.knows == nil {
		return nil
	}
	var blind *kind.Def
	err := b.kinds.Confine(r, d, old, rec, func(d *kind.Def, target kind.Record, part bool) bool {
		if b.may(d, target, part) {
			return true
		}
		if b.reads(d).None() {
			blind = d
		}
		return false
	})
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || blind == nil {
		return err
	}
	return &fault.Error{Code: fault.CodeUnauthorized, Field: e.Field, Value: e.Value, Reason: "refers to " + spoken(blind.Path) + ": " + lacking(needFor(blind, kind.Lists))}
}

// may reports whether what is written may refer to a record of a kind; nil is one that is
// not there.
func (b bounds) may(d *kind.Def, rec kind.Record, part bool) bool {
	if rec == nil {
		return !b.reads(d).None()
	}
	return b.knows(d, rec) && (!part || b.over.Has(d, rec))
}

// shown is what a request sees, without the records that its caller may not know of.
type shown struct {
	kind.Reader
	knows func(d *kind.Def, rec kind.Record) bool
}

func (s shown) Lookup(d *kind.Def, id string) (kind.Record, bool) {
	rec, ok := s.Reader.Lookup(d, id)
	if !ok || !s.knows(d, rec) {
		return nil, false
	}
	return rec, true
}

// Shown is where answers look up the names of records that they refer to: those that the
// caller may not know of are not there.
func (c *Call) Shown() kind.Reader {
	snap := c.Snap
	if snap == nil { // a stream goes on, and what it may show changes
		snap = c.Latest()
	}
	switch {
	case c.op.Auth != Admin || c.Caller.Access() == Admin:
		return snap
	case c.Snap == nil || c.present == nil:
		return shown{snap, c.knowing(c.readable())}
	case c.names == nil:
		c.names = shown{snap, c.knowing(c.readable())}
	}
	return c.names
}
