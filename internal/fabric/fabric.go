// Package fabric is the routers of a network as one controller sees them: it
// puts together the parts below it, each of which does one thing, and tells
// them what changes. It must not import rest or api.
package fabric

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"runtime"
	"slices"
	gosync "sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/apisync"
	"netkeep.internal/internal/fabric/asclient"
	"netkeep.internal/internal/fabric/circuit"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/datamodel"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/link"
	"netkeep.internal/internal/fabric/path"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/fabric/usage"
	"netkeep.internal/internal/fabric/whereabouts"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/wire/message"
)

// Options of a Fabric.
type Options struct {
	State *state.State
	// ID is how routers know this controller. It must outlive restarts.
	ID string
	// Alone is whether there is no other controller, and can be none.
	Alone bool
	// By is the controller that this process is: the same, unless it answers under
	// the id of another.
	By string
	// Mine reports whether something falls to this controller that one must see to.
	Mine func(what string) bool
	// Tells reports whether it is under an id that a router hears what only one
	// controller tells it.
	Tells func(id, routerID string) bool
	// Book is what other controllers say of routers that are at them; nil if there is
	// no other. Lease is what is said to them hangs on.
	Book  *whereabouts.Book
	Lease func() store.Lease
	// Beside is the fabric of the same controller under its own id; nil for that one.
	Beside *Fabric
	// Look waits until this controller knows all that the store has; nil if there is
	// no other that writes to it.
	Look func(ctx context.Context) (*state.Snapshot, error)
	// Ask asks all other controllers something, and reports whether one says yes.
	Ask func(ctx context.Context, what string) (bool, error)
	// Authorities are what certificates of this network chain to at present.
	Authorities func() *pki.Authorities
	APISessions apisync.APISessions
	Sessions    permit.Register
	// Tokens are those of sessions.
	Tokens *grant.Tokens
	// Devices is told what clients report of theirs through routers.
	Devices Devices
	// Clients is where routers become clients themselves, and Changed is when
	// what an identity sees last changed.
	Clients asclient.Clients
	Changed func(snap *state.Snapshot, identityID string) time.Time
	// Bearing is how long access tokens are good; 0 if there are none.
	Bearing time.Duration
	Build   model.RouterVersion
	Renewal Renewal
	// Kept is told of every connection that a router was let in with.
	Kept func(net.Conn)
	// Misbehaved is told of what routers do that none should, in a word.
	Misbehaved func(reason string)
	// Dialled and Carried are told of every dial and of what services
	// carry, for monitoring.
	Dialled func(reason string, took time.Duration)
	Carried func(serviceID string, sent, received uint64)
	// Herald tells of routers, links and circuits to those who look.
	Herald *herald.Herald
	// Recorder takes note of routers and circuits, and Each says that every circuit
	// has an entry of its own.
	Recorder *audit.Recorder
	Each     bool
	Now      func() time.Time
	Log      *slog.Logger
}

// Fabric is the routers of a network and what they carry. It is the
// [edge.Routers] of a controller that serves them.
type Fabric struct {
	*control.Routers
	Links    *link.Links
	Circuits *circuit.Circuits
	Hosts    *terminator.Hosts

	opt     Options
	notes   *whereabouts.Notes // nil if there is nobody to tell
	sync    *apisync.Sync
	models  *datamodel.Models
	tunnels *asclient.Tunnels
	graph   *path.Graph
	traced  traced
	// second is the fabric under the id of another controller; nil while there is
	// none.
	second atomic.Pointer[Fabric]
}

var _ seam.Routers = (*Fabric)(nil)

// Distance is what the cheapest path from one router to another costs.
func (f *Fabric) Distance(from, to string) (int64, bool) { return f.graph.Cost(from, to) }

// ID is how routers know this controller.
func (f *Fabric) ID() string { return f.opt.ID }

// DynamicCost is what a terminator costs more at present.
func (f *Fabric) DynamicCost(t *model.Terminator) int { return f.Hosts.DynamicCost(t) }

// release is the one whose words routers take ours for: they know what to
// expect of a controller by its version.
const release = "v2.0.0"

