package management

import (
	"net/http"
	"slices"

	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// previewIn is the token of somebody.
type previewIn struct {
	Token string `json:"token" kind:"required,secret" doc:"A token of the signer. It is read and forgotten."`
}

// previewOut is what a login with it would do.
type previewOut struct {
	Accepted   bool          `json:"accepted" doc:"Whether a login with the token would open a session."`
	Reason     string        `json:"reason" doc:"Why it would not, and what to look at; empty if it would."`
	IsNew      bool          `json:"isNew" doc:"Whether an identity would come to be."`
	IdentityID string        `json:"identityId" kind:"nullable" doc:"Id of the identity that the token is of; null if there is none."`
	Name       string        `json:"name" doc:"What the identity is called, or would be."`
	ExternalID string        `json:"externalId" doc:"What the token calls it."`
	Attributes []string      `json:"attributes" doc:"Role attributes that the identity would have after the login."`
	Gained     []string      `json:"gained" doc:"Those of them that it does not have now."`
	Lost       []string      `json:"lost" doc:"Role attributes that it would not have any more."`
	Left       []people.Left `json:"left" doc:"Groups of the token that become no role attributes, and why."`
}

func mountPreview(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/external-jwt-signers/{id}/preview", Name: "previewExternalJwtSigner", Tag: "external-jwt-signers",
		Doc:  "Say what a login with a token of an external JWT signer would do: who it would be, and which role attributes they would gain and lose. Nothing is changed.",
		Auth: rest.Admin, Need: "ext-jwt-signer:preview", MaxBody: 64 << 10,
	}, func(c *rest.Call, in previewIn) (previewOut, error) {
		signer, ok := model.ExtJWTSigners.Get(c.Snap, c.Param("id"))
		if !ok {
			return previewOut{}, fault.NotFound(model.ExtJWTSigners.Def.Name, c.Param("id"))
		}
		p := s.Tokens.Preview(c.Context(), c.Snap, signer, in.Token)
		out := previewOut{
			Accepted: p.Refused == "", Reason: p.Refused, IsNew: p.Refused == "" && p.Identity == nil, Name: p.Name, ExternalID: p.Person.ExternalID,
			Attributes: orNone(p.After), Gained: beyond(p.After, p.Before), Lost: beyond(p.Before, p.After), Left: p.Person.Left,
		}
		if p.Identity != nil {
			out.IdentityID = p.Identity.ID
		}
		return out, nil
	})
}

// beyond are those of a list that another does not have.
func beyond(list, other []string) []string {
	return orNone(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) }))
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
