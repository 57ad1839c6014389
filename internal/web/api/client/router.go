package client

import (
	"net/http"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
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
		Doc: "List the edge routers that the caller may connect to.", Auth: rest.Full, Polled: true,
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

// mountSigners tells those who want to log in where they can, and as what if
// the signer says so. They may be anybody, so that they are told nothing else.
func mountSigners(a *rest.API) {
	view := a.PartialView("clientExternalJwtSigner", model.ExtJWTSigners.Def,
		[]string{"id", "_links", "name", "externalAuthUrl", "clientId", "scopes", "audience", "targetToken", "enrollToCertEnabled", "enrollToTokenEnabled"}, signerColumns...)
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

// signerColumns are what a client needs that is to log in as a certain
// application. A signer that names none shows none of them.
var signerColumns = []rest.Derived{
	signerColumn("clientId", "What the identity provider calls the application to log in with; left out if the signer does not say.", api.Text,
		func(dst []byte, s *model.ExtJWTSigner) []byte { return kind.AppendText(dst, s.ClientID) }),
	signerColumn("audience", "Audience to ask the identity provider for; left out without clientId.", api.Text,
		func(dst []byte, s *model.ExtJWTSigner) []byte {
			if s.Audience == "" {
				return dst
			}
			return kind.AppendText(dst, s.Audience)
		}),
	signerColumn("targetToken", "Which of the tokens that the identity provider gives to show to the controller: ACCESS or ID; left out without clientId.", api.Text,
		func(dst []byte, s *model.ExtJWTSigner) []byte { return kind.AppendText(dst, s.TargetToken) }),
}

func signerColumn(name, doc string, schema kind.Schema, show func([]byte, *model.ExtJWTSigner) []byte) rest.Derived {
	return rest.Derived{Name: name, Doc: doc, Schema: schema, Optional: true, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
		if s := rec.(*model.ExtJWTSigner); s.ClientID != "" {
			return show(dst, s)
		}
		return dst
	}}
}
