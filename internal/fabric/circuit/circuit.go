// Package circuit is the connections that routers carry from those who dial to
// those who host: it decides whether one may be, tells the routers on its path
// to make it, leads it over others when one of them or a link is lost, and ends
// it when what it rests on is gone. It keeps circuits in memory only: routers go
// on with them when a controller restarts, and tell it of them when they come
// back. It must not import rest or api.
package circuit

import (
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/fabric/path"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// Circuit is a connection from the router where somebody dials to the one
// where the service is hosted: what is told of it, and what it takes to lead it.
// It is never changed, only replaced.
type Circuit struct {
	model.Circuit

	// HostSessionID is the session that it is hosted with; empty if a router
	// itself is the host.
	HostSessionID string
	// Ingress and Egress are the addresses of its ends; empty for one that is
	// older than this controller, until all its routers have told of it.
	Ingress, Egress string
	Ready           time.Time // when all its routers had said that they carry it; zero before

	older   bool // than this controller: known by the word of routers alone
	foreign bool // and of another controller, which has made its id

	// told is what routers say that they do with it, by router and where
	// something comes from, as long as that leads not from one end to the other.
	// Path and Links are in no order then, except that the ends are where they
	// belong once they are known.
	told map[string]map[string]string
}

// Marks are what routers count traffic by.
func (c *Circuit) Marks() map[string]string {
	return map[string]string{"serviceId": c.ServiceID, "clientId": c.IdentityID, "hostId": c.HostID}
}

// involves reports whether a router is on the path.
func (c *Circuit) involves(routerID string) bool { return slices.Contains(c.Path, routerID) }

// movable reports whether all is known of it that another path needs: its ends.
func (c *Circuit) movable() bool { return c.Ingress != "" && c.Egress != "" }

// whole reports whether its path is known.
func (c *Circuit) whole() bool { return c.movable() && c.told == nil }

// first and last are the routers at its ends.
func (c *Circuit) first() string { return c.Path[0] }
func (c *Circuit) last() string  { return c.Path[len(c.Path)-1] }

// over returns the circuit on another path.
func (c *Circuit) over(p path.Path, now time.Time) *Circuit {
	next := *c
	next.Path, next.Links, next.Cost, next.Moved, next.UpdatedAt, next.told = p.Routers, p.Links, p.Cost, now, kind.MomentOf(now), nil
	return &next
}

// forwards is what the router at a place of the path does with what arrives: it
// comes from the end that is there or from the link before, and goes to the end
// or the link behind, and the other way.
func (c *Circuit) forwards(place int) []message.Forward {
	from, to := c.Ingress, c.Egress
	fromType, toType := message.ToStart, message.ToEnd
	if place > 0 {
		from, fromType = c.Links[place-1], message.ToLink
	}
	if place < len(c.Links) {
		to, toType = c.Links[place], message.ToLink
	}
	return []message.Forward{{From: from, To: to, Type: toType}, {From: to, To: from, Type: fromType}}
}

const (
	alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
	idLength = 22
)

// newID returns a random text that no other has: 131 bits. It begins with a letter
// or a digit, since people paste it into command lines.
func newID() string {
	b := make([]byte, idLength)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = alphabet[b[i]&63]
	}
	if b[0] == '-' || b[0] == '_' {
		return newID()
	}
	return string(b)
}

// The addresses of ends can be told from each other and from the ids of links,
// so that a path can be put together from what routers say.
const (
	ingressPrefix = "in."
	egressPrefix  = "out."
)

// A circuit's id begins with what all have in common that one controller has made
// since it started, so that it never takes one on again that it has ended. It
// names the sessions that the circuit is dialled and hosted with, so that a
// controller that has just started knows whose the circuits are that routers tell
// it of.
func circuitID(epoch, dial, host string) string {
	return epoch + newID()[:idLength-epochLength] + "." + dial + "." + host
}

// epochLength is enough that a controller that has started anew does not take
// the circuits of before for its own.
const epochLength = 6

func newEpoch() string { return newID()[:epochLength] }

// sessionsOf are the sessions in a circuit's id.
func sessionsOf(circuitID string) (dial, host string, ok bool) {
	parts := strings.Split(circuitID, ".")
	if len(parts) != 3 || parts[1] == "" {
		return "", "", false
	}
	return parts[1], parts[2], true
}
