// Package ziticonf reads the settings of an OpenZiti controller, and the certificates and
// keys that they name: who the controller is, where it listens, what signs for it and
// what its clients trust. It reads and writes nothing else, and knows nothing of
// records.
package ziticonf

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"netkeep.internal/internal/lang/document"
)

// Settings are what the file says, as far as it matters to somebody who goes on from
// there.
type Settings struct {
	// Database is the file with all records.
	Database string
	// Clustered is whether the controller was one of several, or could be.
	Clustered bool
	// ID is what routers and sessions know the controller by.
	ID string

	// Client, Management and Routers are where it is reached. Two may be the same.
	Client, Management, Routers Place
	// OIDC is whether clients may have logged in by OpenID Connect.
	OIDC bool

	// Signing is the CA that signs identities and routers, itself first and then those
	// above it that are known, and its key.
	Signing    []*x509.Certificate
	SigningKey crypto.Signer
	// Server is the certificate that clients see and those sent with it, and the key, which
	// signs invitations.
	Server    []*x509.Certificate
	ServerKey crypto.Signer
	// Anchors are the CAs that clients and routers were told to trust, each once.
	Anchors []*x509.Certificate
	// DNSNames and IPs are those that any of the certificates answers for.
	DNSNames []string
	IPs      []net.IP

	SessionTimeout time.Duration // 0 if not given

	// Open are files with keys that others on the machine may read.
	Open []string
}

// Place is an address to listen at, and the one that others are told.
type Place struct{ Listen, Advertise string }

// maxFile is how long the settings or a file with certificates may be.
const maxFile = 4 << 20

// identity names certificates and keys.
type identity struct {
	Cert       string `yaml:"cert"`
	Key        string `yaml:"key"`
	ServerCert string `yaml:"server_cert"`
	ServerKey  string `yaml:"server_key"`
	CA         string `yaml:"ca"`
	Others     []struct {
		ServerCert string `yaml:"server_cert"`
		ServerKey  string `yaml:"server_key"`
	} `yaml:"alt_server_certs"`
}

// file is what the settings have that is of use.
type file struct {
	DB      string `yaml:"db"`
	Cluster *struct {
		DataDir string `yaml:"dataDir"`
	} `yaml:"cluster"`
	Raft *struct { // as it was called before
		DataDir string `yaml:"dataDir"`
	} `yaml:"raft"`
	Identity identity `yaml:"identity"`
	Ctrl     struct {
		Listener string `yaml:"listener"`
		Options  struct {
			Advertise string `yaml:"advertiseAddress"`
		} `yaml:"options"`
	} `yaml:"ctrl"`
	Edge struct {
		API struct {
			Address        string `yaml:"address"`
			SessionTimeout string `yaml:"sessionTimeout"`
		} `yaml:"api"`
		Enrollment struct {
			SigningCert struct {
				Cert string `yaml:"cert"`
				Key  string `yaml:"key"`
				CA   string `yaml:"ca"`
			} `yaml:"signingCert"`
		} `yaml:"enrollment"`
	} `yaml:"edge"`
	Web []web `yaml:"web"`
}

// web is where APIs are.
type web struct {
	Name       string `yaml:"name"`
	BindPoints []struct {
		Interface string `yaml:"interface"`
		Address   string `yaml:"address"`
	} `yaml:"bindPoints"`
	Identity *identity `yaml:"identity"`
	APIs     []struct {
		Binding string `yaml:"binding"`
	} `yaml:"apis"`
}

func (w web) serves(binding string) bool {
	for _, api := range w.APIs {
		if api.Binding == binding {
			return true
		}
	}
	return false
}

// reader reads what the settings name.
type reader struct {
	dir  string // that the controller was started in
	says *Settings
	errs []error
}

// Read reads the settings in a file. Paths in it are relative to dir, which is where the
// controller was started; to where the file is if that is not told.
func Read(name, dir string) (*Settings, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	var f file
	if err := document.Decode([]byte(os.Expand(string(text), expand)), &f); err != nil {
		return nil, fmt.Errorf("%s is no settings of a controller: %s", name, yaml.FormatError(err, false, true))
	}
	s := &Settings{}
	r := &reader{dir: dir, says: s}
	if dir == "" {
		r.dir = filepath.Dir(name)
	}
	r.database(f)
	r.places(f)
	r.certificates(f)
	s.SessionTimeout = r.duration("edge.api.sessionTimeout", f.Edge.API.SessionTimeout)
	if err := errors.Join(r.errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// expand keeps a variable that is not set as it is: it may be part of a text.
func expand(name string) string {
	if value, set := os.LookupEnv(name); set {
		return value
	}
	return "${" + name + "}"
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is no file of at most %d MB", name, maxFile>>20)
	}
	return os.ReadFile(name)
}

func (r *reader) fail(format string, args ...any) {
	r.errs = append(r.errs, fmt.Errorf(format, args...))
}

func (r *reader) duration(key, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.fail("%s: %q is no duration", key, text)
		return 0
	}
	return d
}

// path is where a file is that the settings name.
func (r *reader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.dir, name)
}

func (r *reader) database(f file) {
	cluster := f.Cluster
	if cluster == nil {
		cluster = f.Raft
	}
	switch {
	case cluster != nil && cluster.DataDir != "":
		r.says.Clustered = true
		r.says.Database = filepath.Join(r.path(cluster.DataDir), "ctrl-ha.db")
	case f.DB != "":
		r.says.Database = r.path(f.DB)
	default:
		r.fail("it names no database (db, or cluster.dataDir)")
	}
}

