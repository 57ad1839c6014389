package home

import (
	"context"
	"fmt"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/node"
	"netkeep.internal/internal/router/uplink"
)

// How often certificates are looked at, and tried for again.
const (
	tendEvery  = 5 * time.Second
	renewAgain = time.Hour
	// renewSoon is that, at first, for certificates that another authority signed
	// than the one we were told of: of several controllers, one may be the last to
	// hear of it, or just be gone.
	renewSoon = 10 * time.Second
	// doubtTime is how long a connection with the former certificates lasts before
	// they are those that count: a controller may be the last to hear.
	doubtTime = 30 * time.Second
)

// current are the papers that others are shown.
func (s *Station) current() node.Papers {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.papers.Papers
}

// calling are the papers that the controller is shown. Where it is not known
// which of two it knows us by, it is the one and then the other.
func (s *Station) calling() node.Papers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn = s.pending != nil && !s.turn; s.turn {
		return s.pending.Papers
	}
	return s.papers.Papers
}

// tend renews certificates in time, until ctx ends.
func (s *Station) tend(ctx context.Context, r *node.Router) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	var again time.Time
	tried := "" // whom we were to trust when it was last tried
	soon := renewSoon
	for {
		s.resolve(r)
		told := s.told(r.Controller())
		if now := s.opt.Now(); r.Status().Connected && (told != tried && told != "" || (told != "" || s.due(now)) && now.After(again)) {
			if told != tried {
				soon = renewSoon
			}
			again, tried = now.Add(renewAgain), told
			if err := s.renew(ctx, r.Controller()); err != nil {
				s.opt.Log.Warn("the router's certificates could not be renewed; it is tried again", "expires", s.expires(), "error", err)
			}
			if s.outdated(r.Controller()) {
				again, soon = now.Add(min(soon, renewAgain)), 2*soon
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// expires is when the router's certificates run out.
func (s *Station) expires() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.papers.expires()
}

// due reports whether it is time for new certificates: a third of their life is
// left.
func (s *Station) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	life := s.papers.expires().Sub(s.papers.Client.Leaf.NotBefore)
	return now.After(s.papers.expires().Add(-life / 3))
}

// outdated reports whether the router's certificate is of another authority than the
// one that the controller says signs.
func (s *Station) outdated(u *uplink.Uplink) bool {
	text, _ := u.Authorities()
	all, err := pki.ParseCertificates([]byte(text), maxCAs)
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && pki.Outdated(s.papers.Client.Leaf, all)
}

// told is whom the controller says to trust, if those are others than the router
// does, or another of them signs than signed its certificate; empty if not.
func (s *Station) told(u *uplink.Uplink) string {
	text, shown := u.Authorities()
	all, err := pki.ParseCertificates([]byte(text), maxCAs)
	if err != nil || len(all) == 0 {
		return ""
	}
	s.mu.Lock()
	present, leaf := s.papers.CAs, s.papers.Client.Leaf
	s.mu.Unlock()
	if pki.SameSet(pki.Succession(present, all, shown, s.opt.Now()), present) && !pki.Outdated(leaf, all) {
		return ""
	}
	return text
}

// resolve finds out which of two papers controllers know us by: those that one
// let us in with since that was open.
func (s *Station) resolve(r *node.Router) {
	s.mu.Lock()
	open, since := s.pending, s.since
	s.mu.Unlock()
	if open == nil {
		return
	}
	for _, c := range r.Controller().Statuses() {
		switch {
		case !c.Connected || c.Certificate == nil || c.Since.Before(since):
		case !c.Certificate.Equal(open.Client.Leaf):
			if s.opt.Now().Sub(c.Since) > doubtTime {
				s.drop()
				return
			}
		default:
			if err := s.adopt(); err != nil {
				s.opt.Log.Error("the router's new certificates could not be kept", "error", err)
			}
			return
		}
	}
}

// renew asks for new certificates, for a new key. They are on disk before the
// controller is told that they count.
func (s *Station) renew(ctx context.Context, u *uplink.Uplink) error {
	s.mu.Lock()
	now := s.papers
	s.mu.Unlock()
	place, err := s.heir().Prepare()
	if err != nil {
		return err
	}
	defer place.Close()
	key, csr, err := now.request()
	if err != nil {
		return err
	}
	got, err := u.Extend(ctx, csr, csr)
	if err != nil {
		return err
	}
	id := now.Identity
	text, err := pki.EncodeKey(key)
	if err != nil {
		return err
	}
	id.Key, id.Cert, id.ServerCert = string(text), got.Client, got.Server
	if got.CAs != "" {
		_, shown := u.Authorities()
		all, err := pki.ParseCertificates([]byte(got.CAs), maxCAs)
		if err != nil {
			return fmt.Errorf("whom the controller says to trust: %w", err)
		}
		id.CA = string(pki.EncodeCertificates(pki.Succession(now.CAs, all, shown, s.opt.Now())...))
	}
	next, err := id.use()
	if err != nil {
		return fmt.Errorf("what the controller issued cannot be used: %w", err)
	}
	if err := id.write(place); err != nil {
		return err
	}
	s.mu.Lock()
	s.pending, s.turn, s.since = next, false, s.opt.Now()
	s.mu.Unlock()
	err = u.UseCertificates(ctx, id.Cert)
	if _, refused := uplink.Final(err); refused {
		s.drop()
	}
	if err != nil {
		s.mu.Lock()
		s.since = s.opt.Now()
		s.mu.Unlock()
		return err // which of them counts shows when we connect again
	}
	s.opt.Log.Info("the router has new certificates", "expires", next.expires().UTC())
	return s.adopt()
}

// adopt makes the pending papers those that count.
func (s *Station) adopt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return nil
	}
	s.papers, s.pending, s.turn = s.pending, nil, false
	return s.heir().Succeed() // at the next start both are tried, if that fails
}

// drop forgets the pending papers.
func (s *Station) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending, s.turn = nil, false
	if err := s.heir().Drop(); err != nil {
		s.opt.Log.Warn("certificates that do not count could not be removed", "error", err)
	}
}
