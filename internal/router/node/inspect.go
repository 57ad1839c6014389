package node

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
)

// maxStacks is how much of what all goroutines do is told.
const maxStacks = 1 << 20

// ofCircuit is what a name begins with of which the rest is a circuit's id.
const ofCircuit = "circuit:"

// Inspect says what is known here under names, as routers of others do. What would let
// somebody in is under none of them.
func (r *Router) Inspect(_ context.Context, names []string) map[string]string {
	known := map[string]string{}
	for _, name := range names {
		switch name {
		case "router-circuits":
			known[name] = r.circuits()
		case "links":
			known[name] = r.links.Inspect()
		case "router-controllers":
			known[name] = r.controllers()
		case "sdk-terminators":
			known[name] = asJSON(map[string]any{"entries": r.door.Hosted()})
		case "identity-connection-statuses":
			known[name] = r.connected()
		case "config":
			known[name] = asJSON(map[string]any{
				"id": r.opt.ID, "controllers": r.opt.Controllers, "edge": r.opt.EdgeAddresses, "link": r.opt.LinkAddresses, "linkGroups": r.opt.LinkGroups, "version": r.opt.Version,
			})
		case "metrics":
			clients, conns := r.door.Count()
			known[name] = asJSON(map[string]any{"sourceId": r.opt.ID, "intValues": map[string]int{
				"circuits": r.table.Len(), "edge.clients": clients, "edge.connections": conns, "goroutines": runtime.NumGoroutine(),
			}})
		case "stackdump":
			stacks := make([]byte, maxStacks)
			known[name] = string(stacks[:runtime.Stack(stacks, true)])
		default:
			if id, is := strings.CutPrefix(name, ofCircuit); is {
				if c, carried := r.table.Circuits()[id]; carried {
					known[name] = asJSON(c)
				}
			}
		}
	}
	return known
}

// connected is who is connected here, as JSON.
func (r *Router) connected() string {
	type connection struct {
		ID     string `json:"id"`
		Closed bool   `json:"closed"`
		From   string `json:"srcAddr"`
	}
	type identity struct {
		Connections []connection `json:"connections"`
	}
	all := map[string]identity{}
	for _, c := range r.door.Clients() {
		all[c.IdentityID] = identity{append(all[c.IdentityID].Connections, connection{ID: c.ID, From: c.Address})}
	}
	return asJSON(map[string]any{"identity_connections": all})
}

// asJSON writes what always can be written: texts, numbers and truths.
func asJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}
