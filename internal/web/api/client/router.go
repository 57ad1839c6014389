package client

import (
	"net/http"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/policy/access"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// base is the members that answers show of every record.
var base = []string{"id", "createdAt", "updatedAt", "tags", "_links"}

// mountRouters offers the edge routers that the caller may connect to.
func mountRouters(a *rest.API, s *api.Service) {
	view := a.PartialView("currentIdentityEdgeRouter", model.EdgeRouters.Def, append(base,
		"name", "appData", "cost", "disabled", "noTraversal", "hostname", "isOnline", "supportedProtocols", "syncStatus",
	), api.RouterColumns(s)...)
	rest.ShowList(a, rest.Op{
		Method: http.MethodGet, Path: "/current-identity/edge-routers", Name: "getCurrentIdentityEdgeRouters", Tag: "current-identity",
		Doc: "List the edge routers that the caller may connect to.", Auth: rest.Full,
	}, view, func(c *rest.Call) (rest.Records, error) {
		routers := c.Snap.All(model.EdgeRouters.Def)
		if who := api.Caller(c).Identity(); !who.Admin() {
			routers = c.Snap.Within(model.EdgeRouters.Def, access.EdgeRouters(c.Snap, who.ID))
		}
		return func(yield func(kind.Record) bool) {
			for rec := range routers {
				if rec.(*model.EdgeRouter).IsVerified && !yield(rec) {
					return
				}
			}
		}, nil
	})
}

// mountSigners tells those who want to log in where they can. They may be
// anybody, so that they are told nothing else.
func mountSigners(a *rest.API) {
	view := a.PartialView("clientExternalJwtSigner", model.ExtJWTSigners.Def, []string{"id", "_links", "name", "externalAuthUrl"})
	rest.ShowList(a, rest.Op{
		Method: http.MethodGet, Path: "/external-jwt-signers", Name: "listExternalJwtSigners", Tag: "external-jwt-signers",
		Doc: "List the identity providers to log in with.", Auth: rest.Anonymous,
	}, view, func(c *rest.Call) (rest.Records, error) {
		return func(yield func(kind.Record) bool) {
			for signer := range model.ExtJWTSigners.All(c.Snap) {
				if signer.Enabled && signer.ExternalAuthURL != "" && !yield(signer) {
					return
				}
			}
		}, nil
	})
}
