package server

import (
	"context"
	"crypto"
	"log/slog"
	"strings"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/api/client"
	fabricapi "netkeep.internal/internal/web/api/fabric"
	"netkeep.internal/internal/web/api/management"
	"netkeep.internal/internal/web/rest"
)

// How much there may be of everything at a time.
const (
	maxBodies   = 16 << 20 // bytes of request bodies
	maxAnswers  = 64 << 20 // bytes of answers that are being sent
	maxMoving   = 1000     // bodies that are being sent, and answers
	maxRequests = 1000     // requests in work
	// leastRate is how many bytes a second must come of a body that takes long.
	leastRate = 8 << 10
	// What one connection may have going on, and how much of what it sends
	// waits until it is wanted.
	maxStreams    = 100
	receiveBuffer = 64 << 10
	// streamPulse is how often a stream shows that it is there: often enough for
	// what lies between, which forgets connections that are still.
	streamPulse = 15 * time.Second
)

// newGrants returns the sessions to dial and host of a controller, whole and
// told of every change.
func newGrants(st *state.State, holders *authn.APISessions, tokens *grant.Tokens, log *slog.Logger) *grant.Grants {
	changes := new(access.LastChange)
	sessions := &grant.Grants{
		State: st, Usable: holders.Usable, Recall: holders.Recall, RecallFormer: holders.RecallFormer, Failures: new(posture.Failures), Changes: changes, Tokens: tokens, Now: holders.Now, Log: log,
	}
	attend(st, changes, sessions)
	return sessions
}

// attend has those told of every change of memory who must know before the
// writer is answered: a client that hears of a change from whoever made it must
// find that there is something to reload, and its sessions must be among those
// to be looked at.
func attend(st *state.State, changes *access.LastChange, sessions *grant.Grants) {
	st.Attend(func(before, after *state.Snapshot, changed []state.Ref) {
		if before == nil {
			changes.Reset(after.Time)
			sessions.Applied(nil, after, nil, nil)
			return
		}
		affected := changes.Apply(before, after, changed)
		sessions.Applied(before, after, changed, affected)
	})
}

// serve puts the APIs together and starts to answer.
func (s *Server) serve(hasher *authn.Hasher) error {
	if err := s.useSecrets(); err != nil {
		return err
	}
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	if err := s.serveMetrics(); err != nil {
		return err
	}
	tokens := authn.NewTokens(egress.New(egress.Options{Strict: s.cfg.Egress.Strict}).Get, s.clock.Now, s.log)
	tokens.People = people.NewRegister(s.state, s.clock.Now)
	sessions := &authn.APISessions{State: s.state, Tokens: tokens, Keys: s.apiKeys, Timeout: s.cfg.Session.Timeout, Lifetime: s.cfg.Session.Lifetime, Most: s.cfg.Limits.APISessions, Now: s.clock.Now, Log: s.log}
	if s.cfg.OIDC.Enabled.Maybe() {
		sessions.Signers = s.sessionTokens
	}
	grants := newGrants(s.state, sessions, s.sessionTokens, s.log)
	grants.Failed = s.figures.PostureFailed
	grants.CutOff, grants.View = s.cutOff, s.validity.View
	s.recorder.At(s.roster.ID())
	s.noteRestored()
	s.attest()
	s.jobs.Go(func() { s.recorder.Run(run) })
	s.jobs.Go(func() { grants.Changes.Wake(run) })
	s.divide(run, sessions, grants)
	s.jobs.Go(func() { sessions.Flush(run, min(90*time.Second, s.cfg.Session.Timeout/4)) })
	machines := &authn.Machines{State: s.state, Tokens: tokens, Now: s.clock.Now, Log: s.log}
	s.jobs.Go(func() { machines.Flush(run, min(90*time.Second, s.cfg.Session.Timeout/4)) })
	passwords := authn.NewPasswords(hasher, sessions, time.Now, s.cfg.Limits.Guesses)
	passwords.LockedOut = s.noteLockedOut
	desk := &enroll.Desk{
		State: s.state, Signer: s.keys.Signer(), Bundle: s.keys.TrustBundle, Passwords: passwords, Tokens: tokens, Now: s.clock.Now, Log: s.log,
		Recorder: s.recorder, Lifetimes: enroll.Lifetimes(s.cfg.Lifetimes), SessionCertificates: s.cfg.Limits.SessionCertificates,
	}
	shared := s.share(run)
	s.openFabric(sessions, grants, desk, shared)
	s.remember(run)
	s.jobs.Go(func() { s.fabric.Run(run) })
	s.jobs.Go(func() { s.roster.Run(run) })
	if s.book != nil {
		s.jobs.Go(func() { s.book.Follow(run) })
	}
	s.serveRouters(run)
	s.serveReserve(run)
	s.jobs.Go(func() { seam.DropLost(run, s.state, s.fabric) })
	s.jobs.Go(func() { s.renewCertificate(run, 12*time.Hour) })
	s.jobs.Go(func() { s.followKeys(run, time.Second) })
	s.jobs.Go(func() { s.turnSecrets(run, sessions) })
	s.jobs.Go(func() { s.watchStore(run, time.Second) })
	s.jobs.Go(func() { s.watchMembers(run, time.Second) })
	s.jobs.Go(func() { s.report(run) })
	s.jobs.Go(func() { s.watchAlerts(run) })
	scanner := s.newScanner()
	s.jobs.Go(func() { scanner.Run(run) })
	s.jobs.Go(func() { s.state.Keep(run) })
	entries := &audit.Log{State: s.state}
	s.jobs.Go(func() { entries.Follow(run, keepEvery) })
	handler, err := s.newAPIs(shared, &api.Service{
		Sessions: sessions, Passwords: passwords,
		Desk: desk, Machines: machines,
		Certs: &authn.Certificates{Bundle: s.keys.TrustBundle, Now: s.clock.Now, Log: s.log}, Tokens: tokens,
		Factors: &authn.Factors{State: s.state, Now: s.clock.Now, Issuer: "netkeep"},
		Address: s.Address(), ManagementAddress: s.ManagementAddress(), Started: time.Now(), Bundle: s.keys.TrustBundle, Outdated: s.outdated,
		Issuer: &enroll.Issuer{Places: s.places, Roots: s.roots, Key: s.servedKey},
		Grants: grants, Routers: s.fabric, Choose: s.fabric.Hosts.Choose, Fabric: s.fabric.View(), ControllerID: s.fabric.ID(), Settings: s.settings, Controllers: s.roster, Announce: s.cfg.Cluster.Announce, Offers: s.offers(), Integrity: scanner, Snapshots: s.snapshots, Cluster: cluster{s}, Audit: entries, Recorder: s.recorder, Herald: s.herald, Figures: s.measured,
		Health: s.checks(), Certificates: s.inventory, StoreSize: s.storeSize, DiskFree: s.diskFree, LoggedIn: s.figures.Login, Day: s.day, Alerts: s.receivers,
		Logins:      limit.Rate[limit.Party]{PerMinute: s.cfg.Limits.Logins, Now: time.Now},
		Enrollments: limit.Rate[limit.Party]{PerMinute: s.cfg.Limits.Enrollments, Now: time.Now},
		Refused:     limit.Rate[limit.Party]{PerMinute: s.cfg.Limits.Guesses, Now: time.Now},
	})
	if err != nil {
		return err
	}
	s.keepTime(run, handler.review)
	s.answer(handler)
	return s.startInner(desk)
}

