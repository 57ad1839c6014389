package audit

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/model"
)

// maxMember is how many bytes a member of a record may have to be in an entry that
// would be too large with all of them.
const maxMember = 4 << 10

// shorten leaves large members out of an entry, and says so.
func shorten(entry *model.AuditEntry) {
	for _, object := range []*jsontext.Value{&entry.Before, &entry.After} {
		short, large := without(*object, maxMember)
		*object = short
		for _, name := range large {
			if !slices.Contains(entry.Withheld, name) {
				entry.Withheld = append(entry.Withheld, name)
			}
		}
	}
}

// without returns an object without its large members, and their names.
func without(object jsontext.Value, most int) (short jsontext.Value, large []string) {
	if object == nil {
		return nil, nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := dec.ReadToken(); err != nil {
		return jsontext.Value("{}"), nil
	}
	short = append(short, '{')
	for dec.PeekKind() == '"' {
		name, err := dec.ReadValue()
		if err != nil {
			break
		}
		name = name.Clone()
		value, err := dec.ReadValue()
		if err != nil {
			break
		}
		if len(value) > most {
			text, _ := jsontext.AppendUnquote(nil, name)
			large = append(large, string(text))
			continue
		}
		if len(short) > 1 {
			short = append(short, ',')
		}
		short = append(append(append(short, name...), ':'), value...)
	}
	return append(short, '}'), large
}
