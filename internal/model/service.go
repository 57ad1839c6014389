package model

import (
	"slices"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Service is something that identities dial or host through the network.
type Service struct {
	kind.Meta

	Name               string   `json:"name" kind:"required,unique,searched,range=1..256" doc:"What people and clients call the service; no two services have the same name."`
	EncryptionRequired bool     `json:"encryptionRequired" kind:"required=create,fixed,repeated,usual=true" doc:"Whether traffic must be encrypted all the way from client to host; it stays as it was created."`
	TerminatorStrategy string   `json:"terminatorStrategy" kind:"default=smartrouting" doc:"How one of several terminators is picked: smartrouting, weighted, random or sticky; smartrouting if empty."`
	MaxIdleTimeMillis  int64    `json:"maxIdleTimeMillis" kind:"range=0..9223372036854" doc:"After how many milliseconds without traffic a connection to the service may be ended; it is kept for those who ask, and the controller ends none for it."`
	RoleAttributes     []string `json:"roleAttributes" kind:"attributes,null" doc:"Words by which policies find it: a policy with #word in its role list is about everything that has the word."`
	Configs            []string `json:"configs" kind:"ref=config:clear,null" doc:"Ids of the configs that clients of the service get, one of a type at most."`
	// A tool that does not know it and writes a service back as a whole leaves it.
	Requests *Requests `json:"requests" kind:"nullable,keep,nofilter" doc:"How those who have no access may ask for some; null if nobody may. A replace without it leaves it as it is."`
}

// Services is the kind.
var Services = kind.Define(kind.Spec[Service]{
	Name:    "service",
	Path:    "services",
	Doc:     "Create a service: something that identities dial or host through the network.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "roleAttributes", "terminatorStrategy", "encryptionRequired"},
	InFiles: true,
	Links:   []string{"configs", "service-edge-router-policies", "service-policies", "terminators"},
})

// strategies are the ways in which a terminator is picked.
var strategies = []string{"smartrouting", "weighted", "random", "sticky"}

// Check refuses an unknown strategy and two configs of one type.
func (s *Service) Check(r kind.Reader, _ *Service) error {
	if !slices.Contains(strategies, s.TerminatorStrategy) {
		return fault.On(fault.CodeNotFound, "terminatorStrategy", "must be smartrouting, weighted, random or sticky", s.TerminatorStrategy)
	}
	if err := s.checkRequests(); err != nil {
		return err
	}
	return oneConfigPerType(r, s.Configs)
}

// oneConfigPerType refuses two configs of a type: a client could not tell
// which to use.
func oneConfigPerType(r kind.Reader, ids []string) error {
	seen := map[string]string{}
	for _, id := range ids {
		c, ok := Configs.Get(r, id)
		if !ok {
			continue // the ref rule refuses it
		}
		if other, taken := seen[c.ConfigTypeID]; taken {
			return fault.Invalid("configs", "must hold one config of a type; two are of the same", []string{other, id})
		}
		seen[c.ConfigTypeID] = id
	}
	return nil
}

// ServiceConfig gives one identity another config of a type for a service.
type ServiceConfig struct {
	kind.Meta

	IdentityID   string `json:"identityId" kind:"required=create,fixed,ref=identity:cascade,as=identity" doc:"Id of the identity that gets another config."`
	ServiceID    string `json:"serviceId" kind:"required=create,fixed,ref=service:cascade,as=service" doc:"Id of the service for which it does."`
	ConfigID     string `json:"configId" kind:"required=create,fixed,ref=config:cascade,as=config" doc:"Id of the config that it gets."`
	ConfigTypeID string `json:"configTypeId" kind:"server" doc:"Id of the type of that config, and of the one that it replaces."`
}

// ServiceConfigs is the kind.
var ServiceConfigs = kind.Define(kind.Spec[ServiceConfig]{
	Name:    "service-config",
	Path:    "service-configs",
	Doc:     "Configs that single identities get for a service instead of its own.",
	Verbs:   kind.Lists | kind.Gets,
	Columns: []string{"identity", "service", "config"},
	InFiles: true,
})

// Identify gives the override the type of its config and its id: an identity
// has at most one for a service and type.
func (o *ServiceConfig) Identify(r kind.Reader) error {
	config, ok := Configs.Get(r, o.ConfigID)
	if !ok {
		return fault.On(fault.CodeNotFound, "configId", "names no config with this id", o.ConfigID)
	}
	o.ConfigTypeID = config.ConfigTypeID
	o.ID = ServiceConfigID(o.IdentityID, o.ServiceID, o.ConfigTypeID)
	return nil
}

// ServiceConfigID is the id of the override of an identity for a service and
// config type.
func ServiceConfigID(identityID, serviceID, configTypeID string) string {
	return identityID + "." + serviceID + "." + configTypeID
}
