package server

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/lang/spell"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/outlet"
)

const (
	// dutyAlerts is to look whether something is the matter with the network.
	dutyAlerts = "alerts"
	// alertEvery is how often a controller looks, at least.
	alertEvery = 5 * time.Second
	// endsSoon is how long before its end something is told of, and clientsEndSoon how
	// long before that of certificates that clients renew themselves.
	endsSoon, clientsEndSoon = 14 * 24 * time.Hour, 7 * 24 * time.Hour
	// endsEvery is how often that is looked at.
	endsEvery = 10 * time.Minute
	// leastSecret is how long a secret has to be that alerts are signed with.
	leastSecret = 16
)

// receivers reads who is sent alerts.
func receivers(cfg config.Config) (list []*alert.Receiver, err error) {
	var errs []error
	for _, h := range cfg.Alerts {
		r, err := receiver(h, cfg.Egress.Strict)
		if err != nil {
			errs = append(errs, fmt.Errorf("alerts: %s: %w", h.Name, err))
			continue
		}
		list = append(list, r)
	}
	return list, errors.Join(errs...)
}

func receiver(h config.Webhook, strict bool) (*alert.Receiver, error) {
	opt := egress.Options{Timeout: outletTime, Strict: strict}
	if h.CA != "" {
		text, err := os.ReadFile(h.CA)
		opt.Trust = x509.NewCertPool()
		if err == nil && !opt.Trust.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s holds no certificate as PEM", h.CA)
		}
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
	}
	client := egress.New(opt)
	if err := client.Judge(h.URL); err != nil {
		if strict && errors.Is(err, egress.ErrAddress) {
			err = fmt.Errorf("%w, which egress.strict forbids: name a receiver with a public address, or set egress.strict to false", err)
		}
		return nil, fmt.Errorf("url: %w", err)
	}
	f, err := os.Open(h.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("secretFile: %w", err)
	}
	defer f.Close()
	secret, err := config.ReadPassword(f)
	if err == nil && len(secret) < leastSecret {
		err = fmt.Errorf("has less than %d characters; openssl rand -hex 32 writes a good one", leastSecret)
	}
	if err != nil {
		return nil, fmt.Errorf("secretFile: %s %w", h.SecretFile, err)
	}
	on := h.On
	if on == nil {
		on = alert.Usual()
	}
	for _, event := range on {
		if all, ok := alert.Known(event); !ok {
			return nil, fmt.Errorf("on: there is no event %q; the nearest is %s", event, spell.Nearest(event, all))
		}
	}
	return &alert.Receiver{Name: h.Name, URL: h.URL, Secret: secret, On: on, Client: client}, nil
}

// openAlerts prepares to send alerts.
func (s *Server) openAlerts() error {
	list, err := receivers(s.cfg)
	if err != nil {
		return err
	}
	for _, r := range list {
		sum := sha256.Sum256([]byte(r.Name + "\n" + r.URL))
		r.ID = "alert-" + hex.EncodeToString(sum[:8])
		r.Network, r.State, r.Now, r.Log = rootName(s.keys.Authorities().Origin)[:16], s.state, time.Now, s.log
		f := &outlet.Follower{Name: "alert-" + r.Name, Log: &audit.Log{State: s.state}, Outlet: r, At: r, Now: time.Now, Logger: s.log}
		if s.archive != nil {
			f.Archive = s.archive.Read
		}
		s.outlets = append(s.outlets, outletJob{Follower: f, duty: r.ID})
	}
	s.receivers = list
	return nil
}

// watchAlerts has the audit log tell what is the matter with the network, until ctx ends.
func (s *Server) watchAlerts(ctx context.Context) {
	mine := func() bool { return s.duties.Mine(dutyAlerts) }
	w := &alert.Watch{State: s.state, Controller: s.roster.ID(), Now: time.Now, Log: s.log, Conditions: []alert.Condition{
		{
			Name: "router", Begun: audit.RouterOffline, Over: audit.RouterOnline, Grace: s.cfg.AlertAfter, Mine: mine, Look: s.routersOffline,
			Named: func(snap *state.Snapshot, id string) (audit.Target, bool) {
				r, ok := model.Routers.Get(snap, id)
				if !ok || r.Disabled {
					return audit.Target{}, false
				}
				return audit.To(model.Routers.Def, r), true
			},
		},
		{
			Name: "controller", Begun: audit.ControllerGone, Over: audit.ControllerBack, Grace: s.cfg.AlertAfter, Mine: mine, Look: s.controllersGone,
			Named: func(snap *state.Snapshot, id string) (audit.Target, bool) {
				c, ok := model.Controllers.Get(snap, id)
				if !ok {
					return audit.Target{}, false
				}
				return audit.To(model.Controllers.Def, c), true
			},
		},
		{
			Name: "disk", Begun: audit.DiskLow, Over: audit.DiskEnough, Grace: s.cfg.AlertAfter, Look: s.diskIsLow,
			Ours:  func(id string) bool { return id == s.roster.ID() },
			Named: func(*state.Snapshot, string) (audit.Target, bool) { return s.here(), true },
		},
		{Name: "ends", Begun: audit.EndingSoon, Mine: mine, Look: rarely(endsEvery, s.endings)},
		{
			Name: "ends-here", Begun: audit.EndingSoon, Look: rarely(endsEvery, s.endingsHere),
			Ours: func(id string) bool { return strings.HasPrefix(id, s.roster.ID()+"/") },
		},
	}}
	w.Run(ctx, min(alertEvery, s.cfg.AlertAfter))
}

