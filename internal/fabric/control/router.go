package control

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Router is a connected router. All methods may be called at any time.
type Router struct {
	ID   string
	Name string // when it connected
	Edge bool   // clients connect to it
	// Follows is whether it is told whom to trust.
	Follows bool
	// Listeners are where other routers reach it, as it said.
	Listeners []message.Listener
	// Grouped routers are of the second generation.
	Grouped bool
	// Lingers is whether what it runs keeps both ends of a circuit that it is told
	// to drop for half a minute more, silent, unless their session ended before.
	Lingers bool

	speaks   string // the release whose words it uses
	early    bool   // it takes access tokens if it is told that there is a data model
	from, to string // the addresses of its first socket
	former   string // the connection that it says it has been connected by
	all      *Routers
	ch       *channel.Channel
	secret   []byte // shared by the sockets of a group
	work     work
	paces    paces
	seats    seats         // of its dials
	writes   chan struct{} // those that are being made
	unknown  atomic.Int32  // frames that nobody takes
	modelled atomic.Bool
	carrying map[string]struct{} // identities connected to it; under the mutex of all
	entered  atomic.Bool         // it is, or was, the one with its id
	left     bool                // and is no more; under the mutex of all

	presence atomic.Pointer[model.Presence]

	mu          sync.Mutex
	fingerprint string // of the certificate that it is here with
}

// Speaks is the release whose words the router uses, which is what others need to
// know.
func (r *Router) Speaks() string { return r.speaks }

// Model takes note that the router follows the data model.
func (r *Router) Model() { r.modelled.Store(true) }

// Modelled reports whether the router knows nothing of sessions of its own: it
// goes by the data model, as all of the second generation do and those of the
// first that were told that there is one.
func (r *Router) Modelled() bool { return r.Grouped || r.modelled.Load() }

// Judges reports whether the router judges the devices of clients with access tokens by
// the posture checks of the data model, as those of OpenZiti of the second generation do.
// Ours pass on what devices report, whatever one of them says of itself.
func (r *Router) Judges() bool {
	known, ok := model.EdgeRouters.Get(r.all.opt.State.Snapshot(), r.ID)
	return ok && r.Grouped && !known.TakesDigests
}

// MayBear reports whether what the router runs lets clients in that show access tokens, as
// far as it goes by the data model.
func (r *Router) MayBear() bool { return r.Grouped || r.early && r.all.tells(r) }

// Fingerprint is that of the certificate that the router is here with.
func (r *Router) Fingerprint() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fingerprint
}

// Renew makes another certificate the one that the router is here with, while
// change makes it the one that it is known by. If that fails everything is as
// before, and what happened meanwhile counts.
func (r *Router) Renew(fingerprint string, change func(present string) error) error {
	present := r.swap(fingerprint)
	err := change(present)
	if err == nil {
		return nil
	}
	r.swap(present)
	if known, ok := model.Routers.Get(r.all.opt.State.Snapshot(), r.ID); !ok || known.Disabled || known.Fingerprint != present {
		r.ch.Close(errShutOut)
	}
	return err
}

func (r *Router) swap(fingerprint string) (before string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.fingerprint = r.fingerprint, fingerprint
	return before
}

// Context ends with the connection.
func (r *Router) Context() context.Context { return r.ch.Context() }

// Remote is the address that the router connects from.
func (r *Router) Remote() string { return r.ch.Remote() }

// Tap has somebody told of the frames of its connection; nil is nobody. It reports
// whether anybody was.
func (r *Router) Tap(tap channel.Tap) (was bool) { return r.ch.Tap(tap) }

// Met is from which address to which the router has connected.
func (r *Router) Met() (from, to string) { return r.from, r.to }

// Send queues a frame. It never waits; a router that does not keep up loses
// its connection.
func (r *Router) Send(f *wire.Frame) error { return r.ch.Send(f) }

// SendWhenReady waits until what was queued before has gone out.
func (r *Router) SendWhenReady(f *wire.Frame) error { return r.ch.SendWhenReady(r.Context(), f) }

// Request sends a frame and waits for the reply.
func (r *Router) Request(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	return r.ch.Request(ctx, f)
}

// Inspect asks the router what it knows under a name, and returns it as it is
// said: most often JSON.
func (r *Router) Inspect(ctx context.Context, name string) (string, error) {
	said, err := r.InspectAll(ctx, []string{name})
	if err != nil {
		return "", err
	}
	value, ok := said.Values[name]
	if !ok {
		return "", fmt.Errorf("it says nothing of %s: %.200q", name, said.Errors)
	}
	return value, nil
}

// InspectAll is Inspect for several names at once.
func (r *Router) InspectAll(ctx context.Context, names []string) (seam.Inspected, error) {
	reply, err := r.Request(ctx, Message(message.TypeInspectRequest, &message.InspectRequest{Names: names}))
	if err != nil {
		return seam.Inspected{}, err
	}
	answer, err := message.Unmarshal[message.InspectResponse](reply.Body)
	if err != nil {
		return seam.Inspected{}, err
	}
	said := seam.Inspected{Values: make(map[string]string, len(answer.Values)), Errors: answer.Errors}
	for _, v := range answer.Values {
		said.Values[v.Name] = v.Value
	}
	return said, nil
}

// Reply answers a frame.
func (r *Router) Reply(to, f *wire.Frame) { _ = r.ch.Reply(to, f) }

// Result answers a frame that asks for nothing but whether it was heeded.
func (r *Router) Result(to *wire.Frame, success bool, text string) {
	_ = r.ch.Result(to, success, text)
}

// Refuse answers a frame about sessions with why not.
func (r *Router) Refuse(to *wire.Frame, refused *message.Refusal) { r.Reply(to, refused.Answer()) }

// What routers are refused with that may try again.
var (
	Busy     = message.Busy("the router asks for too much at once; try again")
	TryAgain = message.Busy("try again")
)

// Author is the router as the one who makes a write, because of a frame.
func (r *Router) Author(operation string, f *wire.Frame) state.Author {
	return state.Author{
		Kind: model.Routers.Name, ID: r.ID, Name: r.Name,
		Operation: operation, Request: r.ch.ID + "." + strconv.Itoa(int(f.Seq)), Source: r.Remote(),
	}
}

// Message returns a frame with a message in its body.
func Message[T any](typ int32, m *T) *wire.Frame {
	return &wire.Frame{Type: typ, Body: message.Marshal(m)}
}

// fail ends the connection of a router that says what cannot be understood.
func (r *Router) fail(err error) {
	r.ch.Close(fmt.Errorf("it sent what cannot be read: %w", err))
}

// hear hands a frame to who takes it.
func (r *Router) hear(_ *channel.Channel, f *wire.Frame) {
	if !r.shows() {
		return
	}
	if fn := r.all.handlers[f.Type]; fn != nil {
		fn(r, f)
		return
	}
	// A newer router may say more than we know. Once is enough to be told.
	if r.unknown.Add(1) == 1 {
		r.all.opt.Log.Debug("a router sends what nobody here takes", "router", r.ID, "type", f.Type)
	}
}
