package server

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
)

// offers reports whether clients are told that they may log in by OpenID Connect.
func (s *Server) offers() func() bool {
	if s.cfg.OIDC.Enabled != config.Auto {
		return func() bool { return s.cfg.OIDC.Enabled == config.On }
	}
	return (&offer{state: s.state, log: s.log}).Made
}

// offer is made while every edge router lets clients in that take it: a client that has
// taken it knows no other way as long as it runs.
type offer struct {
	state *state.State
	log   *slog.Logger

	mu sync.Mutex
	// Who asks may be anybody, as often as it likes: all routers are looked at only when
	// any has changed.
	known           bool
	routers, checks state.Edition
	made            bool
	why             string // it is not
}

// Made reports whether the offer is made now.
func (o *offer) Made() bool {
	snap := o.state.Snapshot()
	routers, checks := snap.Edition(model.EdgeRouters.Def), snap.Edition(model.PostureChecks.Def)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known && o.routers == routers && o.checks == checks {
		return o.made
	}
	made, why := offerable(snap)
	if !o.known || made != o.made || why != o.why {
		if made {
			o.log.Info("clients are told that they may log in by OpenID Connect: all routers take them then")
		} else {
			o.log.Info("clients are not told that they may log in by OpenID Connect", "reason", why)
		}
	}
	o.known, o.routers, o.checks, o.made, o.why = true, routers, checks, made, why
	return made
}

// misjudged are the types of posture checks by which routers of OpenZiti 2.0.3 refuse devices
// that pass here: they cannot read the version of some systems, and remember one program of
// several. Those of our own leave it to the controller.
var misjudged = map[string]bool{"OS": true, "PROCESS_MULTI": true}

// offerable reports whether all edge routers that clients may come to take those that log in
// by OpenID Connect, and why not. One that has never connected counts as one that does not,
// and one that has not enrolled does not count, since nobody can come to it.
func offerable(snap *state.Snapshot) (ok bool, why string) {
	reports, judges := snap.Len(model.PostureChecks.Def) > 0, false
	for c := range model.PostureChecks.All(snap) {
		judges = judges || misjudged[c.TypeID]
	}
	var lacking []string
	some := false
	for r := range model.EdgeRouters.All(snap) {
		if !r.IsVerified || r.Disabled {
			continue
		}
		some = true
		if !r.Bears() || reports && !r.Reports() || judges && !r.TakesDigests {
			lacking = append(lacking, r.Name)
		}
	}
	slices.SortFunc(lacking, cmp.Compare)
	switch {
	case !some:
		return false, "there is no router yet"
	case len(lacking) == 0:
		return true, ""
	case reports:
		return false, "the router " + lacking[0] + " has not shown that it takes them, and that it judges by what their devices report as the posture checks say"
	}
	return false, "the router " + lacking[0] + " has not shown that it takes them"
}
