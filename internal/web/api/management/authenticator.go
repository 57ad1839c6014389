package management

import (
	"crypto/x509"
	"net/http"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// authenticatorIn creates a credential. The method decides what it needs.
type authenticatorIn struct {
	IdentityID string    `json:"identityId" kind:"required,among=identity" doc:"Id of the identity that is to authenticate with it."`
	Method     string    `json:"method" kind:"required,enum=updb|cert" doc:"What to create: updb is a user name with a password, cert a client certificate."`
	Username   string    `json:"username" kind:"required,range=4..100,when=method:updb,format=visible" doc:"User name to log in with; no two authenticators have the same."`
	Password   string    `json:"password" kind:"required,secret,range=5..100,when=method:updb" doc:"Password to log in with, as the identity's authentication policy wants it."`
	CertPEM    string    `json:"certPem" kind:"required,when=method:cert" doc:"Client certificate as PEM, which the controller or a verified CA has issued."`
	Tags       kind.Tags `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null."`
}

// authenticatorUpdate replaces a user name and password.
type authenticatorUpdate struct {
	Username string    `json:"username" kind:"required,range=4..100,format=visible" doc:"User name to log in with from now on; no two authenticators have the same."`
	Password string    `json:"password" kind:"required,secret,range=5..100" doc:"Password to log in with from now on, as the identity's authentication policy wants it."`
	Tags     kind.Tags `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null."`
}

// authenticatorPatch changes what is given. Nothing in it can be empty.
type authenticatorPatch struct {
	Username string    `json:"username" kind:"range=4..100,format=visible" doc:"User name to log in with from now on; it stays as it is if not given."`
	Password string    `json:"password" kind:"secret,range=5..100" doc:"Password to log in with from now on, as the identity's authentication policy wants it; it stays as it is if not given."`
	Tags     kind.Tags `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null."`
}

// extensionIn asks for a certificate to be extended.
type extensionIn struct {
	RollKeys bool `json:"rollKeys" doc:"Whether its holder is to make a new key for it; it may keep the one that it has if not given."`
}

// unchangedParam keeps one from writing over what somebody else has changed: what a
// password was nobody can see, and so nobody could compare.
var unchangedParam = rest.FormatParam("unchangedSince",
	"The updatedAt that the authenticator had when it was read: the change is refused with PLAN_OUTDATED if it has another by now; it is made whatever there is if not given.",
	"date-time", "must be a moment as answers write it", isMoment)

func isMoment(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

func mountAuthenticators(a *rest.API, s *api.Service) {
	op := func(method, path, name, need, doc string) rest.Op {
		return rest.Op{Method: method, Path: "/authenticators" + path, Name: name, Tag: "authenticators", Doc: doc, Auth: rest.Admin, Need: need}
	}
	rest.Handle(a, op(http.MethodPost, "", "createAuthenticator", "authenticator:create", model.Authenticators.Doc), func(c *rest.Call, in authenticatorIn) (rest.Created, error) {
		return createAuthenticator(c, s, in)
	})
	guarded := func(o rest.Op) rest.Op {
		o.Params = []rest.Parameter{unchangedParam}
		return o
	}
	rest.Handle(a, guarded(op(http.MethodPut, "/{id}", "updateAuthenticator", "authenticator:update", "Replace the user name and password of an authenticator.")),
		func(c *rest.Call, in authenticatorUpdate) (rest.Empty, error) {
			if in.Tags == nil {
				in.Tags = kind.Tags{}
			}
			return rest.Empty{}, changePassword(c, s, authenticatorPatch(in))
		})
	rest.Handle(a, guarded(op(http.MethodPatch, "/{id}", "patchAuthenticator", "authenticator:update", "Change the user name or password of an authenticator.")),
		func(c *rest.Call, in authenticatorPatch) (rest.Empty, error) {
			return rest.Empty{}, changePassword(c, s, in)
		})
	rest.Handle(a, op(http.MethodDelete, "/{id}", "deleteAuthenticator", "authenticator:delete", "Delete an authenticator and end its sessions."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			id := c.Param("id")
			if err := c.State.Delete(c.Context(), c.Author(), model.Authenticators.Def, id); err != nil {
				return rest.Empty{}, err
			}
			return rest.Empty{}, s.Sessions.EndAll(c.Context(), c.Author(), "authenticatorId", id)
		})
	rest.Handle(a, op(http.MethodPost, "/{id}/request-extend", "requestExtendAuthenticator", "authenticator:extend", "Ask the holder of a certificate to have it extended now, with a new key if need be."),
		func(c *rest.Call, in extensionIn) (rest.Empty, error) {
			return rest.Empty{}, s.Desk.Request(c.Context(), c.Author(), c.Param("id"), in.RollKeys)
		})
}

func createAuthenticator(c *rest.Call, s *api.Service, in authenticatorIn) (rest.Created, error) {
	auth := model.NewPassword(in.IdentityID, in.Username, "")
	auth.Method, auth.Tags = in.Method, in.Tags
	err := c.Confine(c.Snap, model.Authenticators.Def, model.Authenticators.New(), auth)
	if err != nil {
		return rest.Created{}, err
	}
	if in.Method == model.MethodUPDB {
		auth.PasswordHash, err = s.Passwords.Set(c.Context(), c.Party(), c.Snap, in.IdentityID, in.Password)
	} else {
		err = useCertificate(c.Snap, s, auth, in.CertPEM)
	}
	if err != nil {
		return rest.Created{}, err
	}
	var id string
	err = c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		fresh := model.Authenticators.Clone(auth).(*model.Authenticator)
		err := model.Authenticators.Create(tx, fresh)
		id = fresh.ID
		return err
	})
	return rest.Created{Path: "authenticators", ID: id}, err
}

