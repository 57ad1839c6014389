package api

import (
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/explain"
)

// Explainer asks the parts of this controller.
func (s *Service) Explainer() explain.Network {
	return explain.Network{
		Sessions: s.Sessions, Grants: s.Grants, Locked: s.Passwords.Locked,
		Online: func(routerID string) bool {
			_, online := s.Routers.Connected(routerID)
			return online
		},
		Hosts: func(snap *state.Snapshot, service *model.Service, routerID string) []*model.Terminator {
			var found []*model.Terminator
			for _, offered := range terminator.Offered(snap, s.Grants, service, func(to string) (int64, bool) { return s.Routers.Distance(routerID, to) }, "") {
				found = append(found, offered.Terminator)
			}
			return found
		},
	}
}
