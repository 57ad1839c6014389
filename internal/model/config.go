package model

import (
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/schema"
)

// Config is data of a config type, attached to services.
type Config struct {
	kind.Meta

	Name         string         `json:"name" kind:"required,unique,range=1..256" doc:"What people call the config; no two configs have the same name."`
	ConfigTypeID string         `json:"configTypeId" kind:"required=create,fixed,ref=config-type:restrict,as=configType,alias=type" doc:"Id of the config type, whose schema the data must match."`
	Data         jsontext.Value `json:"data" kind:"required" doc:"The settings, for the programs that know the type."`
}

// Configs is the kind.
var Configs = kind.Define(kind.Spec[Config]{
	Name:    "config",
	Path:    "configs",
	Doc:     "Create a config: data of a config type, attached to services.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "configType", "data"},
	InFiles: true,
})

// Check judges the data by the type's schema.
func (c *Config) Check(r kind.Reader, _ *Config) error {
	typ, ok := ConfigTypes.Get(r, c.ConfigTypeID)
	if !ok {
		return fault.Invalid("type", "must be the id of a config type", c.ConfigTypeID)
	}
	s, err := typ.compile("type")
	if err != nil {
		return err
	}
	return c.matches(s)
}

// matches reports where the data differs from what the schema asks for.
func (c *Config) matches(s *schema.Schema) error {
	data, err := decodeObject(c.Data)
	if err != nil {
		return fault.Invalid("data", "must be an object", nil)
	}
	return s.Accepts("data", data)
}
