package client

import (
	"crypto/x509"
	"net/http"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// pemTypes are the content types under which clients send a CSR.
var pemTypes = []string{"application/pkcs10", "application/x-pem-file", "text/plain", "application/pkcs7-mime"}

var (
	tokenParam = rest.FormatParam("token", "The enrollment's token, which works once.", "uuid", "must be a UUID", api.IsToken).Required()

	// Where every way to enroll is offered, one of them has no token.
	anyTokenParam  = rest.FormatParam("token", "The enrollment's token, which works once; not given for the method ca.", "uuid", "must be a UUID", api.IsToken)
	anyMethodParam = rest.TextParam("method", "How to enroll: ca with a certificate of a registered CA, ott to be answered with a bare certificate; what the token is for if not given.")
)

// nameForm is the JSON form of an enrollment by CA.
type nameForm struct {
	Name string `json:"name" kind:"range=0..256" doc:"What [requestedName] stands for in the CA's identityNameFormat; the identity's id if empty."`
}

// csrForm is the JSON form of a CSR, which two sorts of clients name
// differently.
type csrForm struct {
	ClientCSR string `json:"clientCsr" doc:"Certificate signing request for the client certificate, as PEM."`
	CertCSR   string `json:"certCsr" doc:"The same under its other name; one of the two is given."`
}

// routerForm is the JSON form of a router's CSRs.
type routerForm struct {
	csrForm
	ServerCertCSR string `json:"serverCertCsr" doc:"Certificate signing request for the server certificate, as PEM."`
	ServerCSR     string `json:"serverCsr" doc:"The same under its other name; one of the two is given."`
	TakesDigests  bool   `json:"takesDigests" doc:"Whether the router needs no tokens of API sessions and is told digests of them, from now on and until it enrolls anew; routers of netkeep say true."`
}

// passwordForm is the JSON form of an enrollment with a password.
type passwordForm struct {
	Username string `json:"username" kind:"range=0..100,format=visible" doc:"User name to log in with; counts only if the enrollment has none."`
	Password string `json:"password" kind:"required,secret,range=0..100" doc:"Password to log in with, as the authentication policy wants it."`
}

// anyForm is whatever the way to enroll needs.
type anyForm struct {
	nameForm
	routerForm
	Username string `json:"username" kind:"range=0..100,format=visible" doc:"User name to log in with, for the method updb; counts only if the enrollment has none."`
	Password string `json:"password" kind:"secret,range=0..100" doc:"Password to log in with, for the method updb, which needs it."`
}

// certsOut is the certificates that an enrollment brings.
type certsOut struct {
	CA         string `json:"ca" kind:"omit" doc:"Certificates of the controller's authority, as PEM."`
	Cert       string `json:"cert" kind:"omit" doc:"Client certificate and what leads from it to the authority, as PEM."`
	ServerCert string `json:"serverCert" kind:"omit" doc:"Server certificate and what leads from it to the authority, as PEM."`
}

// desk serves enrollments over HTTP.
type desk struct{ *api.Service }

func mountEnroll(a *rest.API, s *api.Service) {
	d := desk{s}
	op := func(path, name, doc string, params ...rest.Parameter) rest.Op {
		return rest.Op{
			Method: http.MethodPost, Path: "/enroll" + path, Name: name, Tag: "enroll", Doc: doc, Auth: rest.Anonymous, Attempts: &s.Enrollments,
			MaxBody: 64 << 10, Params: params,
		}
	}
	form := func(o rest.Op, answers ...string) rest.Op {
		o.BodyOptional, o.Consumes, o.Types = true, pemTypes, answers
		return o
	}
	rest.Handle(a, form(op("", "enroll", "Enroll in the way that the token is for.", anyTokenParam, anyMethodParam),
		"application/x-pem-file", "application/json"), d.any)
	rest.Handle(a, form(op("/ott", "enrollOtt", "Enroll an identity with a CSR.", tokenParam), "application/x-x509-user-cert"),
		func(c *rest.Call, in rest.Form[csrForm]) (rest.File, error) {
			return d.bare(c, tokenParam.Of(c), csrOf(in.Text, in.Fields))
		})
	rest.Handle(a, op("/ottca", "enrollOttCa", "Enroll an identity with a certificate of a registered CA.", tokenParam),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) { return rest.Empty{}, d.ottca(c, tokenParam.Of(c)) })
	rest.Handle(a, form(op("/ca", "enrollCa", "Enroll a new identity with a certificate of a registered CA.")),
		func(c *rest.Call, in rest.Form[nameForm]) (rest.Empty, error) {
			return rest.Empty{}, d.ca(c, in.Fields)
		})
	rest.Handle(a, op("/updb", "enrollUpdb", "Enroll an identity with a password.", tokenParam),
		func(c *rest.Call, in passwordForm) (accountOut, error) {
			return d.updb(c, tokenParam.Of(c), in)
		})
	rest.Handle(a, op("/erott", "enrollErOtt", "Enroll a router with two CSRs.", tokenParam),
		func(c *rest.Call, in routerForm) (certsOut, error) { return d.router(c, tokenParam.Of(c), in) })
	rest.Handle(a, person(op("/token", "enrollToken", "Become an identity by a token of an external JWT signer that lets people enroll, as a bearer token in the Authorization header: with a CSR to get a certificate, or without one to go on with tokens.", issuerParam)), d.person)
	rest.Handle(a, op("/extend/router", "extendRouterEnrollment", "Exchange a router's certificates for new ones."), d.extendRouter)
}