// rarely looks once in a while, and in between says what it saw.
func rarely(every time.Duration, look func(*state.Snapshot) []alert.Subject) func(*state.Snapshot) []alert.Subject {
	var at time.Time
	var last []alert.Subject
	return func(snap *state.Snapshot) []alert.Subject {
		if now := time.Now(); at.IsZero() || now.Sub(at) >= every {
			at, last = now, look(snap)
		}
		return last
	}
}

// routersOffline are those that have enrolled and are nowhere.
func (s *Server) routersOffline(snap *state.Snapshot) (list []alert.Subject) {
	for r := range model.Routers.All(snap) {
		if r.Disabled || r.Fingerprint == "" {
			continue
		}
		if _, there := s.fabric.Connected(r.ID); !there {
			list = append(list, alert.Subject{ID: r.ID, Target: audit.To(model.Routers.Def, r)})
		}
	}
	return list
}

func (s *Server) controllersGone(snap *state.Snapshot) (list []alert.Subject) {
	all, _ := roster.List(snap)
	for _, c := range all {
		if !s.roster.Online(c.ID) {
			list = append(list, alert.Subject{ID: c.ID, Target: audit.To(model.Controllers.Def, c)})
		}
	}
	return list
}

// here is this controller as a target.
func (s *Server) here() audit.Target {
	return audit.Target{Kind: model.Controllers.Name, ID: s.roster.ID(), Name: s.Address()}
}

func (s *Server) diskIsLow(*state.Snapshot) []alert.Subject {
	free, ok := s.diskFree()
	if !ok || free >= int64(s.cfg.AlertDisk) {
		return nil
	}
	return []alert.Subject{{ID: s.roster.ID(), Target: s.here(), Why: "less than " + s.cfg.AlertDisk.String() + " is left for " + s.cfg.Data}}
}

// ending is something that ends.
type ending struct {
	target audit.Target
	at     time.Time
}

// endsIn yields what in the network ends at some time. What is to be told of before it
// ends is added here.
var endsIn = []func(snap *state.Snapshot, yield func(ending)){
	func(snap *state.Snapshot, yield func(ending)) {
		for ca := range model.CAs.All(snap) {
			if cert, err := ca.Certificate(); err == nil {
				yield(ending{audit.To(model.CAs.Def, ca), cert.NotAfter})
			}
		}
	},
	func(snap *state.Snapshot, yield func(ending)) {
		for s := range model.ExtJWTSigners.All(snap) {
			if !s.NotAfter.IsZero() {
				yield(ending{audit.To(model.ExtJWTSigners.Def, s), s.NotAfter})
			}
		}
	},
	func(snap *state.Snapshot, yield func(ending)) {
		for t := range model.Tokens.All(snap) {
			yield(ending{audit.To(model.Tokens.Def, t), t.ExpiresAt})
		}
	},
}

// endings is what ends soon, whichever controller looks.
func (s *Server) endings(snap *state.Snapshot) (list []alert.Subject) {
	now := time.Now()
	for _, all := range endsIn {
		all(snap, func(e ending) {
			if e.at.Sub(now) < endsSoon {
				list = append(list, e.subject(""))
			}
		})
	}
	// Clients renew theirs themselves, and there may be very many: once a week it is told
	// that there are some that have not.
	clients := 0
	for a := range model.Authenticators.All(snap) {
		if left := a.NotAfter.Time().Sub(now); !a.NotAfter.IsZero() && left > 0 && left < clientsEndSoon {
			clients++
		}
	}
	if clients > 0 {
		year, week := now.ISOWeek()
		list = append(list, alert.Subject{
			ID: fmt.Sprintf("clients/%d-%d", year, week), Target: audit.Target{Kind: model.Authenticators.Name, Name: "client certificates"},
			Why: fmt.Sprintf("%d of them end within a week", clients),
		})
	}
	return list
}

// endingsHere is what ends soon of this controller's own.
func (s *Server) endingsHere(*state.Snapshot) (list []alert.Subject) {
	now := time.Now()
	for _, item := range s.inventory() {
		if item.NotAfter.Sub(now) < endsSoon {
			e := ending{audit.Target{Kind: "certificate", ID: item.Name, Name: item.Name + " of " + s.Address()}, item.NotAfter}
			list = append(list, e.subject(s.roster.ID()+"/"))
		}
	}
	return list
}

// subject is that it ends soon. One that ends at another time is another one.
func (e ending) subject(under string) alert.Subject {
	return alert.Subject{
		ID:     fmt.Sprintf("%s%s/%s/%d", under, e.target.Kind, e.target.ID, e.at.Unix()),
		Target: e.target, Why: "it ends at " + e.at.UTC().Format("2006-01-02 15:04 MST"),
	}
}

// noteLockedOut has the audit log tell whose password does not work for now.
func (s *Server) noteLockedOut(who *model.Identity, from string) {
	by := state.Nobody
	by.Source = from
	s.recorder.Note(audit.Fact{Event: audit.LockedOut, By: by, Target: audit.To(model.Identities.Def, who), Reason: "the password was wrong too often"})
}
