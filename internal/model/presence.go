package model

import "netkeep.internal/internal/lang/kind"

// Presence is that a router is connected, and what it says of itself. Its id is
// the router's, and it was created when the router connected. Answers show its
// fields among those of the router.
type Presence struct {
	kind.Meta

	Hostname     string            `json:"hostname" kind:"server" doc:"Name of the machine that the router runs on; empty while it is not connected."`
	Online       bool              `json:"isOnline" kind:"server" doc:"Whether the router is connected to the controller."`
	Sync         string            `json:"syncStatus" kind:"server" doc:"Whether the router knows all that it needs to know: SYNC_DONE if so, SYNC_UNKNOWN while it is not connected."`
	Listeners    map[string]string `json:"supportedProtocols" kind:"server" doc:"Where clients reach the router, by protocol, such as tls; empty while it is not connected."`
	Version      RouterVersion     `json:"versionInfo" kind:"server" doc:"What the router runs; empty while it is not connected."`
	Links        []RouterAddress   `json:"listenerAddresses" kind:"server" doc:"Where other routers reach it; empty while it is not connected."`
	Interfaces   []Interface       `json:"interfaces" kind:"server" doc:"Network interfaces of the machine that the router runs on, as it says; empty while it is not connected, and of those that do not tell."`
	ControllerID string            `json:"controllerId" kind:"server,hidden,nofilter" doc:"Id of the controller that the router is connected to."`
}

// RouterVersion is what a router runs.
type RouterVersion struct {
	Version   string `json:"version" doc:"Version of the router; empty while it is not connected."`
	Revision  string `json:"revision" doc:"Commit from which the router was built."`
	BuildDate string `json:"buildDate" doc:"When the router was built."`
	OS        string `json:"os" doc:"Operating system that the router runs on."`
	Arch      string `json:"arch" doc:"Architecture of the processor that it runs on."`
}

// RouterAddress is where a router listens for others.
type RouterAddress struct {
	Address  string `json:"address" doc:"Where it listens, such as tls:router.example.com:6262."`
	Protocol string `json:"protocol" doc:"What is spoken there."`
}

// Interface is a network interface of a router's machine.
type Interface struct {
	Name            string   `json:"name" doc:"What the machine calls it."`
	HardwareAddress string   `json:"hardwareAddress" doc:"Its hardware address; empty if it has none."`
	MTU             int64    `json:"mtu" doc:"How many bytes a packet may have."`
	Index           int64    `json:"index" doc:"Its number there."`
	IsUp            bool     `json:"isUp" doc:"Whether it is switched on."`
	IsBroadcast     bool     `json:"isBroadcast" doc:"Whether packets to all can be sent over it."`
	IsLoopback      bool     `json:"isLoopback" doc:"Whether it leads to the machine itself."`
	IsRunning       bool     `json:"isRunning" doc:"Whether it carries packets."`
	IsMulticast     bool     `json:"isMulticast" doc:"Whether packets to groups can be sent over it."`
	Addresses       []string `json:"addresses" doc:"Its addresses, with the bits that are of the network."`
}

// How far a router has come with learning what it needs to know; unknown of those
// that are not connected.
const (
	SyncNew     = "SYNC_NEW"
	SyncHello   = "SYNC_HELLO_WAIT"
	Syncing     = "SYNC_IN_PROGRESS"
	SyncDone    = "SYNC_DONE"
	SyncUnknown = "SYNC_UNKNOWN"
)

// Presences is the kind.
var Presences = kind.Define(kind.Spec[Presence]{
	Name: "presence",
	Path: "presences",
	Doc:  "Routers that are connected, and what they say of themselves.",
	Lane: kind.Volatile,
})

// PresenceOf is the presence of a router, or what there is to say of one that is
// away.
func PresenceOf(r kind.Reader, routerID string) *Presence {
	if p, ok := Presences.Get(r, routerID); ok {
		return p
	}
	return &away
}

var away = Presence{Sync: SyncUnknown}
