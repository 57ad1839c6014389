package client

import (
	"crypto/x509"
	"net/http"
	"strings"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/pki"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// pemTypes are the content types under which clients send a CSR.
var pemTypes = []string{"application/pkcs10", "application/x-pem-file", "text/plain", "application/pkcs7-mime"}

// enrollIn is what the JSON forms of an enrollment may hold.
type enrollIn struct {
	ClientCSR     string `json:"clientCsr"`
	ServerCSR     string `json:"serverCsr"`
	CertCSR       string `json:"certCsr"`
	ServerCertCSR string `json:"serverCertCsr"`
	Name          string `json:"name" kind:"range=0..256"`
	Username      string `json:"username" kind:"range=0..100"`
	Password      string `json:"password" kind:"secret,range=0..100"`
}

var enrollInput = kind.NewInput[enrollIn]()

// certsOut is the certificates that an enrollment brings.
type certsOut struct {
	CA         string `json:"ca" kind:"omit"`
	Cert       string `json:"cert" kind:"omit"`
	ServerCert string `json:"serverCert" kind:"omit"`
}

// desk serves enrollments over HTTP.
type desk struct{ *api.Service }

func mountEnroll(a *rest.API, s *api.Service) {
	d := desk{s}
	op := func(path, name, doc string) rest.Op {
		return rest.Op{
			Method: http.MethodPost, Path: "/enroll" + path, Name: name, Tag: "enroll", Doc: doc, Auth: rest.Anonymous, Guarded: true,
			MaxBody: 64 << 10, BodyOptional: true, Consumes: append([]string{"application/json"}, pemTypes...),
			Query: []rest.Param{{Name: "token", Doc: "The enrollment's token.", Schema: kind.Schema{"type": "string", "format": "uuid"}}},
		}
	}
	all := op("", "enroll", "Enroll in the way that the token is for.")
	all.Types = []string{"application/x-pem-file", "application/json"}
	all.Query = append(all.Query, rest.Param{Name: "method", Doc: "How to enroll; only ca counts, which has no token.", Schema: api.Text})
	rest.Handle(a, all, d.any)
	ott := op("/ott", "enrollOtt", "Enroll an identity with a CSR.")
	ott.Types = []string{"application/x-x509-user-cert"}
	rest.Handle(a, ott, d.ott)
	rest.Handle(a, op("/ottca", "enrollOttCa", "Enroll an identity with a certificate of a registered CA."), func(c *rest.Call, _ rest.Raw) (rest.Empty, error) {
		return rest.Empty{}, d.ottca(c)
	})
	rest.Handle(a, op("/ca", "enrollCa", "Enroll a new identity with a certificate of a registered CA."), func(c *rest.Call, in rest.Raw) (rest.Empty, error) {
		return rest.Empty{}, d.ca(c, in)
	})
	rest.Handle(a, op("/updb", "ernollUpdb", "Enroll an identity with a password."), func(c *rest.Call, in rest.Raw) (rest.Empty, error) {
		return rest.Empty{}, d.updb(c, in)
	})
	rest.Handle(a, op("/erott", "enrollErOtt", "Enroll a router with two CSRs."), d.router)
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/enroll/extend/router", Name: "extendRouterEnrollment", Tag: "enroll",
		Doc: "Exchange a router's certificates for new ones.", Auth: rest.Anonymous, Guarded: true, MaxBody: 64 << 10,
	}, d.extendRouter)
	caCerts := rest.Op{
		Method: http.MethodGet, Path: "/.well-known/est/cacerts", Name: "listWellKnownCas", Tag: "informational",
		Doc: "Get the certificates to trust, as a base64 PKCS #7 bundle.", Auth: rest.Anonymous, Types: []string{"application/pkcs7-mime"},
	}
	rest.Handle(a, caCerts, func(c *rest.Call, _ rest.None) (rest.File, error) {
		text, err := pki.PKCS7Text(s.Bundle)
		c.Header().Set("Content-Transfer-Encoding", "base64")
		return rest.File{Type: "application/pkcs7-mime", Body: text}, err
	})
}

// any looks at what the token is for.
func (d desk) any(c *rest.Call, in rest.Raw) (rest.File, error) {
	query := c.Request.URL.Query()
	if query.Get("method") == model.MethodCA {
		return emptyFile, d.ca(c, in)
	}
	token, err := tokenOf(c)
	if err != nil {
		return rest.File{}, err
	}
	method, err := d.Desk.Method(c.Snap, token)
	if err != nil {
		return rest.File{}, err
	}
	switch method {
	case model.MethodOTT:
		if query.Get("method") == model.MethodOTT && !strings.Contains(c.Request.Header.Get("Accept"), "application/json") {
			leaf, err := d.ott(c, in)
			return rest.File{Type: "application/x-pem-file", Body: leaf.Body}, err
		}
		chain, err := d.ottChain(c, in)
		return rest.Envelope(&certsOut{Cert: encode(chain)}), err
	case model.MethodOTTCA:
		return emptyFile, d.ottca(c)
	case model.MethodUPDB:
		return emptyFile, d.updb(c, in)
	case model.MethodErOTT, model.MethodTrOTT:
		out, err := d.router(c, in)
		return rest.Envelope(&out), err
	}
	return rest.File{}, fault.New(fault.CodeEnrollMethod, "there is no way to enroll by "+method)
}

