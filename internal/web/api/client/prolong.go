package client

import (
	"net/http"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// mountProlong lets somebody who logged in with a token go on in the same session when that
// ends: connections that were made in it go on too.
func mountProlong(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/current-api-session/prolong", Name: "prolongCurrentApiSession", Tag: "current-api-session",
		Doc:  "Show a newer token of the same signer in the Authorization header, upon which the session rests from now on: it ends with that one.",
		Auth: rest.Partial, Attempts: &s.Logins,
	}, func(c *rest.Call, _ rest.None) (rest.Empty, error) {
		if c.Bearer() == "" {
			return rest.Empty{}, fault.Invalid("Authorization", "must have a token of the signer that the session rests upon", nil)
		}
		proof, err := s.Tokens.Again(c.Context(), c.Author(), c.Latest, api.Caller(c), c.Bearer())
		if err != nil {
			return rest.Empty{}, err
		}
		return rest.Empty{}, s.Sessions.Prolong(c.Context(), c.Author(), api.Caller(c), proof)
	})
}
