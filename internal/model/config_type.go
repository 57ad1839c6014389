package model

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/schema"
)

// ConfigType says what configs of this type look like.
type ConfigType struct {
	kind.Meta

	Name   string         `json:"name" kind:"required,unique,range=1..256" doc:"What people and clients call the type, such as intercept.v1; no two types have the same name, and none is called all."`
	Schema jsontext.Value `json:"schema" doc:"JSON schema that the data of configs must match; they may hold anything if it is empty."`
}

// ConfigTypes is the kind.
var ConfigTypes = kind.Define(kind.Spec[ConfigType]{
	Name:    "config-type",
	Path:    "config-types",
	Doc:     "Create a config type: a name and the JSON schema that its configs must match.",
	Verbs:   kind.CRUD,
	Columns: []string{"name"},
	InFiles: true,
})

// schemas remembers compiled schemas. It is a cache and nothing else: what it
// answers follows from what it is asked.
var schemas schema.Compiler

// Common says that whoever may write a config may name its type: a schema tells nothing
// of the network.
func (t *ConfigType) Common() bool { return true }

// Check refuses a schema that does not compile or that existing configs break.
func (t *ConfigType) Check(r kind.Reader, old *ConfigType) error {
	// A client asks for the configs of every type with this word.
	if t.Name == "all" {
		return fault.Invalid("name", "is reserved", t.Name)
	}
	if old != nil && string(old.Schema) == string(t.Schema) {
		return nil
	}
	s, err := t.compile("schema")
	if err != nil {
		return err
	}
	for c := range Configs.Select(r, "configTypeId", t.ID) {
		if err := c.matches(s); err != nil {
			return fault.Invalid("schema", "does not accept the existing config "+c.Name+": "+err.Error(), nil)
		}
	}
	return nil
}

// compile returns the type's schema ready for use.
func (t *ConfigType) compile(field string) (*schema.Schema, error) {
	doc, err := decodeObject(t.Schema)
	if err != nil {
		return nil, fault.Invalid(field, "must be an object", nil)
	}
	return schemas.Compile(field, doc)
}

// decodeObject reads a stored JSON object; none is an empty one.
func decodeObject(v jsontext.Value) (m map[string]any, err error) {
	if len(v) == 0 {
		return nil, nil
	}
	err = json.Unmarshal(v, &m)
	return m, err
}
