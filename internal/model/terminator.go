package model

import (
	"strings"

	"netkeep/internal/lang/kind"
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
