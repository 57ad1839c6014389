package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

// followKeys takes up what a rotation changes, and says while one is under way
// who has still to follow it.
func (s *Server) followKeys(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var report reporter
	for shared := true; ; {
		s.takeKeys(ctx)
		if s.handover != nil {
			err := errors.Join(s.shareKeys(ctx), s.catchUpPeer())
			if err != nil && shared && ctx.Err() == nil {
				s.log.Warn("keys could not be shared with other controllers; trying again", "error", err)
			}
			shared = err == nil
		}
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
	s.log.Info("other keys are in force from now on", "root", rootName(now.Root), "intermediate", rootName(now.Intermediate), "rotating", now.Rotating(), "retired", len(now.Retired))
	ours := s.served
	if s.own != nil {
		ours = s.own
	}
	if err := ours.Reload(); err != nil {
		s.log.Error("the server certificate of the new authority cannot be served", "error", err)
	}
	if s.fabric != nil { // or it begins with them
		if err := s.useSecrets(); err != nil {
			s.log.Error("the keys of tokens cannot be used", "error", err)
		}
		s.fabric.AuthoritiesChanged()
	}
	if err := s.noteRoots(ctx); err != nil {
		s.log.Error("which root CAs the network has had could not be stored; it is when the controller next starts", "error", err)
	}
	s.attest()
}

// Progress is how far a rotation of the root CA, or of a secret, has come, as the
// controller sees it.
type Progress struct {
	Root       string    `json:"root"` // that takes the other's place
	At         time.Time `json:"at"`
	Routers    Followers `json:"routers"`
	Identities Followers `json:"identities"`
	// Sessions and Seals is how much rests on the secret of before: sessions with a
	// token of it, and records that are sealed with it. Nil if that is not known.
	Sessions *int `json:"sessions,omitempty"`
	Seals    *int `json:"seals,omitempty"`
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
	turning  bool
	known    map[string]bool // by fingerprint
	said     time.Time
	lost     int
}

// write says how far a rotation has come, or whom one that is over has left
// behind, as may be found in a snapshot of before.
func (r *reporter) write(s *Server) error {
	now, at := s.keys.Authorities(), time.Now()
	turning := s.keys.Turning(pki.SessionSecret) || s.keys.Turning(pki.SealSecret)
	every := progressEvery
	if !now.Rotating() && !turning {
		every = lostEvery
	}
	if r.known == nil || r.root != rootName(now.Root) || r.rotating != now.Rotating() || r.turning != turning {
		r.root, r.rotating, r.turning, r.known, r.lost = rootName(now.Root), now.Rotating(), turning, map[string]bool{}, 0
	} else if at.Sub(r.said) < every {
		return nil
	}
	r.said = at
	p := Progress{Root: r.root, At: at.UTC()}
	if now.Rotating() || len(now.Retired) > 0 {
		p = r.survey(s.state.Snapshot(), now, at)
	}
	if !now.Rotating() {
		if left := p.left(); left != r.lost && left > 0 {
			s.log.Warn("some have certificates of a root CA that has retired and are not let in: enroll them again; netkeep keys status names them",
				"identities", p.Identities.Left, "routers", p.Routers.Left)
		}
		if r.lost = p.left(); r.lost == 0 && !turning {
			return s.dir.drop(progressFile)
		}
	}
	if left := s.left.Load(); left != nil && left.of == s.secretIDs() && turning {
		p.Sessions, p.Seals = &left.Sessions, &left.Seals
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
		if a.Method != model.MethodCert || a.CAID != "" || at.After(a.NotAfter.Time()) {
			continue
		}
		i, _ := model.Identities.Get(snap, a.IdentityID)
		p.Identities.count(i.Name, r.follows(now, a.Fingerprint, a.CertPEM.String))
	}
	for router := range model.Routers.All(snap) {
		if router.IsVerified && router.Fingerprint != "" {
			p.Routers.count(router.Name, r.follows(now, router.Fingerprint, func() string { return router.CertPEM }))
		}
	}
	return p
}

// follows reports whether a certificate is of the present root CA, or when no
// other takes its place, of one that is trusted at all.
func (r *reporter) follows(now *pki.Authorities, fingerprint string, text func() string) bool {
	is, known := r.known[fingerprint]
	if !known {
		certs, err := pki.ParseCertificates([]byte(text()), 1)
		is = err == nil && (now.Current(certs[0]) || !now.Rotating() && now.Trusts(certs[0]))
		r.known[fingerprint] = is
	}
	return is
}

// outdated reports whether a certificate is of the root CA that another takes the
// place of, so that its holder has to follow.
func (s *Server) outdated(text terse.Text) bool {
	now := s.keys.Authorities()
	if !now.Rotating() {
		return false
	}
	certs, err := pki.ParseCertificates([]byte(text.String()), 1)
	return err == nil && now.Trusts(certs[0]) && !now.Current(certs[0])
}

// said reads what a controller said last in a file of its data directory; nil if
// nothing.
func said[T any](data, file string) (*T, error) {
	text, err := os.ReadFile(filepath.Join(data, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("%s is damaged: remove it, and the controller writes another", filepath.Join(data, file))
	}
	return v, nil
}