// useCertificate takes a certificate that chains to our own authority or to a
// verified one of somebody else.
func useCertificate(r kind.Reader, s *api.Service, auth *model.Authenticator, text string) error {
	certs, err := pki.ParseCertificates([]byte(text), 1)
	if err != nil {
		return fault.On(fault.CodePEM, "certPem", "must be exactly one PEM certificate", nil)
	}
	if certs[0].IsCA {
		return fault.Invalid("certPem", "must not be the certificate of a CA", certs[0].Subject.String())
	}
	anchors, owners := authn.Anchors(r, s.Bundle())
	leaf, err := pki.NewRoots(anchors).VerifyLeaf([]*x509.Certificate{certs[0]}, pki.VerifyOptions{Now: s.Sessions.Now(), Usages: authn.ForClients})
	if err != nil {
		return fault.Invalid("certPem", "must be issued by the controller or by a verified CA, and be good for client authentication", certs[0].Subject.String())
	}
	auth.CertPEM = terse.Of(pki.EncodeCertificates(certs[0]))
	auth.Fingerprint, auth.NotAfter = pki.Fingerprint(certs[0]), kind.MomentOf(certs[0].NotAfter)
	chain := leaf.Chain()
	auth.CAID = owners[pki.Fingerprint(chain[len(chain)-1])]
	return nil
}

// changePassword sets what the patch holds.
func changePassword(c *rest.Call, s *api.Service, in authenticatorPatch) error {
	id := c.Param("id")
	auth, ok := model.Authenticators.Get(c.Snap, id)
	if !ok {
		return fault.NotFound("authenticator", id)
	}
	if auth.Method != model.MethodUPDB {
		return fault.New(fault.CodeAuthenticator, "only a user name and password can be changed, and this is a certificate")
	}
	since := unchangedParam.Of(c)
	if read, err := time.Parse(time.RFC3339, since); since != "" && (err != nil || !auth.UpdatedAt.Time().Truncate(time.Millisecond).Equal(read)) {
		return api.ErrChanged
	}
	return s.ChangePassword(c, auth, in.Username, in.Password, in.Tags, since != "")
}
