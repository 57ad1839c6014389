package rest

import (
	"errors"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Prepared is what a create needs beyond its body.
type Prepared struct {
	// Set, if not nil, gives the record what no body can.
	Set func(rec kind.Record)
	// Also, if not nil, writes what belongs to the record once there is one.
	Also func(tx *state.Tx, body kind.Body) error
}

// Step is one change of a record, read and prepared: what is left is to make
// it in a write. The operations of a resource make one each, a list of changes
// makes many.
type Step struct {
	of       *Mounted
	verb     kind.Verbs
	target   string // of all but creates
	body     kind.Body
	id       string // of what is created
	prepared Prepared
	bounds
}

// Step reads a change and prepares it. The verb is Creates, Replaces, Patches or
// Deletes.
func (m *Mounted) Step(c *Call, verb kind.Verbs, target string, body kind.Body) (*Step, error) {
	s := &Step{of: m, verb: verb, target: target, body: body, bounds: c.bounds(c.over(m.Kind, verb))}
	if s.over.None() {
		return nil, fault.New(fault.CodeUnauthorized, lacking(needFor(m.Kind, verb)))
	}
	if verb == kind.Deletes {
		return s, nil
	}
	if m.View != nil {
		body.Overlook(slices.DeleteFunc(slices.Clone(m.View.shown), func(name string) bool {
			return slices.Contains(m.View.empty, name) && body.Holds(name)
		})...)
	}
	if verb != kind.Creates {
		return s, nil
	}
	// What is prepared may carry the id, so it is made now; and a plan and the
	// write that follows it are about the same record.
	s.id = c.State.FreeID(m.Kind, c.start)
	for _, f := range m.Inputs {
		body.Overlook(f.Last()) // which Prepare reads
	}
	// What is wrong with a body should show before anything is made for it.
	if err := m.Kind.Apply(kind.Create, m.Kind.New(), body); err != nil || m.Prepare == nil {
		return s, err
	}
	prepared, err := m.Prepare(c, body, s.id)
	s.prepared = prepared
	return s, err
}

// Kind is that of the record.
func (s *Step) Kind() *kind.Def { return s.of.Kind }

// Dooms returns which record a delete in a list is about, as the write finds it
// now; not ok if it finds none, or if the step is no delete.
func (s *Step) Dooms(tx *state.Tx) (ref state.Ref, ok bool) {
	if s.verb != kind.Deletes {
		return ref, false
	}
	rec, err := s.of.Kind.Called(tx, s.target)
	if err != nil || rec == nil {
		return ref, false
	}
	return state.Ref{Def: s.of.Kind, ID: rec.Base().ID}, true
}

// Announce tells whoever wants to know that the write of a create was stored.
func (s *Step) Announce(rec kind.Record) {
	if s.of.Announce != nil {
		s.of.Announce(rec)
	}
}

// create adds the record that the body asks for.
func (s *Step) create(tx *state.Tx, body kind.Body) (kind.Record, error) {
	rec, err := s.fresh(tx, body)
	if err != nil {
		return nil, err
	}
	return rec, s.add(tx, rec, body)
}

func (s *Step) fresh(tx *state.Tx, body kind.Body) (kind.Record, error) {
	rec := s.of.Kind.New()
	rec.Base().ID = s.id
	if err := s.of.Kind.Apply(kind.Create, rec, body); err != nil {
		return nil, err
	}
	if s.prepared.Set != nil {
		s.prepared.Set(rec)
	}
	if s.of.Identify != nil {
		if err := s.of.Identify(tx, rec); err != nil {
			return nil, err
		}
	}
	if err := s.confined(tx, s.of.Kind, s.of.Kind.New(), rec); err != nil {
		return nil, err
	}
	return rec, s.inside(rec)
}

// inside refuses a record that its author could not have made or changed so.
func (s *Step) inside(rec kind.Record) error {
	if s.over.Has(s.of.Kind, rec) {
		return nil
	}
	return fault.New(fault.CodeUnauthorized, "your admin roles have the power "+needFor(s.of.Kind, s.verb)+" over some "+spoken(s.of.Kind.Path)+" only, which this would not be one of: see their onlyAttributes and onlyTags")
}

// visible refuses a record that its author may not do this to, as if it were not
// there.
func (s *Step) visible(rec kind.Record) error {
	if s.over.Has(s.of.Kind, rec) {
		return nil
	}
	return fault.NotFound(s.of.Kind.Name, rec.Base().ID)
}

func (s *Step) add(tx *state.Tx, rec kind.Record, body kind.Body) error {
	if err := tx.Create(s.of.Kind, rec); err != nil || s.prepared.Also == nil {
		return err
	}
	return s.prepared.Also(tx, body)
}

// merge reads the body into a copy of the record.
func (s *Step) merge(tx *state.Tx, rec kind.Record, body kind.Body) error {
	if err := s.visible(rec); err != nil {
		return err
	}
	if rec.Base().System {
		return fault.New(fault.CodeUnchangeable, "the system keeps this record; it cannot be changed")
	}
	if s.of.Refuse != nil {
		if err := s.of.Refuse(rec); err != nil {
			return err
		}
	}
	shape := kind.Patch
	if s.verb == kind.Replaces {
		shape = kind.Replace
	}
	old := s.of.Kind.Clone(rec)
	if err := s.of.Kind.Apply(shape, rec, body); err != nil {
		return err
	}
	if err := s.confined(tx, s.of.Kind, old, rec); err != nil {
		return err
	}
	return s.inside(rec)
}

// removable refuses what the author of a delete may not take away.
func (s *Step) removable(rec kind.Record) error {
	if err := s.visible(rec); err != nil {
		return err
	}
	return removable(rec)
}

// removable refuses what the system keeps.
func removable(rec kind.Record) error {
	if rec.Base().System {
		return fault.New(fault.CodeUndeletable, "the system keeps this record; it cannot be deleted")
	}
	return nil
}

// Do makes the change as one of a list: names may stand for ids, as the write
// finds them when it comes to this step, except for what a later step deletes
// if there is another, and a change that changes nothing writes nothing. It returns the record as it was and as it is; nil for none,
// and twice the same if nothing changed. Errors name what is wrong as seen from
// the change: target, or a field in body.
func (s *Step) Do(tx *state.Tx, leaving func(d *kind.Def, id string) bool) (before, after kind.Record, err error) {
	body := s.body.Named(s.naming(tx, leaving))
	if s.verb == kind.Creates {
		before, after, err = s.put(tx, body)
		return before, after, s.misfit(err)
	}
	before, err = s.of.Kind.Called(tx, s.target)
	if err == nil && (before == nil || s.visible(before) != nil) {
		err = fault.New(fault.CodeNotFound, "no "+spoken(s.of.Kind.Name)+" has this id or name")
	}
	if err != nil {
		return nil, nil, s.mistarget(err)
	}
	if s.verb == kind.Deletes {
		if err = s.removable(before); err == nil {
			err = tx.Delete(s.of.Kind, before.Base().ID)
		}
		return before, nil, s.mistarget(err)
	}
	after, err = s.amend(tx, before.Base().ID, func(rec kind.Record) error { return s.merge(tx, rec, body) })
	return before, after, s.misfit(err)
}

// naming finds records by their names, as the write has them. What its author cannot read
// is not there.
func (s *Step) naming(tx *state.Tx, leaving func(d *kind.Def, id string) bool) kind.Naming {
	all := s.kinds.Naming(tx, leaving)
	if s.knows == nil {
		return all
	}
	return func(kinds []string, text string) (string, error) {
		id, err := all(kinds, text)
		for _, name := range kinds {
			d := s.kinds.Named(name)
			if rec, ok := tx.Lookup(d, id); ok && s.knows(d, rec) {
				return id, err
			}
		}
		return text, nil
	}
}

// put creates a record, or changes the one that is known by what it holds.
func (s *Step) put(tx *state.Tx, body kind.Body) (before, after kind.Record, err error) {
	rec, err := s.fresh(tx, body)
	if err != nil {
		return nil, nil, err
	}
	if s.of.Identify != nil {
		if before, there := tx.Lookup(s.of.Kind, rec.Base().ID); there {
			after, err = s.amend(tx, rec.Base().ID, func(rec kind.Record) error {
				if err := s.visible(rec); err != nil {
					return err
				}
				if err := s.of.Kind.Apply(kind.Create, rec, body); err != nil {
					return err
				}
				return s.of.Identify(tx, rec)
			})
			return before, after, err
		}
	}
	return nil, rec, s.add(tx, rec, body)
}

func (s *Step) amend(tx *state.Tx, id string, change func(kind.Record) error) (kind.Record, error) {
	_, err := tx.Amend(s.of.Kind, id, change)
	after, _ := tx.Lookup(s.of.Kind, id)
	return after, err
}

// misfit says where in the change something does not fit.
func (s *Step) misfit(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok:
		return err
	case e.Field == "" && s.verb != kind.Creates:
		return s.mistarget(err)
	}
	return Within("body", e)
}

// mistarget says that something is wrong with what is to be changed.
func (s *Step) mistarget(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	about := *e
	if about.Value == nil || e.Field == "" {
		about.Value = s.target
	}
	if about.Reason = e.Error(); about.Reason == "" { // with the field of whoever refers to it
		about.Reason = string(e.Code)
	}
	about.Field = "target"
	return &about
}

// Within returns a failure of something inside of a part of a body.
func Within(part string, e *fault.Error) error {
	inside := *e
	if inside.Field = part; e.Field != "" {
		inside.Field += "." + e.Field
	} else {
		inside.Reason = e.Error()
	}
	return &inside
}
