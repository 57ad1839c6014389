// Package asclient is routers that are clients of the network themselves: each
// acts as the identity that has its id, lists what it may use if it does not
// know that beforehand, hosts and dials. Whether it may is decided where it is
// for all clients; this package turns a router's words into a client's and keeps
// nothing but what a router said of itself. It must not import rest or api.
package asclient

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/circuit"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Clients is where routers become clients.
type Clients interface {
	// Enter returns what a connected router is as a client. It is refused with
	// fault.CodeAuth to one that may not be any.
	Enter(ctx context.Context, by state.Author, routerID string, said Said) (Client, error)
}

// Client is a router as a client, with its API session.
type Client interface {
	Session() *model.APISession
	Identity() *model.Identity
	Token() string
	// Lasts is how long the API session lasts if the router does nothing.
	Lasts() time.Duration
	// Complete reports whether nothing is left to be shown.
	Complete() bool
	// Grant returns the session to dial or host a service.
	Grant(ctx context.Context, by state.Author, serviceID, typ string) (*model.Session, error)
}

// Said is what a router says of itself as a client; nothing if it said so to
// another controller.
type Said struct {
	ConfigTypes []string
	Env         *model.EnvInfo
	SDK         *model.SDKInfo
}

// Options of Tunnels.
type Options struct {
	State    *state.State
	Routers  *control.Routers
	Clients  Clients
	Hosts    *terminator.Hosts
	Circuits *circuit.Circuits
	// Timely is a snapshot in which nothing counts whose time is over by the clock.
	Timely func(*state.Snapshot) *state.Snapshot
	// Token is that of a session to dial or host.
	Token func(*model.Session) string
	// Changed is when what an identity sees last changed.
	Changed func(snap *state.Snapshot, identityID string) time.Time
	Log     *slog.Logger
}

// Tunnels answers routers that are clients.
type Tunnels struct {
	Options
	peers sync.Map // of *control.Router to *peer
}

// peer is what is known of a connected router.
type peer struct {
	said    atomic.Pointer[Said]
	knows   atomic.Pointer[string] // the API session that it was told of last
	listing atomic.Bool            // whether it is being told what it may use
}

// New returns tunnels that no router has asked for.
func New(opt Options) *Tunnels { return &Tunnels{Options: opt} }

// Register has routers ask.
func (t *Tunnels) Register() {
	control.On(t.Routers, message.TypeCreateTunnelSession, t.onBegin)
	t.Routers.Handle(message.TypeListTunnelServices, t.onList)
	control.On(t.Routers, message.TypeCreateTunnelCircuit, t.onDial)
	control.On(t.Routers, message.TypeCreateTunnelTerminator, t.onHost)
	control.On(t.Routers, message.TypeUpdateTunnelTerminator, t.onUpdate)
	t.Routers.Handle(message.TypeRemoveTunnelTerminator, t.onRemove)
	control.On(t.Routers, message.TypeDialAsClient, t.onDialAsClient)
	control.On(t.Routers, message.TypeHostAsClient, t.onHostAsClient)
	// What a router makes of its checks it says by precedence and cost.
	t.Routers.Handle(message.TypeTunnelHealthEvent, func(*control.Router, *wire.Frame) {})
}

// EndSession tells the router whose session has ended: it may have lost only
// the session, and then asks for another. For one that knows nothing of sessions
// that is done here.
func (t *Tunnels) EndSession(snap *state.Snapshot, s *model.Session) {
	r, ok := t.Routers.Get(s.IdentityID)
	if !ok {
		return
	}
	if !r.Modelled() {
		_ = r.Send(control.Message(message.TypeSessionsRemoved, &message.Removed{IDs: []string{s.ID}, Tokens: []string{told(s).Token}}))
		return
	}
	t.renew(snap, r, s)
}

// told is a session as its router knows it. The token is only what the end of
// the session is told by, and opens nothing.
func told(s *model.Session) *message.TunnelPermit {
	return &message.TunnelPermit{ID: s.ID, Token: s.ID}
}

func (t *Tunnels) peer(r *control.Router) *peer {
	if p, ok := t.peers.Load(r); ok {
		return p.(*peer)
	}
	p, known := t.peers.LoadOrStore(r, new(peer))
	if !known {
		// Also if it is gone already: what it asked for last may still be worked on.
		context.AfterFunc(r.Context(), func() { t.peers.Delete(r) })
	}
	return p.(*peer)
}

// work answers a request with what do returns, or with why not.
func (t *Tunnels) work(r *control.Router, f *wire.Frame, do func(ctx context.Context) (*wire.Frame, error)) {
	t.begin(r, f, r.For, do)
}