// any looks at what the token is for.
func (d desk) any(c *rest.Call, in rest.Form[anyForm]) (rest.File, error) {
	wanted := anyMethodParam.Of(c)
	if wanted == model.MethodCA {
		return emptyFile, d.ca(c, in.Fields.nameForm)
	}
	token := anyTokenParam.Of(c)
	if token == "" {
		return rest.File{}, fault.Invalid("token", "is required", nil)
	}
	if err := d.lookFor(c, token); err != nil {
		return rest.File{}, err
	}
	method, err := d.Desk.Method(c.Snap, token)
	if err != nil {
		return rest.File{}, d.enrolled(c, token, err)
	}
	switch method {
	case model.MethodOTT:
		csr := csrOf(in.Text, in.Fields.csrForm)
		if wanted == model.MethodOTT && !c.Accepts("application/json") {
			leaf, err := d.bare(c, token, csr)
			return rest.File{Type: "application/x-pem-file", Body: leaf.Body}, err
		}
		chain, err := d.Desk.OTT(c.Context(), c.Author(), c.Snap, token, csr)
		return rest.Envelope(&certsOut{Cert: encode(chain)}), d.enrolled(c, token, err)
	case model.MethodOTTCA:
		return emptyFile, d.ottca(c, token)
	case model.MethodUPDB:
		out, err := d.updb(c, token, passwordForm{in.Fields.Username, in.Fields.Password})
		return rest.Envelope(&out), err
	case model.MethodErOTT, model.MethodTrOTT:
		out, err := d.router(c, token, in.Fields.routerForm)
		return rest.Envelope(&out), err
	}
	return rest.File{}, fault.New(fault.CodeEnrollMethod, "there is no way to enroll by "+method)
}

var emptyFile = rest.Envelope(&struct{}{})

// csrOf takes the CSR from a body that is one, or else from its JSON form.
func csrOf(text []byte, form csrForm) []byte {
	if text != nil {
		return text
	}
	return []byte(form.ClientCSR + form.CertCSR)
}

// lookFor makes sure that a token is not taken for none that another controller
// gave out a moment ago.
func (d desk) lookFor(c *rest.Call, token string) error {
	if _, err := d.Desk.Method(c.Snap, token); err == nil {
		return nil
	}
	_, err := c.LookAgain()
	return err
}

// enrolled notes who has enrolled with a token, or that somebody was refused.
func (d desk) enrolled(c *rest.Call, token string, err error) error {
	return d.became(c, d.Desk.Invited(c.Snap, token), err)
}

