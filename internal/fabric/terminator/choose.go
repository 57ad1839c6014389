package terminator

import (
	"math/rand/v2"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/permit"
	"netkeep/internal/model"
)

// Candidate is a terminator that a circuit could end at.
type Candidate struct {
	*model.Terminator
	// Path is what it costs to get to its router.
	Path int
}

// Offered returns the terminators of a service at which a circuit of a client
// could end: those of the host with a name, empty if it does not matter, who may
// still host, whom a path leads to, and who can encrypt if the service wants it.
func Offered(snap *state.Snapshot, sessions permit.Register, service *model.Service, path func(routerID string) (int64, bool), host string) []Candidate {
	var among []Candidate
	for t := range model.Terminators.Select(snap, "service", service.ID) {
		if t.Identity != host || !hosted(snap, sessions, t) {
			continue
		}
		// A router that hosts itself says its key when it is dialled.
		if service.EncryptionRequired && t.Binding != BindingTunnel && t.Told(message.PeerPublicKey) == nil {
			continue
		}
		if cost, ok := path(t.RouterID); ok {
			among = append(among, Candidate{Terminator: t, Path: int(cost)})
		}
	}
	return among
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

// Choose returns the terminator that a circuit should end at; ok is false if
// there is none. Those that must be used go before the ordinary ones and those
// before the ones that failed; among equals the service's strategy decides.
// sticky is the terminator that a client wants again, if it is known to it.
func Choose(strategy string, among []Candidate, sticky string) (chosen Candidate, ok bool) {
	best := first(among)
	if len(best) == 0 {
		return Candidate{}, false
	}
	switch strategy {
	case Random:
		return best[rand.IntN(len(best))], true
	case Weighted:
		return weighted(best), true
	case Sticky:
		for _, c := range best {
			if c.ID == sticky {
				return c, true
			}
		}
	}
	return cheapest(best), true
}

// rank is the order of precedences.
func rank(precedence string) int {
	switch precedence {
	case model.PrecedenceRequired:
		return 0
	case model.PrecedenceFailed:
		return 2
	}
	return 1
}

// first returns the candidates of the best precedence that there is.
func first(among []Candidate) []Candidate {
	var best []Candidate
	at := 3
	for _, c := range among {
		switch r := rank(c.Precedence); {
		case r < at:
			best, at = append(best[:0], c), r
		case r == at:
			best = append(best, c)
		}
	}
	return best
}

func (c Candidate) cost() int { return c.Cost + c.Path }

// cheapest returns one of those that cost least, so that equals share the
// load.
func cheapest(among []Candidate) Candidate {
	best, n := among[0], 1
	for _, c := range among[1:] {
		switch {
		case c.cost() < best.cost():
			best, n = c, 1
		case c.cost() == best.cost():
			if n++; rand.IntN(n) == 0 {
				best = c
			}
		}
	}
	return best
}

// weighted returns one of them, each the more likely the less it costs.
func weighted(among []Candidate) Candidate {
	total := 0.0
	for _, c := range among {
		total += weight(c)
	}
	at := rand.Float64() * total
	for _, c := range among {
		if at -= weight(c); at < 0 {
			return c
		}
	}
	return among[len(among)-1]
}

func weight(c Candidate) float64 { return 1 / float64(1+c.cost()) }
