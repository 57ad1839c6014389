// Package terminator is where circuits leave the network: it writes down where
// clients host services as routers tell of it, takes out what is no more, and
// chooses among those that there are. It must not import rest or api.
package terminator

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Options of Hosts.
type Options struct {
	State    *state.State
	Sessions permit.Register
	Routers  *control.Routers
	// Look waits until all is known that the store has; nil if no other controller
	// writes to it.
	Look func(ctx context.Context) (*state.Snapshot, error)
	Now  func() time.Time
	Log  *slog.Logger
}

// Hosts writes down where services are hosted.
type Hosts struct {
	Options
	recheck recheck
	orphans orphans
	ledger  ledger
}

// New returns Hosts that no router tells of any yet.
func New(opt Options) *Hosts {
	h := &Hosts{Options: opt}
	h.orphans.init()
	return h
}

// The bindings of terminators that routers make for clients.
const (
	BindingEdge   = "edge"
	BindingTunnel = "tunnel"
)

// Bounds of what a router may say of one terminator.
const (
	maxAddress    = 64
	maxPeerData   = 16 << 10
	maxPerSession = 256
)

// Register has routers tell of hosts.
func (h *Hosts) Register() {
	control.On(h.Routers, message.TypeCreateTerminator, h.onCreate)
	control.On(h.Routers, message.TypeUpdateTerminator, h.onUpdate)
	control.On(h.Routers, message.TypeRemoveTerminator, h.onRemoveOne)
	control.On(h.Routers, message.TypeRemoveTerminators, h.onRemove)
	control.On(h.Routers, message.TypeTerminatorsValidated, h.onValidated)
}

// Offer is what a router says of a host: who it is and where, and how it is to
// be chosen.
type Offer struct {
	// SessionToken and APIToken are those of the host, whom the session lets
	// host; not every router says the latter.
	SessionToken, APIToken string
	Binding                string
	Address                string // which is also the terminator's id
	Cost                   uint32
	Precedence             message.Precedence
	InstanceID             string
	InstanceSecret         []byte
	PeerData               map[uint32][]byte
}

// onCreate answers a router where a client begins to host.
func (h *Hosts) onCreate(r *control.Router, f *wire.Frame, m *message.CreateTerminator) {
	h.Answer(r, f, func(ctx context.Context) error {
		return h.Create(ctx, r, f, Offer{
			SessionToken: m.SessionToken, APIToken: m.APISessionToken, Binding: BindingEdge, Address: m.Address, Cost: m.Cost,
			Precedence: m.Precedence, InstanceID: m.InstanceID, InstanceSecret: m.InstanceSecret, PeerData: m.PeerData,
		})
	}, func(o Outcome) *wire.Frame {
		return control.Message(message.TypeTerminatorCreated, &message.TerminatorCreated{
			ID: m.Address, Result: o.Result, Message: o.Text, ErrorCode: o.Code, Retry: o.Retry,
		})
	})
}

// Outcome is what became of an offer, in routers' words. Older ones know only the
// result.
type Outcome struct {
	Result message.TerminatorResult
	*message.Refusal
}

// outcome is that of an offer that was refused.
func outcome(refused *message.Refusal) Outcome {
	switch {
	case refused == errFull: // until the host gives something up: it is told
	case refused.Retry == message.RetryTooBusy:
		return Outcome{message.TerminatorBusy, refused}
	case refused.Code == message.CodeInvalidSession:
		return Outcome{message.TerminatorInvalidSession, refused}
	case refused.Code == message.CodeInvalidTerminator:
		again := *refused
		again.Retry = message.RetryStartOver // under another id
		return Outcome{message.TerminatorConflict, &again}
	}
	return Outcome{message.TerminatorFailed, refused}
}

// Answer answers a router that offers a host with what became of it.
func (h *Hosts) Answer(r *control.Router, f *wire.Frame, create func(ctx context.Context) error, frame func(Outcome) *wire.Frame) {
	started := r.For(f, func(ctx context.Context) {
		err := r.Writing(ctx, func() error { return create(ctx) })
		if err == nil {
			r.Reply(f, frame(Outcome{message.TerminatorOK, &message.Refusal{}}))
			return
		}
		refused, ok := permit.AsRefusal(err)
		if !ok {
			r.Say(slog.LevelWarn, "a terminator could not be written down; the router tries again", "error", err)
			refused = control.TryAgain
		}
		r.Reply(f, frame(outcome(refused)))
	})
	if !started {
		r.Reply(f, frame(outcome(control.Busy)))
	}
}

