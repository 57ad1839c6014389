package model

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// Circuit is a connection from somebody who dials a service to a host of it.
type Circuit struct {
	kind.Meta

	IdentityID   string    `json:"clientId" kind:"server,ref=identity:cascade,as=client" doc:"Id of the identity that has dialled."`
	HostID       string    `json:"hostId" kind:"server,ref=identity:cascade,as=host" doc:"Id of the identity that hosts; empty if the router itself reaches the service."`
	ServiceID    string    `json:"serviceId" kind:"server,ref=service:cascade,as=service,alias=service" doc:"Id of the service."`
	TerminatorID string    `json:"terminatorId" kind:"server,alias=terminator" doc:"Id of the terminator where it leaves the network; empty if it is older than this controller."`
	SessionID    string    `json:"sessionId" kind:"server" doc:"Id of the session that it was dialled with."`
	Cost         int64     `json:"cost" kind:"server" doc:"What its path costs."`
	Moved        time.Time `json:"movedAt" kind:"server,nullable" doc:"When it last got another path; null if it has its first."`
	// Path and Links are shown as the path.
	Path         []string `json:"routers" kind:"server,hidden,ref=router:cascade" doc:"Ids of the routers on its path, in order."`
	Links        []string `json:"links" kind:"server,hidden" doc:"Ids of the links between them."`
	ControllerID string   `json:"controllerId" kind:"server,hidden,nofilter" doc:"Id of the controller that looks after the circuit."`
}

// Circuits is the kind.
var Circuits = kind.Define(kind.Spec[Circuit]{
	Name:    "circuit",
	Path:    "circuits",
	Doc:     "Connections over the network: who uses which service, and over which routers.",
	Verbs:   kind.Lists | kind.Gets | kind.Deletes,
	Columns: []string{"service", "client as identity", "host", "path.nodes as path", "createdAt as since", "id"},
	Lane:    kind.Volatile,
})
