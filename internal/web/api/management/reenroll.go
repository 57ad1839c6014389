package management

import (
	"net/http"
	"time"

	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// mountReenroll offers the ways back to enrollment, and what CAs need.
func mountReenroll(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/authenticators/{id}/re-enroll", Name: "reEnrollAuthenticator", Tag: "authenticators",
		Doc: "Delete an authenticator and invite its identity to enroll again in the same way.", Auth: rest.Admin, Need: "authenticator:re-enroll",
	}, func(c *rest.Call, in refreshIn) (rest.Created, error) { return revert(c, s, in) })
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/edge-routers/{id}/re-enroll", Name: "reEnrollEdgeRouter", Tag: "edge-routers",
		Doc: "Take an edge router's certificate away and invite it to enroll again.", Auth: rest.Admin, Need: "edge-router:re-enroll",
	}, func(c *rest.Call, _ rest.None) (rest.Empty, error) {
		id := c.Param("id")
		e := &model.Enrollment{
			Method: model.MethodErOTT, EdgeRouterID: id,
			ExpiresAt: s.Sessions.Now().Add(enroll.Lifetime).UTC().Truncate(time.Millisecond),
		}
		if err := s.Issuer.Issue(e, id); err != nil {
			return rest.Empty{}, err
		}
		return rest.Empty{}, s.Desk.Reinvite(c.Context(), c.Author(), id, e)
	})
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/cas/{id}/verify", Name: "verifyCa", Tag: "cas", Auth: rest.Admin, Need: "ca:verify", MaxBody: 64 << 10,
		Doc: "Verify a CA with a certificate that it signed for its verification token.", Consumes: []string{"text/plain"},
	}, func(c *rest.Call, in rest.Raw) (rest.Empty, error) {
		return rest.Empty{}, s.Desk.VerifyCA(c.Context(), c.Author(), c.Snap, c.Param("id"), in.Data)
	})
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/cas/{id}/jwt", Name: "getCaJwt", Tag: "cas", Auth: rest.Admin, Need: "ca:reveal",
		Doc: "Get the token by which holders of a CA's certificates enroll.", Types: []string{"application/jwt"},
	}, func(c *rest.Call, _ rest.None) (rest.File, error) {
		if _, ok := model.CAs.Get(c.Snap, c.Param("id")); !ok {
			return rest.File{}, fault.NotFound("ca", c.Param("id"))
		}
		token, err := s.Issuer.CAToken()
		return rest.File{Type: "application/jwt", Body: []byte(token)}, err
	})
}

// revert turns an authenticator back into the enrollment that it came from.
func revert(c *rest.Call, s *api.Service, in refreshIn) (rest.Created, error) {
	id := c.Param("id")
	auth, ok := model.Authenticators.Get(c.Snap, id)
	if !ok {
		return rest.Created{}, fault.NotFound("authenticator", id)
	}
	e := &model.Enrollment{IdentityID: auth.IdentityID, ExpiresAt: in.ExpiresAt.UTC().Truncate(time.Millisecond)}
	switch {
	case auth.Method == model.MethodUPDB:
		e.Method, e.Username = model.MethodUPDB, auth.Username
	case auth.CAID != "":
		e.Method, e.CAID = model.MethodOTTCA, auth.CAID
	default:
		e.Method = model.MethodOTT
	}
	if err := future(s, e.ExpiresAt); err != nil {
		return rest.Created{}, err
	}
	if err := s.Issuer.Issue(e, auth.IdentityID); err != nil {
		return rest.Created{}, err
	}
	enrollment, err := s.Desk.Revert(c.Context(), c.Author(), auth, e)
	if err != nil {
		return rest.Created{}, err
	}
	return rest.Created{Path: "enrollments", ID: enrollment}, s.Sessions.EndAll(c.Context(), c.Author(), "authenticatorId", id)
}
