package schema

import (
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxSteps bounds the work of judging one value. A few lines of schema can ask
// for more evaluations than there are seconds in a century, by naming a
// subschema twice that names another twice, and so on.
const maxSteps = 1 << 19

// meter counts the steps of one validation at a time. The library has no
// place for state of a validation, hence the lock.
type meter struct {
	limit int // how many steps a validation may take
	unit  int // the price of the cheapest evaluation

	mu   sync.Mutex
	left int // steps of the validation that holds mu
}

// newMeter has the evaluations of all parts of a schema counted. An
// assertion of the format is the earliest moment at which the library calls
// out, ahead of all that could branch; only constants, enumerations and types
// come sooner, whose cost is in the price of a step.
func newMeter(parts []*jsonschema.Schema) *meter {
	m := &meter{limit: maxSteps, unit: 1}
	for _, part := range parts {
		if part.Enum != nil {
			m.unit = max(m.unit, 1+len(part.Enum.Values)/8)
		}
		next := part.Format
		if next == nil {
			next = &jsonschema.Format{Validate: func(any) error { return nil }}
		}
		toll := price(part)
		part.Format = &jsonschema.Format{Name: next.Name, Validate: func(v any) error {
			if m.left -= m.unit * toll(v); m.left < 0 {
				return errTooCostly
			}
			return next.Validate(v)
		}}
	}
	return m
}

var errTooCostly = errors.New("takes too long to judge by this schema")

// price returns what it costs to evaluate a subschema for a value, with the
// visits of its children, but without what their own evaluation costs.
func price(s *jsonschema.Schema) func(v any) int {
	fixed := 1 + len(s.AllOf) + len(s.AnyOf) + len(s.OneOf) + len(s.Required) + len(s.Dependencies) + len(s.DependentSchemas)
	names := 0
	for p := range s.PatternProperties {
		names += p.(*pattern).size
	}
	texts := 8
	if s.Pattern != nil {
		texts += s.Pattern.(*pattern).size
	}
	return func(v any) int {
		n := fixed
		switch v := v.(type) {
		case string:
			n += len(v) * texts / 256
		case []any:
			n += len(v)
		case map[string]any:
			n += len(v)
			if names > 0 {
				for name := range v {
					n += len(name) * names / 256
				}
			}
		}
		return n
	}
}

// validate returns how v violates the schema, or an error when it takes too
// long to tell.
func (m *meter) validate(s *jsonschema.Schema, v any) (*jsonschema.ValidationError, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = m.limit
	err := s.Validate(v)
	if m.left < 0 {
		return nil, errTooCostly
	}
	if violation, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return violation, nil
	}
	return nil, err
}
