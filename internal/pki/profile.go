package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Grant is permission to issue one kind of certificate: whom it names, what it
// may be used for and how long. Only the profiles in this package make one, so
// nothing that a request asks for reaches a certificate unseen. The zero Grant
// permits nothing.
type Grant struct {
	commonName string
	dns        []string
	ips        []net.IP
	emails     []string
	uris       []*url.URL
	usage      []x509.ExtKeyUsage
	lifetime   time.Duration
}

// ClientGrant permits a certificate with which commonName may authenticate as
// a TLS client. Its only other names are the URIs.
func ClientGrant(commonName string, uris []*url.URL, lifetime time.Duration) (Grant, error) {
	g := Grant{
		commonName: commonName,
		usage:      []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		lifetime:   lifetime,
	}
	if err := g.add(Names{URIs: uris}); err != nil {
		return Grant{}, fmt.Errorf("client certificate: %w", err)
	}
	return g, nil
}

// ServerGrant permits a certificate with which a TLS server may answer for the
// DNS names and addresses, of which there must be one at least.
func ServerGrant(commonName string, dns []string, ips []net.IP, lifetime time.Duration) (Grant, error) {
	g := Grant{
		commonName: commonName,
		usage:      []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		lifetime:   lifetime,
	}
	if len(dns)+len(ips) == 0 {
		return Grant{}, errors.New("server certificate: no DNS name or address to answer for")
	}
	if err := g.add(Names{DNS: dns, IPs: ips}); err != nil {
		return Grant{}, fmt.Errorf("server certificate: %w", err)
	}
	return g, nil
}

// Names are what a certificate calls its holder, besides the common name.
type Names struct {
	DNS    []string
	IPs    []net.IP
	Emails []string
	URIs   []*url.URL
}

// RequestedNames are those that a CSR asks for. Nobody has said yet that the
// holder of its key may have them.
func RequestedNames(csr *x509.CertificateRequest) Names {
	return Names{csr.DNSNames, csr.IPAddresses, csr.EmailAddresses, csr.URIs}
}

// RouterGrant permits a certificate with which a router may both call others
// and answer for the names. Whether they are the router's is for the caller to
// know: whoever trusts our CA believes them.
func RouterGrant(commonName string, names Names, lifetime time.Duration) (Grant, error) {
	g := Grant{
		commonName: commonName,
		usage:      []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		lifetime:   lifetime,
	}
	if err := g.add(names); err != nil {
		return Grant{}, fmt.Errorf("router certificate: %w", err)
	}
	return g, nil
}

// add takes names that are well formed, and checks what every profile asks
// for.
func (g *Grant) add(names Names) error {
	for _, name := range names.DNS {
		if !validDNS(name) {
			return fmt.Errorf("%q is not a DNS name", name)
		}
		g.dns = append(g.dns, name)
	}
	for _, ip := range names.IPs {
		if ip.To16() == nil {
			return fmt.Errorf("%q is not an IP address", ip.String())
		}
		g.ips = append(g.ips, slices.Clone(ip))
	}
	for _, email := range names.Emails {
		if !validEmail(email) {
			return fmt.Errorf("%q is not an email address", email)
		}
		g.emails = append(g.emails, email)
	}
	for _, u := range names.URIs {
		if err := checkURI(u); err != nil {
			return err
		}
		own := *u
		g.uris = append(g.uris, &own)
	}
	return g.check()
}

func (g *Grant) check() error {
	const maxCommonName = 64 // the bound X.520 sets
	n := utf8.RuneCountInString(g.commonName)
	switch {
	case n == 0 || n > maxCommonName:
		return fmt.Errorf("common name of %d characters: must have 1 to %d", n, maxCommonName)
	case !utf8.ValidString(g.commonName) || strings.ContainsFunc(g.commonName, unicode.IsControl):
		return errors.New("common name with unprintable characters")
	case g.lifetime <= 0:
		return errors.New("lifetime must be positive")
	}
	return nil
}

func checkURI(u *url.URL) error {
	if u == nil || u.Scheme == "" {
		return errors.New("URI without a scheme")
	}
	text := u.String()
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("URI with characters outside ASCII")
	}
	// A certificate carries the text only, so the text must mean the same.
	again, err := url.Parse(text)
	if err != nil || again.Host != u.Host {
		return errors.New("URI that does not read back as written")
	}
	if u.Host != "" && !validLabels(u.Hostname()) {
		return errors.New("URI with a host that is no DNS name")
	}
	return nil
}

// validEmail reports whether s is an address in plain form: printable ASCII
// before an @ and a host name after it.
func validEmail(s string) bool {
	local, host, ok := strings.Cut(s, "@")
	return ok && local != "" && len(s) <= 254 && validLabels(host) &&
		!strings.ContainsFunc(local, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),:;<>[\]`, r) })
}

// ValidName reports whether s can be a name that a server answers for: an IP
// address, or a host name, perhaps with a wildcard as its first label.
func ValidName(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Zone() == "" || validDNS(s)
}

// validDNS reports whether s is a host name, perhaps with a wildcard as its
// first label.
func validDNS(s string) bool { return validLabels(strings.TrimPrefix(s, "*.")) }

func validLabels(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !validLabel(label) {
			return false
		}
	}
	return true
}

func validLabel(label string) bool {
	if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(label, func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return false
		}
		return true
	})
}