// New puts a fabric together. It begins with the first router that connects.
func New(opt Options) *Fabric {
	build := opt.Build
	build.Version, build.OS, build.Arch = release, runtime.GOOS, runtime.GOARCH
	f := &Fabric{opt: opt}
	connections := control.Options{
		State: opt.State, Bundle: func() []*x509.Certificate { return opt.Authorities().Bundle() }, ID: f.ID(), Several: !opt.Alone, Bearers: opt.Bearing > 0, Herald: opt.Herald, Build: build, Kept: opt.Kept, Misbehaved: opt.Misbehaved, Recorder: opt.Recorder, Now: opt.Now, Log: opt.Log,
	}
	if opt.Book != nil {
		f.notes = whereabouts.NewNotes(whereabouts.Options{By: opt.By, ID: f.ID(), Lease: opt.Lease, Here: f.here, All: f.ids, Log: opt.Log})
		connections.Changed = func(routerID string) { f.notes.Changed(routerID) }
	}
	f.Routers = control.New(connections)
	f.Hosts = terminator.New(terminator.Options{State: opt.State, Sessions: opt.Sessions, Routers: f.Routers, Look: opt.Look, Now: opt.Now, Log: opt.Log})
	f.graph = path.New()
	meter := usage.New(usage.Options{
		Circuit: func(id string) (*circuit.Circuit, bool) { return f.Circuits.Get(id) }, Carried: opt.Carried, Told: f.tellUsage, Now: opt.Now,
	})
	f.Circuits = circuit.New(circuit.Options{
		State: opt.State, Sessions: opt.Sessions, Routers: f.Routers, Graph: f.graph, Hosts: f.Hosts, Now: opt.Now, Log: opt.Log,
		Recorder: opt.Recorder, Each: opt.Each, Herald: opt.Herald, Dialled: opt.Dialled, Ended: meter.Ended, Controller: f.ID(), Online: f.anywhere(), Look: opt.Look,
		LinkFault: func(r *control.Router, m *message.Fault) { f.Links.Fault(r, m) },
		LinkKnown: func(id string) bool {
			_, known := f.Links.Lookup(id)
			return known
		},
	})
	f.Links = link.New(link.Options{
		State: opt.State, Routers: f.Routers, Graph: f.graph, Lost: f.Circuits.LinksLost, Told: f.tellLink, Found: f.Circuits.PathsFound, Usage: f.counted(meter), Heard: f.tellFigures, Controller: f.ID(), Now: opt.Now, Log: opt.Log,
	})
	f.sync = apisync.New(apisync.Options{
		State: opt.State, Routers: f.Routers, Sessions: opt.APISessions, Permits: opt.Sessions,
		Mine: func(routerID string) bool { return opt.Tells(f.ID(), routerID) }, Version: release, Online: f.online, Now: opt.Now, Log: opt.Log,
	})
	f.models = datamodel.New(datamodel.Options{State: opt.State, Timely: opt.Sessions.Timely, Routers: f.Routers, Keys: f.keys, Bearing: opt.Bearing, Asked: f.noteModelled, Now: opt.Now, Log: opt.Log})
	f.tunnels = asclient.New(asclient.Options{
		State: opt.State, Routers: f.Routers, Clients: opt.Clients, Hosts: f.Hosts, Circuits: f.Circuits,
		Timely: opt.Sessions.Timely, Token: opt.Tokens.Of, Changed: opt.Changed, Log: opt.Log,
	})
	f.sync.Register()
	f.models.Register()
	f.tunnels.Register()
	f.Hosts.Register()
	f.Links.Register()
	f.Circuits.Register()
	f.registerRetire()
	f.registerSmall()
	f.registerMembers()
	f.Joined(f.tellAuthorities)
	f.Joined(f.noteConnected)
	f.Joined(func(r *control.Router) {
		f.tellRouter(r, "connected")
		f.tellConnected(r)
	})
	f.Left(func(r *control.Router) {
		if _, again := f.Get(r.ID); !again {
			f.tellRouter(r, "lost")
		}
	})
	return f
}

// ControllersChanged divides the work among the controllers that are there now.
func (f *Fabric) ControllersChanged() {
	for _, f := range f.both() {
		f.sync.Divide()
	}
}

// online has an edge router that has just connected say what it has.
func (f *Fabric) online(r *control.Router) { f.Hosts.AskAll(r) }

// keys are what routers of the second generation check with: session tokens
// with ours, certificates of clients with those of every CA that clients may
// have theirs from.
func (f *Fabric) keys(snap *state.Snapshot) []message.PublicKey {
	var keys []message.PublicKey
	for _, key := range f.opt.Tokens.PublicKeys() {
		keys = append(keys, message.PublicKey{Data: key.PKIX, KeyID: key.ID, Usages: []message.KeyUsage{message.ForTokens}, Format: message.KeyPKIX})
	}
	authorities := f.opt.Authorities()
	for _, root := range slices.Concat(authorities.Roots(), authorities.Anchors) {
		keys = append(keys, certificateKey(root))
	}
	for ca := range model.CAs.All(snap) {
		if cert, err := ca.Certificate(); err == nil && ca.IsVerified {
			keys = append(keys, certificateKey(cert))
		}
	}
	return keys
}

