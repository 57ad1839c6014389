package model

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// Controller is one of the controllers of this network. Each writes its own
// record when it starts; whether it is there at the moment is not in it.
type Controller struct {
	kind.Meta

	Name           string    `json:"name" kind:"server" doc:"Name of the controller: the host under which clients reach it."`
	Address        string    `json:"ctrlAddress" kind:"server" doc:"Where routers reach it, such as tls:controller.example.com:1280."`
	Client         string    `json:"clientAddress" kind:"server,hidden,nofilter" doc:"Host and port of its Client API."`
	Management     string    `json:"managementAddress" kind:"server,hidden,nofilter" doc:"Host and port of its Management API."`
	Certificate    string    `json:"certPem" kind:"server,nofilter" doc:"Certificate that it serves, as PEM."`
	Fingerprint    string    `json:"fingerprint" kind:"server" doc:"SHA-1 of that certificate, as hex."`
	Version        string    `json:"version" kind:"server" doc:"What it runs."`
	Format         int       `json:"format" kind:"server,hidden,nofilter" doc:"Newest format of the store that it can work with; 0 for one of before that was said."`
	LastJoinedAt   time.Time `json:"lastJoinedAt" kind:"server" doc:"When it last started."`
	Reserve        string    `json:"reserveAddress" kind:"server,hidden,nofilter" doc:"Where routers reach it while it answers in the place of another; empty if it never does."`
	StandIn        string    `json:"standIn" kind:"server,hidden,nofilter" doc:"Id of the controller that answers in its place; empty while none does."`
	StandInAddress string    `json:"standInAddress" kind:"server,hidden,nofilter" doc:"Where routers reach that one."`
	LeftOutAt      time.Time `json:"leftOutAt" kind:"server,hidden,nofilter" doc:"When routers were told no more of it, because it was gone for long."`
	MovedAt        time.Time `json:"movedAt" kind:"server,hidden,nofilter" doc:"When routers were last led to another address, or back."`
	PartedAt       time.Time `json:"partedAt" kind:"server,hidden,nofilter" doc:"When it last took another off the list."`
}

// Controllers is the kind.
var Controllers = kind.Define(kind.Spec[Controller]{
	Name:    "controller",
	Path:    "controllers",
	Doc:     "The controllers of this network.",
	Verbs:   kind.Lists | kind.Gets,
	Columns: []string{"name", "isOnline as online", "version", "ctrlAddress as address", "lastJoinedAt as started", "id"},
})

// At is where routers find whoever answers under the controller's id; empty if
// they are not to look for it.
func (c *Controller) At() string {
	switch {
	case !c.LeftOutAt.IsZero():
		return ""
	case c.StandIn != "":
		return c.StandInAddress
	}
	return c.Address
}
