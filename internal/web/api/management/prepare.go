package management

import (
	"net/netip"
	"net/url"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// preparing is what a create needs beyond its body.
type preparing = func(c *rest.Call, body kind.Body, id string) (rest.Prepared, error)

// prepareCA makes the word by which a CA is verified.
func prepareCA(*rest.Call, kind.Body, string) (rest.Prepared, error) {
	word := state.NewID()
	return rest.Prepared{Set: func(rec kind.Record) { rec.(*model.CA).VerificationToken = word }}, nil
}

// warnOfSigner has the log warn of a signer for whose tokens it does not
// matter whom they were made for: another application that gets one can show
// it here. So it does of one whose keys are fetched without TLS: whoever is on the
// way to the endpoint could say that others are its keys.
func warnOfSigner(s *api.Service) func(kind.Record) {
	return func(rec kind.Record) {
		signer := rec.(*model.ExtJWTSigner)
		if signer.Audience == "" {
			s.Sessions.Log.Warn("a new external JWT signer has no audience, so tokens that its issuer made for other applications are accepted; give it one",
				"signer", signer.ID, "issuer", signer.Issuer)
		}
		if u, err := url.Parse(signer.JWKSEndpoint); err == nil && u.Scheme == "http" && !nearby(u.Hostname()) {
			s.Sessions.Log.Warn("the keys of a new external JWT signer are fetched without TLS, so whoever is on the way can put others in their place; give it an address that begins with https",
				"signer", signer.ID, "issuer", signer.Issuer)
		}
	}
}

// nearby reports whether what a host is sent does not leave the machine.
func nearby(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// prepareEdgeRouter invites the router.
func prepareEdgeRouter(s *api.Service) preparing {
	return func(c *rest.Call, _ kind.Body, id string) (rest.Prepared, error) {
		return invite(c, s, &model.Enrollment{Method: model.MethodErOTT, EdgeRouterID: id}, id)
	}
}

// prepareRouter invites the router.
func prepareRouter(s *api.Service) preparing {
	return func(c *rest.Call, _ kind.Body, id string) (rest.Prepared, error) {
		return invite(c, s, &model.Enrollment{Method: model.MethodTrOTT, TransitRouterID: id}, id)
	}
}

// identityEnrollment is how a new identity is to enroll. Only the first of
// the three counts.
type identityEnrollment struct {
	OTT   bool   `json:"ott" doc:"Whether to invite it with a token for a certificate that the controller issues."`
	OTTCA string `json:"ottca" kind:"among=ca" doc:"Id of a CA with a certificate of which it is to enroll; counts if ott is not true."`
	UPDB  string `json:"updb" kind:"range=4..100,format=visible" doc:"User name under which it is to enroll with a password; counts if neither of the others is given."`
}

// identityIn is what a create of an identity may hold beyond its fields.
type identityIn struct {
	Enrollment *identityEnrollment `json:"enrollment" doc:"How the new identity is to enroll; without it an enrollment has to be created later."`
}

var identityInput = kind.NewInput[identityIn]()

// prepareIdentity invites the identity in the way that the body asks for.
func prepareIdentity(s *api.Service) preparing {
	return func(c *rest.Call, body kind.Body, id string) (rest.Prepared, error) {
		in, err := identityInput.Read(body)
		if err != nil || in.Enrollment == nil {
			return rest.Prepared{}, err
		}
		e := &model.Enrollment{IdentityID: id}
		switch want := in.Enrollment; {
		case want.OTT:
			e.Method = model.MethodOTT
		case want.OTTCA != "":
			e.Method, e.CAID = model.MethodOTTCA, want.OTTCA
		case want.UPDB != "":
			e.Method, e.Username = model.MethodUPDB, want.UPDB
		default:
			return rest.Prepared{}, nil
		}
		return invite(c, s, e, id)
	}
}

// invite signs an enrollment now, to be written with what it is for.
func invite(c *rest.Call, s *api.Service, e *model.Enrollment, subject string) (rest.Prepared, error) {
	if err := s.SignInvitation(e, subject); err != nil {
		return rest.Prepared{}, err
	}
	return rest.Prepared{Also: func(tx *state.Tx, body kind.Body) error {
		fresh := *e
		if fresh.CAID != "" { // which may be a name that only the write can look up
			in, err := identityInput.Read(body)
			if err != nil {
				return err
			}
			fresh.CAID = in.Enrollment.OTTCA
			bare := *e // the identity is of this write, and whoever makes it need not read others
			bare.CAID = ""
			if err := c.Confine(tx, model.Enrollments.Def, &bare, &fresh); err != nil {
				return err
			}
		}
		return model.Enrollments.Create(tx, &fresh)
	}}, nil
}

// refuseEdge refuses a change of an edge router's entry among the routers.
func refuseEdge(rec kind.Record) error { return rec.(*model.Router).Foreign() }
