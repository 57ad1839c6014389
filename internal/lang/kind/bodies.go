package kind

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
)

// ReadBodies parses a JSON list of objects.
func ReadBodies(data []byte) ([]Body, error) {
	var items []jsontext.Value
	if err := json.Unmarshal(data, &items); err != nil || items == nil {
		return nil, fault.New(fault.CodeBody, "the body must be a JSON list of objects")
	}
	bodies := make([]Body, len(items))
	all := Body{trail: new(trail)}
	for i, item := range items {
		body, err := all.inside(item, strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		bodies[i] = body
	}
	return bodies, nil
}