func certificateKey(c *x509.Certificate) message.PublicKey {
	return message.PublicKey{
		Data: c.Raw, KeyID: pki.Fingerprint(c), Usages: []message.KeyUsage{message.ForClientCertificates}, Format: message.KeyCertificate,
	}
}

// Run tells routers what changes mean for them, until ctx ends.
func (f *Fabric) Run(ctx context.Context) {
	sub := f.opt.State.Subscribe()
	var parts gosync.WaitGroup
	defer parts.Wait()
	all := []func(context.Context){f.Hosts.Sweep, f.Links.Run, f.Circuits.Run, f.tunnels.Keep}
	if f.notes != nil {
		all = append(all, f.notes.Write)
	}
	for _, part := range all {
		parts.Go(func() { part(ctx) })
	}
	var before *state.Snapshot
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			return
		}
		if ev.Reset != nil {
			f.reset(ev.Reset)
		} else {
			f.apply(before, ev)
		}
		before = ev.After
	}
}

// reset looks at everything: anything may have changed.
func (f *Fabric) reset(snap *state.Snapshot) {
	f.membersChanged(snap, everMoved)
	f.sync.Restart()
	f.models.Restart()
	f.tunnels.Review(snap)
	f.Links.Review(snap)
	f.Circuits.Review(snap)
	f.Hosts.Review(snap)
}

// apply tells routers what a change means for them.
func (f *Fabric) apply(before *state.Snapshot, ev state.Event) {
	var changed []state.Ref
	moved := false
	for _, w := range ev.Writes {
		for _, c := range w.Changes {
			changed = append(changed, c.Ref)
			moved = moved || c.Def == model.Controllers.Def
			f.changed(before, ev.After, c)
		}
	}
	if moved {
		f.membersChanged(ev.After, movedSince(before))
	}
	f.sync.Applied(before, ev.After, changed)
	f.models.Applied(before, ev.After, changed)
}

// changed passes on what one record means for routers.
func (f *Fabric) changed(before, after *state.Snapshot, c state.Change) {
	switch was := c.Before.(type) {
	case *model.ServicePolicy, *model.EdgeRouterPolicy, *model.ServiceEdgeRouterPolicy, *model.Identity, *model.Service, *model.PostureCheck, *model.AuthPolicy:
		f.Circuits.EndUnnamed()
	case *model.Session:
		if c.After == nil {
			f.ended(before, after, was)
		}
	case *model.Terminator:
		if c.After == nil {
			f.Hosts.Gone(was)
		}
	case *model.Router:
		is, _ := c.After.(*model.Router)
		if is == nil || is.Disabled {
			f.Links.Removed(was.ID)
			f.Circuits.RouterGone(was.ID)
			return
		}
		f.Links.Changed(is)
	}
}

// counted has what routers have counted heard by those who want to know whose circuits are,
// and by a meter.
func (f *Fabric) counted(meter *usage.Meter) func(routerID string, counted []message.Usage) {
	return func(routerID string, counted []message.Usage) {
		f.Circuits.Counted(routerID, counted)
		meter.Heard(routerID, counted)
	}
}

// Late does what can be done without the store when the time of a policy or a grant
// is over and nobody can write it: connections end, whatever else waits, also those that
// another controller has made, which may be gone.
func (f *Fabric) Late(is, would *state.Snapshot, changed []state.Ref) {
	for who := range would.At(model.Identities.Def, access.Affected(is, would, changed)) {
		for s := range model.Sessions.Select(is, "identityId", who.Base().ID) {
			if !f.opt.Sessions.Live(would, s) {
				f.sync.SessionRemoved(is, s, gosync.OnceValue(func() string { return f.opt.Tokens.Of(s) }))
				f.Circuits.EndSession(s.ID, s.Plain)
				f.Circuits.EndStrays(s)
			}
		}
	}
	f.Circuits.Late(is, would)
}

// ended takes along what a session was used for.
func (f *Fabric) ended(before, after *state.Snapshot, s *model.Session) {
	// Routers that end connections when their session is over hear of that first.
	f.sync.SessionRemoved(before, s, gosync.OnceValue(func() string { return f.opt.Tokens.Of(s) }))
	f.Circuits.EndSession(s.ID, s.Plain)
	f.Circuits.EndStrays(s)
	f.tunnels.EndSession(after, s)
	if s.Type == model.Bind {
		f.Hosts.EndSession(after, s.ID)
	}
}
