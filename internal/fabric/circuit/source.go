package circuit

import (
	"iter"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// record is what is told of a new circuit that a session dials.
func (c *Circuits) record(id string, s *model.Session) model.Circuit {
	now := kind.MomentOf(c.Now())
	return model.Circuit{
		Meta:       kind.Meta{ID: id, CreatedAt: now, UpdatedAt: now},
		IdentityID: s.IdentityID, ServiceID: s.ServiceID, SessionID: s.ID, ControllerID: c.Controller,
	}
}

// Source is the circuits for those who look at them.
func (c *Circuits) Source() kind.Source { return source{c} }

type source struct{ *Circuits }

// Lookup returns the circuit with an id.
func (s source) Lookup(id string) (kind.Record, bool) {
	found, ok := s.Get(id)
	if !ok {
		return nil, false
	}
	return found.shown(), true
}

// All yields the circuits by id.
func (s source) All() iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for _, c := range s.Circuits.All() {
			if !yield(c.shown()) {
				return
			}
		}
	}
}

// shown is what is told of the circuit: its marks as tags, and one link between
// each two routers. Those are empty of one that is older than this controller
// until they are known.
func (c *Circuit) shown() *model.Circuit {
	told := c.Circuit
	told.Tags = kind.Tags{}
	for name, value := range c.Marks() {
		told.Tags[name] = value
	}
	if gaps := max(0, len(c.Path)-1); len(c.Links) != gaps {
		told.Links = make([]string, gaps)
		copy(told.Links, c.Links)
	}
	return &told
}
