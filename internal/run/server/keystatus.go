package server

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/keyring"
)

// sharedFile is where in the data directory one of several controllers says which
// keys each of them has, and sharedEvery how often it does if nothing has changed.
const (
	sharedFile  = "controllers"
	sharedEvery = 10 * time.Second
)

// SharedKeys is which keys the controllers of a network have, as one of them sees
// it.
type SharedKeys struct {
	At time.Time `json:"at"`
	// Generation is how often they have changed, and Next what is used as soon as
	// all have it; empty for nothing.
	Generation int    `json:"generation"`
	Next       string `json:"next,omitempty"`
	// Lacking are the controllers that have not said that they have them.
	Lacking     []string         `json:"lacking,omitempty"`
	Controllers []ControllerKeys `json:"controllers"`
	// Restart are the controllers that have to be started again, to trust another CA
	// between them, or to trust one no more.
	Restart []string `json:"restart,omitempty"`
	// Refused is why the last change that was wanted here was not made; empty if it
	// was.
	Refused string `json:"refused,omitempty"`
}

// ControllerKeys is which keys one controller has.
type ControllerKeys struct {
	ID         string `json:"id"`
	Generation int    `json:"generation"`
	keyring.Names
}

// sayKeys leaves it for commands on this machine.
func (s *Server) sayKeys(ring keyring.Ring, r *round) error {
	s.ring.Store(&ring)
	said := SharedKeys{
		At: r.now.UTC().Truncate(sharedEvery), Generation: ring.Generation, Next: ring.Next, Lacking: ring.Lacking(r.list, r.now), Refused: s.keysRefused,
	}
	for _, id := range r.list {
		h := ring.Holders[id] // of one of before keys were shared it is empty
		said.Controllers = append(said.Controllers, ControllerKeys{id, h.Generation, h.Keys})
	}
	if r.proposed {
		if said.Refused = ""; r.refused != nil {
			said.Refused = r.refused.Error()
		}
		s.keysRefused = said.Refused
	}
	said.Restart = outrun(ring, r)
	s.warnDiffering(ring)
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return s.dir.note(sharedFile, string(text))
}

// outrun are the controllers that trust others, as members of the store, than they
// would if they were started now.
func outrun(ring keyring.Ring, r *round) (ids []string) {
	now := rootNames(r.own.Cluster().Trusted())
	slices.Sort(now)
	for _, id := range r.list {
		trusts := strings.Fields(ring.Holders[id].Trusts)
		slices.Sort(trusts)
		if len(trusts) > 0 && ring.Has(id) && r.own.Generation() == ring.Generation && !slices.Equal(trusts, now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// warnDiffering says once that keys of this controller differ from those of others
// although nobody has changed them: somebody has copied some by hand.
func (s *Server) warnDiffering(ring keyring.Ring) {
	own := ring.Holders[s.roster.ID()]
	differs := own.Generation == ring.Generation && own.Digest != ring.Digest
	if differs && !s.differs {
		s.log.Warn("the keys of this controller are not those that others have: put the pki directory there that another controller has, all of it but server.*, peer.* and handover.key", "directory", s.dir.sub(keysDir))
	}
	s.differs = differs
}

// has reports whether a controller has the keys that the network has now.
func (k *SharedKeys) has(id string) bool { return !slices.Contains(k.Lacking, id) }

// Has is that as people are told.
func (k *SharedKeys) Has(c ControllerKeys) string {
	if k.has(c.ID) {
		return "has all"
	}
	return "lacks the last"
}

// old reports whether the controller has said nothing for a while.
func (k *SharedKeys) old(now time.Time) bool { return now.Sub(k.At) > progressOld }
