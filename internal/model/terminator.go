package model

import (
	"strings"

	"netkeep/internal/kind"
)

// Terminator is where traffic of a service leaves the network.
type Terminator struct {
	kind.Meta

	ServiceID      string `json:"service" kind:"required,fixed,ref=service:cascade,as=service,out=serviceId"`
	RouterID       string `json:"router" kind:"required,ref=router:cascade,as=router,out=routerId"`
	Binding        string `json:"binding" kind:"required"`
	Address        string `json:"address" kind:"required"`
	Identity       string `json:"identity" kind:"fixed,alias=instanceId"`
	IdentitySecret []byte `json:"identitySecret" kind:"fixed,secret"`
	HostID         string `json:"hostId" kind:"server,hidden"`
	Cost           int    `json:"cost" kind:"range=0..65535"`
	Precedence     string `json:"precedence" kind:"enum=default|required|failed,default=default"`
}

// Terminators is the kind.
var Terminators = kind.Define(kind.Spec[Terminator]{
	Name: "terminator",
	Path: "terminators",
	Doc:  "Create a terminator: where traffic of a service leaves the network.",
})

// Fill names the binding that an address implies.
func (t *Terminator) Fill() {
	switch {
	case t.Binding != "":
	case strings.HasPrefix(t.Address, "udp:"):
		t.Binding = "udp"
	default:
		t.Binding = "transport"
	}
}

// Session is a permission to dial or host a service, given to an API session.
type Session struct {
	kind.Meta

	APISessionID string `json:"apiSessionId" kind:"server,ref=api-session:cascade,as=apiSession,alias=apiSession"`
	IdentityID   string `json:"identityId" kind:"server,ref=identity:cascade,alias=identity"`
	ServiceID    string `json:"serviceId" kind:"server,ref=service:cascade,as=service,alias=service"`
	Type         string `json:"type" kind:"server"`
}

// Sessions is the kind.
var Sessions = kind.Define(kind.Spec[Session]{
	Name:  "session",
	Path:  "sessions",
	Doc:   "Permissions to dial or host services that API sessions hold.",
	Lane:  kind.Session,
	Links: []string{"route-path"},
})

// ServiceConfig gives one identity another config of a type for a service.
type ServiceConfig struct {
	kind.Meta

	IdentityID   string `json:"identityId" kind:"server,ref=identity:cascade"`
	ServiceID    string `json:"serviceId" kind:"server,ref=service:cascade,as=service"`
	ConfigID     string `json:"configId" kind:"server,ref=config:cascade,as=config"`
	ConfigTypeID string `json:"configTypeId" kind:"server"`
}

// ServiceConfigs is the kind.
var ServiceConfigs = kind.Define(kind.Spec[ServiceConfig]{
	Name: "service-config",
	Path: "service-configs",
	Doc:  "Configs that single identities get for a service instead of its own.",
})

// ServiceConfigID is the id of the override of an identity for a service and
// config type: there is at most one.
func ServiceConfigID(identityID, serviceID, configTypeID string) string {
	return identityID + "." + serviceID + "." + configTypeID
}
