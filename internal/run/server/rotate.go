package server

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
)

// followKeys takes up what a rotation changes, and says while one is under way
// who has still to follow it.
func (s *Server) followKeys(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var report reporter
	for {
		s.takeKeys(ctx)
		if err := report.write(s); err != nil {
			s.log.Warn("how far the rotation of the root CA has come could not be noted in the data directory", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// takeKeys has everything use the authorities that are in the data directory
// now.
func (s *Server) takeKeys(ctx context.Context) {
	changed, err := s.keys.Follow()
	if err != nil {
		s.log.Error("the keys in the data directory have changed and cannot all be used; what was in force stays so", "error", err)
	}
	if !changed {
		return
	}
	now := s.keys.Authorities()
	s.log.Info("other authorities sign from now on", "root", rootName(now.Root), "intermediate", rootName(now.Intermediate), "rotating", now.Rotating(), "retired", len(now.Retired))
	if s.cfg.TLS.Cert == "" {
		if err := s.served.Reload(); err != nil {
			s.log.Error("the server certificate of the new authority cannot be served", "error", err)
		}
	}
	s.fabric.AuthoritiesChanged()
	if err := s.noteRoots(ctx); err != nil {
		s.log.Error("which root CAs the network has had could not be stored; it is when the controller next starts", "error", err)
	}
}

// Progress is how far a rotation of the root CA has come, as the controller sees
// it.
type Progress struct {
	Root       string    `json:"root"` // that takes the other's place
	At         time.Time `json:"at"`
	Routers    Followers `json:"routers"`
	Identities Followers `json:"identities"`
}

// Followers are those who have certificates of the network, and those of them
// whose is still of the root CA before. Some of the latter are named.
type Followers struct {
	All   int      `json:"all"`
	Left  int      `json:"left"`
	Names []string `json:"names,omitempty"`
}

// left is how many have not followed.
func (p Progress) left() int { return p.Routers.Left + p.Identities.Left }

// maxNamed is how many are named.
const maxNamed = 1000

func (f *Followers) count(name string, followed bool) {
	f.All++
	if followed {
		return
	}
	f.Left++
	if len(f.Names) < maxNamed {
		f.Names = append(f.Names, name)
	}
}

// progressFile is where in the data directory the controller says how far it has
// come.
const progressFile = "rotation"

// progressEvery is how often that is said, lostEvery how often one looks for those
// that a rotation has left behind, and progressOld when either is no news any
// more.
const (
	progressEvery = 2 * time.Second
	lostEvery     = 20 * time.Second
	progressOld   = time.Minute
)

// reporter knows of certificates that it has seen whether they follow.
type reporter struct {
	root     string
	rotating bool
	known    map[string]bool // by fingerprint
	said     time.Time
	lost     int
}

// write says how far a rotation has come, or whom one that is over has left
// behind, as may be found in a snapshot of before.
func (r *reporter) write(s *Server) error {
	now, at := s.keys.Authorities(), time.Now()
	every := progressEvery
	if !now.Rotating() {
		every = lostEvery
	}
	if r.known == nil || r.root != rootName(now.Root) || r.rotating != now.Rotating() {
		r.root, r.rotating, r.known, r.lost = rootName(now.Root), now.Rotating(), map[string]bool{}, 0
	} else if at.Sub(r.said) < every {
		return nil
	}
	r.said = at
	var p Progress
	if now.Rotating() || len(now.Retired) > 0 {
		p = r.survey(s.state.Snapshot(), now, at)
	}
	if !now.Rotating() {
		if left := p.left(); left != r.lost && left > 0 {
			s.log.Warn("some have certificates of a root CA that has retired and are not let in: enroll them again; netkeep keys status names them",
				"identities", p.Identities.Left, "routers", p.Routers.Left)
		}
		if r.lost = p.left(); r.lost == 0 {
			return s.dir.drop(progressFile)
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.dir.note(progressFile, string(text))
}

// survey looks at everybody's certificate. One that has ended counts for nobody:
// it has to be replaced anyway.
func (r *reporter) survey(snap *state.Snapshot, now *pki.Authorities, at time.Time) Progress {
	p := Progress{Root: r.root, At: at.UTC()}
	for a := range model.Authenticators.All(snap) {
		if a.Method != model.MethodCert || a.CAID != "" || at.After(a.NotAfter) {
			continue
		}
		i, _ := model.Identities.Get(snap, a.IdentityID)
		p.Identities.count(i.Name, r.follows(now, a.Fingerprint, a.CertPEM))
	}
	for router := range model.Routers.All(snap) {
		if router.IsVerified && router.Fingerprint != "" {
			p.Routers.count(router.Name, r.follows(now, router.Fingerprint, router.CertPEM))
		}
	}
	return p
}

// follows reports whether a certificate is of the present root CA, or when no
// other takes its place, of one that is trusted at all.
func (r *reporter) follows(now *pki.Authorities, fingerprint, text string) bool {
	is, known := r.known[fingerprint]
	if !known {
		certs, err := pki.ParseCertificates([]byte(text), 1)
		is = err == nil && (now.Current(certs[0]) || !now.Rotating() && now.Trusts(certs[0]))
		r.known[fingerprint] = is
	}
	return is
}

// outdated reports whether a certificate is of the root CA that another takes the
// place of, so that its holder has to follow.
func (s *Server) outdated(text string) bool {
	now := s.keys.Authorities()
	if !now.Rotating() {
		return false
	}
	certs, err := pki.ParseCertificates([]byte(text), 1)
	return err == nil && now.Trusts(certs[0]) && !now.Current(certs[0])
}

// readProgress returns what a controller said last; nil if nothing.
func readProgress(data string) (*Progress, error) {
	text, err := os.ReadFile(filepath.Join(data, progressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := new(Progress)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s is damaged: remove it, and the controller writes another", filepath.Join(data, progressFile))
	}
	return p, nil
}

// KeysStatus is who signs, and how far a rotation of the root CA has come.
type KeysStatus struct {
	*pki.Authorities
	// Progress is what the controller said last; nil if it has said nothing of
	// this rotation. Old is whether that was a while ago.
	// Without a rotation it is of those whom the last one has left behind.
	Progress *Progress
	Old      bool
}

// Fingerprint is by what people recognise a certificate.
func (KeysStatus) Fingerprint(cert *x509.Certificate) string { return rootName(cert) }

// ReadKeys returns who signs for the network in a data directory, whether its
// controller runs or not.
func ReadKeys(cfg config.Config) (KeysStatus, error) {
	keys, err := pki.Read(filepath.Join(cfg.Data, keysDir))
	switch {
	case err != nil:
		return KeysStatus{}, err
	case keys == nil || keys.Intermediate == nil:
		return KeysStatus{}, fmt.Errorf("there is no network in %s; name the data directory of its controller with --data", cfg.Data)
	}
	st := KeysStatus{Authorities: keys}
	if st.Progress, err = readProgress(cfg.Data); err != nil {
		return st, err
	}
	if p := st.Progress; p != nil && p.Root != rootName(keys.Root) {
		st.Progress = nil
	}
	st.Old = st.Progress != nil && time.Since(st.Progress.At) > progressOld
	return st, nil
}

// Rotation is which step of which rotation is to be made.
type Rotation struct {
	// Root is whether it is about the root CA, and not the intermediate one alone.
	Root, Finish, Undo bool
	// Force finishes although somebody has not followed yet.
	Force   bool
	RootKey string
}

// RotateKeys makes a step of a rotation in a data directory. A controller that
// uses it follows within seconds.
func RotateKeys(cfg config.Config, r Rotation, log *slog.Logger) (KeysStatus, error) {
	st, err := ReadKeys(cfg)
	if err != nil {
		return st, err
	}
	step := pki.Rotation{
		Dir: filepath.Join(cfg.Data, keysDir), RootKey: r.RootKey, Present: st.Root, Algorithm: pki.Algorithm(cfg.Keys.Algorithm), Now: time.Now, Log: log,
	}
	switch {
	case r.Finish:
		if st.Rotating() && !r.Force {
			err = st.ready()
		}
		if err == nil {
			st.Authorities, err = step.Finish()
		}
	case r.Undo:
		st.Authorities, err = step.Undo()
	case r.Root:
		st.Authorities, err = step.Root()
	default:
		st.Authorities, err = step.Intermediate()
	}
	return st, err
}

// ready says why a rotation should not be finished yet.
func (st KeysStatus) ready() error {
	const force = "; --force finishes all the same, and who has not followed then has to enroll again"
	p := st.Progress
	switch {
	case p == nil:
		return errors.New("the controller has not said yet who has followed: start it if it does not run, and see netkeep keys status" + force)
	case st.Old:
		return fmt.Errorf("the controller last said at %s who has followed: start it, and see netkeep keys status%s", p.At.Format(time.RFC3339), force)
	case p.left() > 0:
		return fmt.Errorf("%d routers and %d identities have certificates of the root CA before, and could not come in any more: netkeep keys status names them%s", p.Routers.Left, p.Identities.Left, force)
	}
	return nil
}