var emptyFile = rest.Envelope(&struct{}{})

// tokenOf returns the request's token, which must look like one.
func tokenOf(c *rest.Call) (string, error) {
	token := c.Request.URL.Query().Get("token")
	if !api.IsToken(token) {
		return "", fault.Invalid("token", "must be a UUID", token)
	}
	return token, nil
}

// ott answers with the bare certificate.
func (d desk) ott(c *rest.Call, in rest.Raw) (rest.File, error) {
	chain, err := d.ottChain(c, in)
	if err != nil {
		return rest.File{}, err
	}
	return rest.File{Type: "application/x-x509-user-cert", Body: pki.EncodeCertificates(chain[0])}, nil
}

func (d desk) ottChain(c *rest.Call, in rest.Raw) ([]*x509.Certificate, error) {
	token, err := tokenOf(c)
	if err != nil {
		return nil, err
	}
	csr, err := csrOf(in)
	if err != nil {
		return nil, err
	}
	return d.Desk.OTT(c.Context(), c.Author(), c.Snap, token, csr)
}

// csrOf takes the CSR from a body that is one, or from a JSON form.
func csrOf(in rest.Raw) ([]byte, error) {
	for _, t := range pemTypes {
		if in.Type == t {
			return in.Data, nil
		}
	}
	form, err := formOf(in)
	return []byte(form.ClientCSR + form.CertCSR), err
}

// formOf reads a JSON body; none is an empty one.
func formOf(in rest.Raw) (enrollIn, error) {
	if len(in.Data) == 0 {
		return enrollIn{}, nil
	}
	if in.Type != "application/json" {
		return enrollIn{}, fault.On(fault.CodeContentType, "Content-Type", "must be application/json, or a PEM type for a CSR", in.Type)
	}
	body, err := kind.ReadBody(in.Data)
	if err != nil {
		return enrollIn{}, err
	}
	return enrollInput.Read(body)
}

func (d desk) ottca(c *rest.Call) error {
	token, err := tokenOf(c)
	if err != nil {
		return err
	}
	return d.Desk.OTTCA(c.Context(), c.Author(), c.Snap, token, c.Request.TLS.PeerCertificates)
}

func (d desk) ca(c *rest.Call, in rest.Raw) error {
	name := ""
	if in.Type == "application/json" {
		form, err := formOf(in)
		if err != nil {
			return err
		}
		name = form.Name
	}
	return d.Desk.CA(c.Context(), c.Author(), c.Snap, c.Request.TLS.PeerCertificates, name)
}

func (d desk) updb(c *rest.Call, in rest.Raw) error {
	token, err := tokenOf(c)
	if err != nil {
		return err
	}
	form, err := formOf(in)
	if err != nil {
		return err
	}
	return d.Desk.UPDB(c.Context(), c.Author(), c.Snap, token, form.Username, form.Password)
}

func (d desk) router(c *rest.Call, in rest.Raw) (certsOut, error) {
	token, err := tokenOf(c)
	if err != nil {
		return certsOut{}, err
	}
	form, err := formOf(in)
	if err != nil {
		return certsOut{}, err
	}
	certs, err := d.Desk.Router(c.Context(), c.Author(), c.Snap, token, []byte(form.CertCSR+form.ClientCSR), []byte(form.ServerCertCSR+form.ServerCSR))
	if err != nil {
		return certsOut{}, err
	}
	return certsOut{CA: string(pki.EncodeCertificates(d.Bundle...)), Cert: encode(certs.Client), ServerCert: encode(certs.Server)}, nil
}

// extendIn asks for new certificates of a router.
type extendIn struct {
	CertCSR       string `json:"certCsr" kind:"required"`
	ServerCertCSR string `json:"serverCertCsr" kind:"required"`
}

func (d desk) extendRouter(c *rest.Call, in extendIn) (certsOut, error) {
	certs, err := d.Desk.ExtendRouter(c.Context(), c.Author(), c.Snap, c.Request.TLS.PeerCertificates, []byte(in.CertCSR), []byte(in.ServerCertCSR))
	if err != nil {
		return certsOut{}, err
	}
	return certsOut{CA: string(pki.EncodeCertificates(d.Bundle...)), Cert: encode(certs.Client), ServerCert: encode(certs.Server)}, nil
}

func encode(chain []*x509.Certificate) string { return string(pki.EncodeCertificates(chain...)) }
