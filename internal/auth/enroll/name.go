package enroll

import (
	"crypto/x509"
	"net/url"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// request is a CSR of a router.
type request struct {
	field string // of the body
	*x509.CertificateRequest
}

// named are the names that the router asks for. One without any gets one that
// leads nowhere but to itself.
func (q request) named() pki.Names {
	names := pki.RequestedNames(q.CertificateRequest)
	if len(names.DNS)+len(names.IPs) == 0 {
		names.DNS = []string{"localhost"}
	}
	return names
}

// mayHave refuses names under which the router would pass as somebody else
// towards those who trust our CA: any name at all, for a wildcard, the
// controller, or whoever else a SPIFFE id names.
func (q request) mayHave(r kind.Reader, router *model.Router) error {
	names := q.named()
	for _, name := range names.DNS {
		if err := q.host(r, router, name, name); err != nil {
			return err
		}
	}
	for _, ip := range names.IPs {
		if err := q.host(r, router, ip.String(), ip.String()); err != nil {
			return err
		}
	}
	for _, u := range names.URIs {
		if err := q.uri(r, router, u); err != nil {
			return err
		}
	}
	return nil
}

// uri refuses a URI that names somebody else. No TLS client looks at them, but
// some who speak of SPIFFE ids do.
func (q request) uri(r kind.Reader, router *model.Router, u *url.URL) error {
	switch {
	case ownID(u, router.ID):
		return nil
	case u.Scheme == "spiffe":
		return q.refuse(u.String(), "the SPIFFE id of somebody else; take it out of the router's config")
	}
	return q.host(r, router, u.Hostname(), u.String())
}

// host refuses a host that is not the router's; name is what it is part of.
func (q request) host(r kind.Reader, router *model.Router, host, name string) error {
	host = model.HostName(host)
	if slices.Contains(router.AllowedNames, host) {
		return nil
	}
	if strings.Contains(host, "*") {
		return q.refuse(name, "which is a wildcard; take it out of the router's config, or have an admin add it to the router's allowedNames")
	}
	// A dot at the end makes no other name of it, to those who look it up.
	if _, taken := model.ControllerNames.Find(r, "name", strings.TrimRight(host, ".")); taken {
		return q.refuse(name, "which is a controller's; take it out of the router's config, or have an admin add it to the router's allowedNames")
	}
	return nil
}

func (q request) refuse(name, why string) error {
	return fault.On(fault.CodeCSR, q.field, "must not ask for "+name+", "+why, name)
}

// ownID reports whether a SPIFFE id is that of the router.
func ownID(u *url.URL, id string) bool { return u.String() == "spiffe://"+u.Host+"/router/"+id }

// hosts are the names in a certificate that a server may answer for.
func hosts(cert *x509.Certificate) (names []string) {
	for _, name := range cert.DNSNames {
		names = append(names, model.HostName(name))
	}
	for _, ip := range cert.IPAddresses {
		names = append(names, model.HostName(ip.String()))
	}
	return names
}