// Create writes down where a router says that somebody hosts. The same comes
// again after every reconnect, and must lead to the same terminator.
func (h *Hosts) Create(ctx context.Context, r *control.Router, f *wire.Frame, m Offer) error {
	s, err := permit.Certain(ctx, h.State, h.Look, h.Sessions, permit.Request{
		RouterID: r.ID, SessionToken: m.SessionToken, APIToken: m.APIToken, Type: model.Bind, Judged: r.Judges(),
	})
	if err != nil {
		return err
	}
	t, err := newTerminator(r, s, m)
	if err != nil {
		return err
	}
	if there, ok := model.Terminators.Get(h.State.Snapshot(), t.ID); !ok || !same(there, t) || there.Cost != t.Cost || there.Precedence != t.Precedence || there.SessionID != t.SessionID || there.HostKey != t.HostKey {
		err = h.State.Update(ctx, r.Author("createTerminator", f), func(tx *state.Tx) error { return write(tx, t) })
	}
	if errors.Is(err, errForged) {
		r.Say(slog.LevelWarn, "a router offers a host with another key than the host has told the controller: the router may be in somebody else's hands",
			"identity", s.IdentityID, "service", s.ServiceID)
	}
	if err == nil {
		h.recheck.later(r.ID, t.ID, h.Now().Add(recheckAfter))
	}
	return err
}

var errFull = message.Busy(fmt.Sprintf("the session has %d terminators already; stop hosting something", maxPerSession))

// write creates a terminator, or changes what there is into it.
func write(tx *state.Tx, t *model.Terminator) error {
	s, still := model.Sessions.Get(tx, t.SessionID)
	if !still {
		return permit.Refuse(message.CodeInvalidSession, "the session has ended")
	}
	if err := pinned(tx, s, t); err != nil {
		return err
	}
	there, ok := model.Terminators.Get(tx, t.ID)
	switch {
	case ok && !same(there, t):
		return permit.Refuse(message.CodeInvalidTerminator, "another terminator has this id")
	case ok:
		return model.Terminators.Edit(tx, t.ID, func(old *model.Terminator) error {
			old.Cost, old.Precedence, old.SessionID = t.Cost, t.Precedence, t.SessionID
			old.PeerData, old.HostKey = t.PeerData, t.HostKey
			return nil
		})
	case count(tx, t.SessionID) >= maxPerSession:
		return errFull
	case taken(tx.Snapshot, t):
		return permit.Refuse(message.CodeInvalidInstance, "another host has this name")
	}
	fresh := *t
	return model.Terminators.Create(tx, &fresh)
}

// same reports whether two stand for one host.
func same(a, b *model.Terminator) bool {
	return a.Binding == b.Binding && a.ServiceID == b.ServiceID && a.RouterID == b.RouterID && a.HostID == b.HostID && a.Identity == b.Identity
}

// taken reports whether others have the name that a host gives itself. Those
// have it too who know its secret; a host itself has a new one each time.
func taken(snap *state.Snapshot, t *model.Terminator) bool {
	if t.Identity == "" {
		return false
	}
	there := false
	for rec := range snap.Ranked(model.Terminators.Def).In(model.TerminatorsNamed(t.ServiceID, t.Identity)) {
		other := rec.(*model.Terminator)
		if other.HostID == t.HostID || len(t.IdentitySecret) > 0 && subtle.ConstantTimeCompare(other.IdentitySecret, t.IdentitySecret) == 1 {
			return false
		}
		there = true
	}
	return there
}

// count is how many terminators a session has.
func count(r kind.Reader, sessionID string) (n int) {
	for range model.Terminators.Select(r, "sessionId", sessionID) {
		n++
	}
	return n
}

// newTerminator makes a record of what a router says.
func newTerminator(r *control.Router, s *model.Session, m Offer) (*model.Terminator, error) {
	size := 0
	t := &model.Terminator{
		Meta: kind.Meta{ID: m.Address}, ServiceID: s.ServiceID, RouterID: r.ID, Binding: m.Binding, Address: m.Address,
		Identity: m.InstanceID, IdentitySecret: m.InstanceSecret, HostID: s.IdentityID, SessionID: s.ID, Cost: int(m.Cost),
	}
	for _, key := range slices.Sorted(maps.Keys(m.PeerData)) {
		size += len(m.PeerData[key])
		t.PeerData = append(t.PeerData, model.PeerDatum{Key: int(key), Value: m.PeerData[key]})
	}
	t.HostKey = hostKey(t.ServiceID, t.Told(message.PeerPublicKey))
	var err error
	switch t.Precedence, err = precedence(m.Precedence); {
	case err != nil:
		return nil, err
	case !plain(m.Address):
		return nil, permit.Refuse(message.CodeInvalidTerminator, "the address must be 1 to 64 letters, digits, - and _")
	case m.Cost > 65535:
		return nil, permit.Refuse(message.CodeInvalidCost, "the cost must be 0 to 65535")
	case size > maxPeerData || len(m.PeerData) > 64 || len(m.InstanceSecret) > maxPeerData || len(m.InstanceID) > 256:
		return nil, permit.Refuse(message.CodeInvalidTerminator, "it says too much of itself")
	}
	return t, nil
}

// plain reports whether a text can be an id.
func plain(s string) bool {
	if s == "" || len(s) > maxAddress {
		return false
	}
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if digit := c >= '0' && c <= '9'; !letter && !digit && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// precedence is our word for one.
func precedence(p message.Precedence) (string, error) {
	switch p {
	case message.PrecedenceDefault:
		return model.PrecedenceDefault, nil
	case message.PrecedenceRequired:
		return model.PrecedenceRequired, nil
	case message.PrecedenceFailed:
		return model.PrecedenceFailed, nil
	}
	return "", permit.Refuse(message.CodeInvalidPrecedence, "there is no such precedence")
}
