// Package apisync keeps edge routers informed of who may connect to them: the API
// sessions of those whom a policy gives the router, with the certificates that
// go with each. It must not
// import rest or api, nor authn: what it needs of API sessions it is told.
package apisync

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// APISessions is what is known of API sessions.
type APISessions interface {
	// Token returns the token of one.
	Token(s *model.APISession) string
	// IDOf returns the id of the one with a token, whether it is still good or
	// not.
	IDOf(r kind.Reader, token string) (id string, ok bool)
	// Usable reports whether its holder has shown everything and is who it
	// was.
	Usable(r kind.Reader, s *model.APISession) bool
	// Stood reports the same of the moment when it was last used.
	Stood(r kind.Reader, s *model.APISession) bool
	// Keep counts as use of the one with a token; ok is false if there is none.
	Keep(r kind.Reader, token string) (ok bool)
}

// Options of a Sync.
type Options struct {
	State    *state.State
	Routers  *control.Routers
	Sessions APISessions
	Permits  permit.Register
	Version  string // of this controller
	// Mine reports whether it is up to this controller to tell a router of others
	// who may connect to it. Such a router asks whoever has told it of a client for
	// all that the client wants from then on, so of several controllers one tells
	// it, and all tell it who may not any more.
	Mine func(routerID string) bool
	// Online is told of every edge router that has said where clients reach it.
	Online func(*control.Router)
	Now    func() time.Time
	Log    *slog.Logger
}

// Sync keeps routers informed.
type Sync struct {
	Options

	mu      sync.Mutex
	routers map[*control.Router]*progress // edge routers that have said hello
}

// progress is how far a router has come.
type progress struct {
	form   form // in which it is told of sessions
	mine   bool // whether it is told of them from here
	wrong  bool // it has said where it is in a way that cannot be
	asking int  // how many of its questions wait for an answer or get one
	turn   sync.Mutex
	// While everything is being sent, what changes meanwhile waits: it must
	// not be undone by what was true before.
	syncing bool
	held    []*wire.Frame
	again   bool // what changed meanwhile is too much: start again
}

// maxHeld is how many changes wait for one router.
const maxHeld = 1000

// New returns a Sync that no router knows of.
func New(opt Options) *Sync {
	return &Sync{Options: opt, routers: map[*control.Router]*progress{}}
}

// Register has routers ask for what they need.
func (s *Sync) Register() {
	s.Routers.Joined(s.onJoined)
	s.Routers.Left(s.onLeft)
	control.On(s.Routers, message.TypeClientHello, s.onHello)
	control.On(s.Routers, message.TypeResyncRequest, s.onResync)
	control.On(s.Routers, message.TypeAPISessionHeartbeat, s.onHeartbeat)
	control.On(s.Routers, message.TypeValidateSessions, s.onValidate)
	s.Routers.Handle(message.TypeFindAPISession, s.onFind)
}

// onJoined says the first word to an edge router.
func (s *Sync) onJoined(r *control.Router) {
	if r.Edge {
		r.Describe(func(p *model.Presence) { p.Sync = model.SyncHello })
		_ = r.Send(control.Message(message.TypeServerHello, &message.ServerHello{Version: s.Version, Data: map[string]string{"instant": "true"}}))
	}
}

func (s *Sync) onLeft(r *control.Router) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.routers, r)
}

// onHello hears where clients reach a router, and tells it everything.
func (s *Sync) onHello(r *control.Router, f *wire.Frame, m *message.ClientHello) {
	if !r.Edge || !r.Resyncs() {
		return
	}
	host, urls, wrong := place(m)
	r.Describe(func(p *model.Presence) { p.Hostname, p.Listeners = host, urls })
	s.mu.Lock()
	p := s.of(r)
	tell := wrong != nil && !p.wrong
	p.wrong = p.wrong || tell
	learnt := f.Headers.Bool(message.HeaderDigests) && !p.form.digests
	if learnt { // and never back
		p.form = form{digests: true}
	}
	s.mu.Unlock()
	if tell {
		r.Say(slog.LevelWarn, "a router says of where it is what cannot be; that is left out", "reason", wrong)
	}
	if learnt {
		s.remember(r, f)
	}
	s.start(r)
	s.Online(r)
}