// servedKey is the key of the certificate that is served now.
func (s *Server) servedKey() crypto.Signer { return s.served.Current().PrivateKey.(crypto.Signer) }

// newAPIs builds the APIs over the state.
func (s *Server) newAPIs(shared *rest.Shared, svc *api.Service) (*apis, error) {
	svc.Specs = &api.Specs{}
	share, t := limit.Share(s.cfg.Limits.Share), s.cfg.Timeouts
	bodies := &limit.Bodies{Bytes: maxBodies, Max: maxMoving, Share: share, Now: time.Now}
	answers := &limit.Bodies{Bytes: maxAnswers, Max: maxMoving, Share: share, Now: time.Now}
	requests := &limit.Slots{Max: maxRequests, Share: share}
	s.streams = &rest.Streams{
		Slots: limit.Slots{Max: s.cfg.Limits.Streams, Each: s.cfg.Limits.IdentityStreams},
		Pulse: streamPulse, Patience: t.Write, Began: s.figures.Stream,
	}
	svc.Streams, svc.Network = s.streams, func() string { return s.Fingerprint()[:16] }
	s.state.Attend(svc.Review)
	newAPI := func(name, title, doc, root string) *rest.API {
		return &rest.API{
			Name: name, Title: title, Doc: doc, Version: api.Version, Root: root, Groups: api.Groups,
			State: s.state, Timely: s.validity.View, Shared: shared, Gate: s.knowing(svc.Gate), Log: s.log, Timeout: t.Request, Sending: t.Write, MaxBody: int64(s.cfg.Limits.Body),
			Bodies: bodies, Requests: requests, Answers: answers, Streams: s.streams,
			StrangerPace: limit.Pace{First: t.Body}, Pace: limit.Pace{First: t.Body, Least: leastRate, Last: t.Read},
		}
	}
	h := &apis{
		client:     newAPI("edge-client", "Edge Client API", "What clients need to enroll, to authenticate and to use services.", api.ClientRoot),
		management: newAPI("edge-management", "Edge Management API", "What those need who run the network.", api.ManagementRoot),
		fabric:     newAPI("fabric", "Fabric API", "What routers make between them, for those who run the network.", api.FabricRoot),
		instance:   state.NewID(), version: build.Version, review: svc.Review,
	}
	// A router may know the token of somebody who runs the network.
	// Clients walk through lists without a look, and tools see a change where they said
	// null and read a list.
	h.management.Nulls = true
	h.management.Key, h.fabric.Key = rest.KeyOnly, rest.KeyOnly
	client.Mount(h.client, svc)
	management.Mount(h.management, svc)
	fabricapi.Mount(h.fabric, svc)
	for _, a := range []*rest.API{h.client, h.management, h.fabric} {
		if err := svc.Specs.Add(a, svc.Started); err != nil {
			return nil, err
		}
		s.watch(a)
	}
	h.console = s.newConsole(h)
	h.oidc = s.newOIDC(svc, requests, bodies)
	return h, nil
}

// settings are those that the controller runs with, for who looks into it. Secrets are
// not among them.
func (s *Server) settings() string {
	var text strings.Builder
	_ = s.cfg.Print(&text, nil) // which a text always takes
	return text.String()
}
