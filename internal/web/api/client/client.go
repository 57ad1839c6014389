// Package client is the Edge Client API: what clients that use services need.
// Every list in it is scoped to its caller.
package client

import (
	"net/http"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// protocolsOut says how clients reach the controller.
type protocolsOut struct {
	HTTPS protocol `json:"https" doc:"Where the controller takes HTTPS requests."`
}

type protocol struct {
	Address string `json:"address" doc:"Host and port."`
}

// Mount adds the operations.
func Mount(a *rest.API, s *api.Service) {
	api.Mount(a, s)
	mountEnroll(a, s)
	mountCertificates(a, s)
	mountServices(a, s)
	mountHostKeys(a, s)
	mountSessions(a, s)
	mountProlong(a, s)
	mountUpdates(a, s)
	mountPosture(a, s)
	mountRouters(a, s)
	mountSigners(a)
	mountRequests(a, s)
	mountLater(a)
	// Clients ask before they have logged in at a controller that they have only
	// heard of.
	rest.Resource{Kind: model.Controllers.Def, Verbs: kind.Lists, Auth: rest.Anonymous, Derived: api.ControllerColumns(s)}.Mount(a)
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/protocols", Name: "listProtocols", Tag: "informational",
		Doc: "List the protocols that the controller listens on.", Auth: rest.Anonymous,
	}, func(*rest.Call, rest.None) (protocolsOut, error) {
		return protocolsOut{protocol{s.Address}}, nil
	})
}
