package terminator

import (
	"math/rand/v2"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// Candidate is a terminator that a circuit could end at.
type Candidate struct {
	*model.Terminator
	// Path is what it costs to get to its router, and Dynamic what the
	// terminator costs more because it failed lately.
	Path, Dynamic int
}

// Offered returns the terminators of a service at which a circuit of a client
// could end: those of the host with a name, empty if it does not matter, who may
// still host, whom a path leads to, and who can encrypt if the service wants it.
func Offered(snap *state.Snapshot, sessions permit.Register, service *model.Service, path func(routerID string) (int64, bool), host string) []Candidate {
	var among []Candidate
	for t := range model.Terminators.Select(snap, "service", service.ID) {
		if t.Identity != host || !usable(snap, sessions, service, t) {
			continue
		}
		if cost, ok := path(t.RouterID); ok {
			among = append(among, Candidate{Terminator: t, Path: int(cost)})
		}
	}
	return among
}

// usable reports whether a circuit can end at a terminator of the service, if
// its router can be reached.
func usable(snap *state.Snapshot, sessions permit.Register, service *model.Service, t *model.Terminator) bool {
	// A router that hosts itself says its key when it is dialled.
	if service.EncryptionRequired && t.Binding != BindingTunnel && t.Told(message.PeerPublicKey) == nil {
		return false
	}
	return hosted(snap, sessions, t)
}

// hosted reports whether a terminator's host may still host. Its router or we
// may have yet to take note that it may not.
func hosted(snap *state.Snapshot, sessions permit.Register, t *model.Terminator) bool {
	if t.SessionID == "" {
		return true
	}
	s, ok := model.Sessions.Get(snap, t.SessionID)
	return ok && sessions.Live(snap, s)
}

// The strategies that services may name; what is none of them is the first.
const (
	SmartRouting = "smartrouting"
	Weighted     = "weighted"
	Random       = "random"
	Sticky       = "sticky"
)

// precedences are those of terminators: what must be used goes before what is
// ordinary, and that before what failed.
var precedences = [...]string{model.PrecedenceRequired, model.PrecedenceDefault, model.PrecedenceFailed}

// last is the rank of what failed.
const last = len(precedences) - 1

// rank is the place of a precedence.
func rank(precedence string) int {
	switch precedence {
	case model.PrecedenceRequired:
		return 0
	case model.PrecedenceFailed:
		return last
	}
	return 1
}

// standing is the rank of a terminator: those of a router that asked for no
// more circuits count as failed.
func standing(snap *state.Snapshot, t *model.Terminator) int {
	if model.Leaving(snap, t.RouterID) {
		return last
	}
	return rank(t.Precedence)
}

func (c Candidate) cost() int { return c.Cost + c.Path + c.Dynamic }

// weight is how likely something is chosen by the weighted strategy, against
// others: what costs twice as much, half as often.
func weight(cost int) float64 { return 1 / float64(1+cost) }

// draw returns one of several, each as likely as its weight says.
func draw[T any](among []T, weight func(T) float64) T {
	total := 0.0
	for _, x := range among {
		total += weight(x)
	}
	at := rand.Float64() * total
	for _, x := range among {
		if at -= weight(x); at < 0 {
			return x
		}
	}
	return among[len(among)-1]
}