// became notes who has enrolled, or that somebody was refused.
func (d desk) became(c *rest.Call, who state.Author, err error) error {
	whom := audit.Target{Kind: who.Kind, ID: who.ID, Name: who.Name}
	if who.ID == "" {
		whom = audit.Target{}
	}
	if err == nil {
		c.Became(who)
		d.Recorder.Note(audit.Fact{Event: audit.Enrolled, By: who.On(c.Author()), Target: whom})
	} else if reason, ok := api.Refusal(err); ok {
		d.Recorder.Note(audit.Fact{Event: audit.EnrollRefused, By: c.Author(), Target: whom, Reason: reason})
	}
	return err
}

// bare answers with the certificate alone.
func (d desk) bare(c *rest.Call, token string, csr []byte) (rest.File, error) {
	if err := d.lookFor(c, token); err != nil {
		return rest.File{}, err
	}
	chain, err := d.Desk.OTT(c.Context(), c.Author(), c.Snap, token, csr)
	if d.enrolled(c, token, err) != nil {
		return rest.File{}, err
	}
	return rest.File{Type: "application/x-x509-user-cert", Body: pki.EncodeCertificates(chain[0])}, nil
}

func (d desk) ottca(c *rest.Call, token string) error {
	if err := d.lookFor(c, token); err != nil {
		return err
	}
	return d.enrolled(c, token, d.Desk.OTTCA(c.Context(), c.Author(), c.Snap, token, c.Certificates()))
}

func (d desk) ca(c *rest.Call, in nameForm) error {
	who, err := d.Desk.CA(c.Context(), c.Author(), c.Snap, c.Certificates(), in.Name)
	by := state.Nobody
	if err == nil {
		by = authn.By(who)
	}
	return d.became(c, by, err)
}

// accountOut tells somebody who has a password now what to log in with.
type accountOut struct {
	Username string `json:"username" doc:"User name to log in with."`
}

func (d desk) updb(c *rest.Call, token string, in passwordForm) (accountOut, error) {
	if err := d.lookFor(c, token); err != nil {
		return accountOut{}, err
	}
	username, err := d.Desk.UPDB(c.Context(), c.Author(), c.Party(), c.Snap, token, in.Username, in.Password)
	return accountOut{username}, d.enrolled(c, token, err)
}

func (d desk) router(c *rest.Call, token string, in routerForm) (certsOut, error) {
	if err := d.lookFor(c, token); err != nil {
		return certsOut{}, err
	}
	certs, err := d.Desk.Router(c.Context(), c.Author(), c.Snap, token, []byte(in.CertCSR+in.ClientCSR), []byte(in.ServerCertCSR+in.ServerCSR), in.TakesDigests)
	if d.enrolled(c, token, err) != nil {
		return certsOut{}, err
	}
	return certsOut{CA: string(pki.EncodeCertificates(d.Bundle()...)), Cert: encode(certs.Client), ServerCert: encode(certs.Server)}, nil
}

// extendIn asks for new certificates of a router.
type extendIn struct {
	CertCSR       string `json:"certCsr" kind:"required" doc:"Certificate signing request for the new client certificate, as PEM."`
	ServerCertCSR string `json:"serverCertCsr" kind:"required" doc:"Certificate signing request for the new server certificate, as PEM."`
}

func (d desk) extendRouter(c *rest.Call, in extendIn) (certsOut, error) {
	certs, err := d.Desk.ExtendRouter(c.Context(), c.Author(), c.Snap, c.Certificates(), []byte(in.CertCSR), []byte(in.ServerCertCSR))
	if err != nil {
		return certsOut{}, d.became(c, state.Nobody, err)
	}
	return certsOut{CA: string(pki.EncodeCertificates(d.Bundle()...)), Cert: encode(certs.Client), ServerCert: encode(certs.Server)}, nil
}

func encode(chain []*x509.Certificate) string { return string(pki.EncodeCertificates(chain...)) }
