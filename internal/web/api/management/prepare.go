package management

import (
	"time"

	"netkeep/internal/auth/enroll"
	"netkeep/internal/data/state"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// also is what a create writes beside its record.
type also = func(tx *state.Tx) error

func none(*state.Tx) error { return nil }

// prepareCA makes the word by which a CA is verified.
func prepareCA(_ *rest.Call, _ kind.Body, rec kind.Record) (also, error) {
	rec.(*model.CA).VerificationToken = state.NewID()
	return none, nil
}

// prepareSigner has the log warn of a signer for whose tokens it does not
// matter whom they were made for: another application that gets one can show
// it here.
func prepareSigner(s *api.Service) func(*rest.Call, kind.Body, kind.Record) (also, error) {
	return func(_ *rest.Call, _ kind.Body, rec kind.Record) (also, error) {
		if signer := rec.(*model.ExtJWTSigner); signer.Audience == "" {
			s.Sessions.Log.Warn("a new external JWT signer has no audience, so tokens that its issuer made for other applications are accepted; give it one",
				"signer", signer.ID, "issuer", signer.Issuer)
		}
		return none, nil
	}
}

// prepareEdgeRouter invites the router.
func prepareEdgeRouter(s *api.Service) func(*rest.Call, kind.Body, kind.Record) (also, error) {
	return func(_ *rest.Call, _ kind.Body, rec kind.Record) (also, error) {
		id := rec.Base().ID
		return invite(s, &model.Enrollment{Method: model.MethodErOTT, EdgeRouterID: id}, id)
	}
}

// prepareRouter invites the router.
func prepareRouter(s *api.Service) func(*rest.Call, kind.Body, kind.Record) (also, error) {
	return func(_ *rest.Call, _ kind.Body, rec kind.Record) (also, error) {
		id := rec.Base().ID
		return invite(s, &model.Enrollment{Method: model.MethodTrOTT, TransitRouterID: id}, id)
	}
}

// identityEnrollment is how a new identity is to enroll. Only the first of
// the three counts.
type identityEnrollment struct {
	OTT   bool   `json:"ott" doc:"Whether to invite it with a token for a certificate that the controller issues."`
	OTTCA string `json:"ottca" doc:"Id of a CA with a certificate of which it is to enroll; counts if ott is not true."`
	UPDB  string `json:"updb" kind:"range=4..100,format=visible" doc:"User name under which it is to enroll with a password; counts if neither of the others is given."`
}

// identityIn is what a create of an identity may hold beyond its fields.
type identityIn struct {
	Enrollment *identityEnrollment `json:"enrollment" doc:"How the new identity is to enroll; without it an enrollment has to be created later."`
}

var (
	identityInput  = kind.NewInput[identityIn]()
	identityInputs = identityInput.BodySchema()["properties"].(kind.Schema)
)

// prepareIdentity invites the identity in the way that the body asks for.
func prepareIdentity(s *api.Service) func(*rest.Call, kind.Body, kind.Record) (also, error) {
	return func(_ *rest.Call, body kind.Body, rec kind.Record) (also, error) {
		in, err := identityInput.Read(body)
		if err != nil || in.Enrollment == nil {
			return none, err
		}
		e := &model.Enrollment{IdentityID: rec.Base().ID}
		switch want := in.Enrollment; {
		case want.OTT:
			e.Method = model.MethodOTT
		case want.OTTCA != "":
			e.Method, e.CAID = model.MethodOTTCA, want.OTTCA
		case want.UPDB != "":
			e.Method, e.Username = model.MethodUPDB, want.UPDB
		default:
			return none, nil
		}
		return invite(s, e, rec.Base().ID)
	}
}

// invite signs an enrollment now, to be written with what it is for.
func invite(s *api.Service, e *model.Enrollment, subject string) (also, error) {
	e.ExpiresAt = s.Sessions.Now().Add(enroll.Lifetime).UTC().Truncate(time.Millisecond)
	if err := s.Issuer.Issue(e, subject); err != nil {
		return nil, err
	}
	return func(tx *state.Tx) error {
		fresh := *e
		return model.Enrollments.Create(tx, &fresh)
	}, nil
}

// refuseEdge refuses a change of an edge router's entry among the routers.
func refuseEdge(rec kind.Record) error { return rec.(*model.Router).Foreign() }
