package management

import (
	"net/http"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// enrollmentIn invites an identity.
type enrollmentIn struct {
	IdentityID string    `json:"identityId" kind:"required,among=identity" doc:"Id of the identity that is to enroll."`
	Method     string    `json:"method" kind:"required,enum=ott|ottca|updb" doc:"How to enroll: ott with a certificate that the controller issues, ottca with one of a registered CA, updb with a password."`
	ExpiresAt  time.Time `json:"expiresAt" kind:"required" doc:"When the token ends, which must be in the future."`
	CAID       string    `json:"caId" kind:"nullable,among=ca" doc:"Id of the CA of which a certificate is wanted; needed for the method ottca, and ignored for others."`
	Username   string    `json:"username" kind:"nullable,format=visible" doc:"User name that the identity gets; needed for the method updb, and ignored for others."`
}

// refreshIn gives an enrollment a new end.
type refreshIn struct {
	ExpiresAt time.Time `json:"expiresAt" kind:"required" doc:"When the new token ends, which must be in the future."`
}

func mountEnrollments(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/enrollments", Name: "createEnrollment", Tag: "enrollments",
		Doc: model.Enrollments.Doc, Auth: rest.Admin, Need: "enrollment:create",
	}, func(c *rest.Call, in enrollmentIn) (rest.Created, error) { return createEnrollment(c, s, in) })
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/enrollments/{id}/refresh", Name: "refreshEnrollment", Tag: "enrollments",
		Doc: "Give an enrollment a new end, and with it a new token; the old one is worthless.", Auth: rest.Admin, Need: "enrollment:refresh",
	}, func(c *rest.Call, in refreshIn) (rest.Located, error) { return refreshEnrollment(c, s, in) })
}

func createEnrollment(c *rest.Call, s *api.Service, in enrollmentIn) (rest.Created, error) {
	e := &model.Enrollment{Method: in.Method, IdentityID: in.IdentityID, ExpiresAt: in.ExpiresAt.UTC().Truncate(time.Millisecond)}
	switch in.Method {
	case model.MethodOTTCA:
		if e.CAID = in.CAID; e.CAID == "" {
			return rest.Created{}, fault.On(fault.CodeReference, "caId", "is required by the method ottca", nil)
		}
	case model.MethodUPDB:
		if e.Username = in.Username; e.Username == "" {
			return rest.Created{}, fault.On(fault.CodeReference, "username", "is required by the method updb", nil)
		}
	}
	if err := future(s, e.ExpiresAt); err != nil {
		return rest.Created{}, err
	}
	if err := s.Issuer.Issue(e, e.IdentityID); err != nil {
		return rest.Created{}, err
	}
	var id string
	err := c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		fresh := *e
		if err := c.Confine(tx, model.Enrollments.Def, &model.Enrollment{}, &fresh); err != nil {
			return err
		}
		err := model.Enrollments.Create(tx, &fresh)
		id = fresh.ID
		return err
	})
	return rest.Created{Path: "enrollments", ID: id}, err
}

func refreshEnrollment(c *rest.Call, s *api.Service, in refreshIn) (rest.Located, error) {
	id := c.Param("id")
	old, ok := model.Enrollments.Get(c.Snap, id)
	if !ok {
		return rest.Located{}, fault.NotFound("enrollment", id)
	}
	fresh := *old
	fresh.ExpiresAt = in.ExpiresAt.UTC().Truncate(time.Millisecond)
	if err := future(s, fresh.ExpiresAt); err != nil {
		return rest.Located{}, err
	}
	if err := s.Issuer.Issue(&fresh, fresh.Subject()); err != nil {
		return rest.Located{}, err
	}
	err := c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		return model.Enrollments.Edit(tx, id, func(e *model.Enrollment) error {
			e.Token, e.JWT, e.ExpiresAt = fresh.Token, fresh.JWT, fresh.ExpiresAt
			return nil
		})
	})
	return rest.Located{Path: "enrollments", ID: id}, err
}

// future refuses an end that is over already.
func future(s *api.Service, end time.Time) error {
	if end.After(s.Sessions.Now()) {
		return nil
	}
	return fault.On(fault.CodeReference, "expiresAt", "must be in the future", end.Format(time.RFC3339))
}