// places are where the controller listened.
func (r *reader) places(f file) {
	s := r.says
	for _, w := range f.Web {
		if len(w.BindPoints) == 0 {
			continue
		}
		at := Place{w.BindPoints[0].Interface, w.BindPoints[0].Address}
		if w.serves("edge-client") && s.Client.Listen == "" {
			s.Client = at
		}
		if w.serves("edge-management") && s.Management.Listen == "" {
			s.Management = at
		}
		s.OIDC = s.OIDC || w.serves("edge-oidc")
	}
	if s.Client.Listen == "" {
		r.fail("no web listener has the API edge-client")
	}
	if f.Edge.API.Address != "" {
		s.Client.Advertise = f.Edge.API.Address
	}
	if s.Client.Advertise == "" {
		s.Client.Advertise = s.Client.Listen
	}
	if s.Management.Listen == "" || s.Management.Listen == s.Client.Listen {
		s.Management = s.Client
	}
	s.Routers = Place{r.address("ctrl.listener", f.Ctrl.Listener), r.address("ctrl.options.advertiseAddress", f.Ctrl.Options.Advertise)}
	if s.Routers.Listen == "" {
		r.fail("it does not say where routers connect (ctrl.listener)")
	}
	if s.Routers.Advertise == "" {
		s.Routers.Advertise = s.Routers.Listen
	}
}

// address takes tls: from an address.
func (r *reader) address(key, text string) string {
	sort, address, found := strings.Cut(text, ":")
	if text == "" || !found {
		return text
	}
	if sort != "tls" {
		r.fail("%s: %q is no address that begins with tls:", key, text)
	}
	return address
}

// certificates reads all that is named.
func (r *reader) certificates(f file) {
	s := r.says
	identities := []named{{"identity", f.Identity}}
	own := named{"identity", f.Identity}
	for i, w := range f.Web {
		if w.Identity == nil {
			continue
		}
		at := named{fmt.Sprintf("web[%d].identity", i), *w.Identity}
		if at.Key == "" {
			at.Key = f.Identity.Key
		}
		identities = append(identities, at)
		if w.serves("edge-client") && own.key == "identity" {
			own = at
		}
	}
	if certs := r.certs("identity.cert", f.Identity.Cert); len(certs) > 0 {
		s.ID = certs[0].Subject.CommonName
	}
	if s.ID == "" && len(r.errs) == 0 {
		r.fail("identity.cert: it has no common name, by which routers know the controller")
	}
	for _, id := range identities {
		for _, server := range id.servers() {
			chain := r.certs(id.key+".server_cert", server[0])
			if len(chain) == 0 {
				continue
			}
			s.DNSNames = append(s.DNSNames, chain[0].DNSNames...)
			s.IPs = append(s.IPs, chain[0].IPAddresses...)
			if s.Server == nil && id.key == own.key {
				s.Server = chain
				s.ServerKey = r.key(id.key+".server_key", server[1], chain[0])
			}
		}
		r.anchors(r.certs(id.key+".ca", id.CA))
	}
	signing := f.Edge.Enrollment.SigningCert
	s.Signing = r.certs("edge.enrollment.signingCert.cert", signing.Cert)
	if len(s.Signing) == 0 {
		if signing.Cert == "" {
			r.fail("it names no certificate that signs identities (edge.enrollment.signingCert)")
		}
		return
	}
	s.SigningKey = r.key("edge.enrollment.signingCert.key", signing.Key, s.Signing[0])
	r.anchors(s.Signing)
	if signing.CA != "" {
		r.anchors(r.certs("edge.enrollment.signingCert.ca", signing.CA))
	}
	s.Signing = chain(s.Signing[0], s.Anchors)
	slices.Sort(s.DNSNames)
	s.DNSNames = slices.Compact(s.DNSNames)
	slices.SortFunc(s.IPs, func(a, b net.IP) int { return bytes.Compare(a.To16(), b.To16()) })
	s.IPs = slices.CompactFunc(s.IPs, net.IP.Equal)
	if s.Server == nil && len(r.errs) == 0 {
		r.fail("%s.server_cert: there is none", own.key)
	}
}

// named is an identity of the settings, and where it is there.
type named struct {
	key string
	identity
}

// servers are its server certificates with their keys.
func (n named) servers() [][2]string {
	key := n.ServerKey
	if key == "" {
		key = n.Key
	}
	all := [][2]string{{n.ServerCert, key}}
	for _, other := range n.Others {
		all = append(all, [2]string{other.ServerCert, other.ServerKey})
	}
	return slices.DeleteFunc(all, func(pair [2]string) bool { return pair[0] == "" })
}

// anchors adds CAs that are trusted.
func (r *reader) anchors(certs []*x509.Certificate) {
	for _, cert := range certs {
		if cert.IsCA && !slices.ContainsFunc(r.says.Anchors, cert.Equal) {
			r.says.Anchors = append(r.says.Anchors, cert)
		}
	}
}

// chain is a CA and those above it, as far as they are known.
func chain(ca *x509.Certificate, known []*x509.Certificate) []*x509.Certificate {
	all := []*x509.Certificate{ca}
	for at := ca; !bytes.Equal(at.RawIssuer, at.RawSubject); {
		above := slices.IndexFunc(known, func(c *x509.Certificate) bool {
			return bytes.Equal(c.RawSubject, at.RawIssuer) && at.CheckSignatureFrom(c) == nil && !slices.ContainsFunc(all, c.Equal)
		})
		if above < 0 {
			break
		}
		at = known[above]
		all = append(all, at)
	}
	return all
}
