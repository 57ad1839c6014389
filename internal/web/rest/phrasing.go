package rest

import (
	"fmt"
	"slices"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Phrasing is how clients of an API write records of a kind, where that is not how the
// kind has it: what they send is turned into the kind's own words, and then judged as
// any other write is.
type Phrasing struct {
	// Names are further names of members, each with the one that the kind has for it.
	Names map[string]string
	// Usual has creates take what is usual for members that they do not say and the
	// kind asks for.
	Usual bool
	// Resets, if not nil, are the members that a replace takes back which does not say
	// them. It leaves all others: these clients know no more of the record.
	Resets []string
	// Stead, if set, returns the resource that a change of the record goes to, if that
	// stands for one of another kind with its id; nil if it does not. It gets the body
	// in the words of this one.
	Stead func(rec kind.Record) *Mounted
	// Edits are members of a replace's and a patch's body that are not fields of the
	// kind, and Adjust reads them: what it returns is done to the record in the write.
	Edits  []*kind.Field
	Adjust func(c *Call, body kind.Body) (func(rec kind.Record) error, error)
}

// phrase reads a body in the words of clients. The verb is how it is to be applied.
func (m *Mounted) phrase(verb kind.Verbs, body kind.Body) (kind.Verbs, kind.Body, error) {
	p := m.Phrasing
	if p == nil {
		return verb, body, nil
	}
	for other, name := range p.Names {
		if body.Has(other) && body.Has(name) {
			return verb, body, fault.On(fault.CodeBody, other, "is there as "+name+" too; send one", nil)
		}
		body = body.Renamed(other, name)
	}
	if verb == kind.Creates && p.Usual {
		for _, f := range m.Kind.Fields {
			if f.Usual != "" && !body.Has(f.Name) {
				body = body.With(f.Name, f.UsualJSON())
			}
		}
	}
	if verb != kind.Replaces || p.Resets == nil {
		return verb, body, nil
	}
	for _, f := range m.Kind.Fields {
		switch reset := slices.Contains(p.Resets, f.Name); {
		case body.Has(f.Name):
		case f.Required&kind.Replace != 0:
			return verb, body, fault.Invalid(f.Name, "is required", nil)
		case reset:
			body = body.With(f.Name, f.InitialJSON())
		}
	}
	return kind.Patches, body, nil
}

// stead is the resource that a change of a record goes to.
func (m *Mounted) stead(c *Call, id string) *Mounted {
	if m.Phrasing == nil || m.Phrasing.Stead == nil {
		return m
	}
	if rec, there := c.Snap.Lookup(m.Kind, id); there {
		if other := m.Phrasing.Stead(rec); other != nil {
			return other
		}
	}
	return m
}

// adjust is what a change does to the record beyond its fields.
func (m *Mounted) adjust(c *Call, body kind.Body) (func(rec kind.Record) error, error) {
	if m.Phrasing == nil || m.Phrasing.Adjust == nil {
		return func(kind.Record) error { return nil }, nil
	}
	for _, f := range m.Phrasing.Edits {
		body.Overlook(f.Last())
	}
	return m.Phrasing.Adjust(c, body)
}

// describe adds to the schema of bodies what clients may say.
func (p *Phrasing) describe(d *kind.Def, shape kind.Shape, s kind.Schema) {
	if p == nil {
		return
	}
	props, _ := s["properties"].(kind.Schema)
	for other, name := range p.Names {
		if own, there := props[name].(kind.Schema); there {
			again := kind.Schema{}
			for member, value := range own {
				again[member] = value
			}
			again["description"] = fmt.Sprintf("The same as %s, under the name that clients of this API know.", name)
			props[other] = again
		}
	}
	if shape != kind.Create {
		for name, edit := range kind.Properties(p.Edits) {
			props[name] = edit
		}
	}
	required, _ := s["required"].([]string)
	required = slices.DeleteFunc(slices.Clone(required), func(name string) bool {
		f := d.Field(name)
		return shape == kind.Create && p.Usual && f != nil && f.Usual != ""
	})
	if s["required"] = required; len(required) == 0 {
		delete(s, "required")
	}
}