// begin is work that begins in one of the ways that a router has.
func (t *Tunnels) begin(r *control.Router, f *wire.Frame, how func(*wire.Frame, func(context.Context)) bool, do func(ctx context.Context) (*wire.Frame, error)) {
	started := how(f, func(ctx context.Context) {
		answer, err := do(ctx)
		if err == nil {
			r.Reply(f, answer)
			return
		}
		refused, ok := permit.AsRefusal(err)
		if !ok {
			r.Say(slog.LevelWarn, "a router got no answer as a client; it tries again", "error", err)
			refused = control.TryAgain
		}
		t.Log.Debug("a router was refused as a client", "router", r.ID, "code", refused.Code, "reason", refused.Text)
		r.Refuse(f, refused)
	})
	if !started {
		r.Refuse(f, control.Busy)
	}
}

// enter returns a router as a client, or a refusal.
func (t *Tunnels) enter(ctx context.Context, r *control.Router, by state.Author) (Client, error) {
	said := Said{}
	if known := t.peer(r).said.Load(); known != nil {
		said = *known
	}
	who, err := t.Clients.Enter(ctx, by, r.ID, said)
	switch {
	case fault.Is(err, fault.CodeAuth) || fault.Is(err, fault.CodeUnauthorized):
		return nil, permit.Refuse(message.CodeTunnelingNotEnabled, "this router may not be a client; turn its isTunnelerEnabled on, or take the tunnel listener out of its config")
	case err != nil:
		return nil, err
	case !who.Complete():
		return nil, permit.Refuse(message.CodeTunnelingNotEnabled, "the router's identity has to show a second factor, which a router has not; give it another authentication policy")
	}
	return who, nil
}

// Bounds of what a router may say in a request.
const (
	maxName     = 256 // characters of names of services and hosts, as the model has it
	maxPeerData = 64 << 10
	maxPeerKeys = 128
)

// request is what routers ask for: a service by name or id, and the session
// that they had for it last.
type request struct {
	service, serviceID, session, instance string
	peerData                              map[uint32][]byte
}

// find returns the service.
func (q request) find(snap *state.Snapshot) (*model.Service, bool) {
	if q.serviceID != "" {
		return model.Services.Get(snap, q.serviceID)
	}
	return model.Services.Find(snap, "name", q.service)
}

func (q request) check() error {
	size := 0
	for _, value := range q.peerData {
		size += len(value)
	}
	if len(q.service) > 4*maxName || len(q.instance) > maxName || size > maxPeerData || len(q.peerData) > maxPeerKeys {
		return permit.Refuse(message.CodeInternal, "the request says too much")
	}
	return nil
}

// permission is a router as a client with what it may do.
type permission struct {
	who     Client
	session *model.Session
}

// permit returns a router's permission to dial or host a service.
func (t *Tunnels) permit(ctx context.Context, r *control.Router, by state.Author, q request, typ string) (p permission, err error) {
	if p.who, err = t.enter(ctx, r, by); err == nil {
		p.session, err = t.grant(ctx, r, by, p.who, q, typ)
	}
	return p, err
}

// grant returns a router's session to dial or host a service, which it must
// still be permitted to use: that is looked at when it does.
func (t *Tunnels) grant(ctx context.Context, r *control.Router, by state.Author, who Client, q request, typ string) (*model.Session, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	snap := t.State.Snapshot()
	if had, ok := model.Sessions.Get(snap, q.session); ok && had.IdentityID != r.ID {
		return nil, permit.Refuse(message.CodeInvalidSession, "the session is somebody else's")
	}
	service, ok := q.find(snap)
	if !ok {
		return nil, errNoService
	}
	if s, ok := model.Sessions.Find(snap, "key", model.SessionKey(who.Session().ID, typ, service.ID)); ok {
		return s, nil
	}
	s, err := who.Grant(ctx, by, service.ID, typ)
	if err != nil {
		return nil, refusal(err)
	}
	return s, nil
}

// errNoService does not tell a service that is not there from one that the
// router may not use.
var errNoService = permit.Refuse(message.CodeInvalidService, "there is no such service, or no policy lets the router use it")

// refusal is why a session was not granted, in a router's words.
func refusal(err error) error {
	switch fault.CodeOf(err) {
	case fault.CodeNotFound:
		return errNoService
	case fault.CodeInvalid, fault.CodePosture:
		return permit.Refuse(message.CodeAccessDenied, err.Error())
	case fault.CodeNoRouters:
		return permit.Refuse(message.CodeRouterNotAllowed, err.Error())
	case fault.CodeUnauthorized:
		return permit.Refuse(message.CodeInvalidAPISession, err.Error())
	}
	return err
}