// rememberWait is how long it may take to write down what a router takes.
const rememberWait = 10 * time.Second

// remember writes down that a router takes digests, so that it is never told
// more, whatever it says when it comes again. It enrolled before routers said so.
func (s *Sync) remember(r *control.Router, f *wire.Frame) {
	started := r.Go(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rememberWait)
		defer cancel()
		err := s.State.Update(ctx, r.Author("takeDigests", f), func(tx *state.Tx) error {
			return model.EdgeRouters.Edit(tx, r.ID, func(e *model.EdgeRouter) error {
				e.TakesDigests = true
				return nil
			})
		})
		if err != nil {
			s.Log.Warn("could not write down that a router takes digests; it is tried again when it connects", "router", r.ID, "error", err)
		}
	})
	if !started {
		s.Log.Warn("could not write down that a router takes digests; it is tried again when it connects", "router", r.ID)
	}
}

// of is how far a router has come: it begins here if it is new, with what its
// record says that it is told. The caller holds the mutex.
func (s *Sync) of(r *control.Router) *progress {
	p := s.routers[r]
	if p == nil {
		p = &progress{form: s.recorded(r), mine: s.mine(r)}
		s.routers[r] = p
	}
	return p
}

// mine reports whether it is up to this controller to tell a router of API
// sessions. One of our own hears them from all, and asks any.
func (s *Sync) mine(r *control.Router) bool { return r.Follows || s.Mine(r.ID) }

// Divide has routers told that it is up to this controller to tell now, after
// controllers have come or gone.
func (s *Sync) Divide() {
	var fresh []*control.Router
	s.mu.Lock()
	for r, p := range s.routers {
		was := p.mine
		if p.mine = s.mine(r); p.mine && !was {
			fresh = append(fresh, r)
		}
	}
	s.mu.Unlock()
	for _, r := range fresh {
		s.start(r)
	}
}

// recorded is what a router's record says that it is told.
func (s *Sync) recorded(r *control.Router) form {
	record, ok := model.EdgeRouters.Get(s.State.Snapshot(), r.ID)
	digests := ok && record.TakesDigests
	return form{digests: digests, names: !digests && !r.Grouped}
}

// formOf is how a router is told of sessions.
func (s *Sync) formOf(r *control.Router) form {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.routers[r]; p != nil {
		return p.form
	}
	return s.recorded(r)
}

func (s *Sync) onResync(r *control.Router, _ *wire.Frame, m *message.ResyncRequest) {
	if !r.Edge || !r.Resyncs() {
		return
	}
	r.Say(slog.LevelInfo, "a router asks for all API sessions again", "reason", m.Reason)
	s.start(r)
}

// alone reports whether there is no router to tell of anything. One that comes is
// told everything as it is by then.
func (s *Sync) alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.routers) == 0
}

// broadcast tells every router that has said hello what news makes of it for
// that router: nothing if it is nil.
func (s *Sync) broadcast(news func(r *control.Router, f form) *wire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r, p := range s.routers {
		if f := news(r, p.form); f != nil {
			p.send(r, f)
		}
	}
}

// send sends a frame to a router that has been told everything, and keeps it
// for one that is being told. The caller holds the mutex.
func (p *progress) send(r *control.Router, f *wire.Frame) {
	own := *f // each gives it a number of its own
	switch {
	case !p.mine && (f.Type == message.TypeAPISessionsAdded || f.Type == message.TypeAPISessionsUpdated):
	case !p.syncing:
		_ = r.Send(&own)
	case len(p.held) < maxHeld:
		p.held = append(p.held, &own)
	default:
		p.again, p.held = true, nil
	}
}
