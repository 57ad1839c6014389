package server

import (
	"context"
	"strings"

	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/rest"
)

// maxWaits is how many requests may wait at a time for what other controllers
// have written.
const maxWaits = 1000

// share has requests wait for what other controllers have written, if there may be
// others.
func (s *Server) share(run context.Context) *rest.Shared {
	if !s.cfg.Shared() {
		return nil
	}
	looks := state.NewLooks(s.state)
	s.jobs.Go(func() { looks.Run(run) })
	return &rest.Shared{Looks: looks, Waits: &limit.Slots{Max: maxWaits, Share: limit.Share(s.cfg.Limits.Share)}}
}

// places is where all controllers are, this one first, for those whom it invites.
func (s *Server) places() []enroll.Place {
	list := []enroll.Place{{Client: s.Address(), Control: s.RouterAddress()}}
	all, _ := roster.List(s.state.Snapshot())
	for _, c := range all {
		if c.ID != s.roster.ID() {
			list = append(list, enroll.Place{Client: c.Client, Control: strings.TrimPrefix(c.Address, "tls:")})
		}
	}
	return list
}

// roots are the fingerprints by which those whom this controller invites know the
// others.
func (s *Server) roots() []string { return rootNames(s.keys.Authorities().Roots()) }
