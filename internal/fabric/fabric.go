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
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/circuit"
	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/datamodel"
	"netkeep/internal/fabric/edge"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/permit"
	"netkeep/internal/fabric/sync"
	"netkeep/internal/fabric/terminator"
	"netkeep/internal/model"
	"netkeep/internal/pki"
	"netkeep/internal/policy/session"
)

// Options of a Fabric.
type Options struct {
	State *state.State
	// Root and Bundle are what certificates of this network chain to.
	Root        *x509.Certificate
	Bundle      []*x509.Certificate
	APISessions sync.APISessions
	Sessions    permit.Register
	// Tokens are those of sessions.
	Tokens  *session.Tokens
	Build   edge.Version
	Renewal Renewal
	// Kept is told of every connection that a router was let in with.
	Kept func(net.Conn)
	Now  func() time.Time
	Log  *slog.Logger
}

// Fabric is the routers of a network and what they carry.
type Fabric struct {
	*control.Routers
	Circuits *circuit.Circuits
	Hosts    *terminator.Hosts

	opt    Options
	sync   *sync.Sync
	models *datamodel.Models
}

// release is the one whose words routers take ours for: they know what to
// expect of a controller by its version.
const release = "v2.0.0"

// New puts a fabric together. It begins with the first router that connects.
func New(opt Options) *Fabric {
	build := opt.Build
	build.Version, build.OS, build.Arch = release, runtime.GOOS, runtime.GOARCH
	id := pki.Fingerprint(opt.Root)
	f := &Fabric{opt: opt, Routers: control.New(control.Options{
		State: opt.State, Bundle: opt.Bundle, ID: "netkeep-" + id[:12], Build: build, Kept: opt.Kept, Now: opt.Now, Log: opt.Log,
	})}
	f.Hosts = terminator.New(terminator.Options{State: opt.State, Sessions: opt.Sessions, Routers: f.Routers, Now: opt.Now, Log: opt.Log})
	f.Circuits = circuit.New(circuit.Options{
		State: opt.State, Sessions: opt.Sessions, Routers: f.Routers, Invalid: f.Hosts.Invalid, Now: opt.Now, Log: opt.Log,
	})
	f.sync = sync.New(sync.Options{
		State: opt.State, Routers: f.Routers, Sessions: opt.APISessions, Permits: opt.Sessions,
		Version: release, Online: f.online, Now: opt.Now, Log: opt.Log,
	})
	f.models = datamodel.New(datamodel.Options{State: opt.State, Routers: f.Routers, Keys: f.keys, Now: opt.Now, Log: opt.Log})
	f.sync.Register()
	f.models.Register()
	f.Hosts.Register()
	f.Circuits.Register()
	f.registerSmall()
	return f
}

// online has a router that has just connected say what it has.
func (f *Fabric) online(r *control.Router) {
	f.Hosts.AskAll(r)
	f.Circuits.Learn(r)
}

// keys are what routers of the second generation check with: session tokens
// with ours, certificates of clients with those of every CA that clients may
// have theirs from.
func (f *Fabric) keys(snap *state.Snapshot) []message.PublicKey {
	pkix, id := f.opt.Tokens.PublicKey()
	keys := []message.PublicKey{
		{Data: pkix, KeyID: id, Usages: []message.KeyUsage{message.ForTokens}, Format: message.KeyPKIX},
		certificateKey(f.opt.Root),
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
	defer sub.Close()
	done := make(chan struct{})
	defer func() { <-done }()
	go func() {
		defer close(done)
		f.Hosts.Sweep(ctx)
	}()
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
	f.sync.Restart()
	f.models.Restart()
	f.Circuits.Review(snap)
	f.Hosts.Review(snap)
}

// apply tells routers what a change means for them.
func (f *Fabric) apply(before *state.Snapshot, ev state.Event) {
	var changed []state.Ref
	for _, w := range ev.Writes {
		for _, c := range w.Changes {
			changed = append(changed, c.Ref)
			if s, ok := c.Before.(*model.Session); ok && c.After == nil {
				f.ended(ev.After, s)
			}
		}
	}
	f.sync.Applied(before, ev.After, changed)
	f.models.Applied(before, ev.After, changed)
}

// ended takes along what a session was used for.
func (f *Fabric) ended(snap *state.Snapshot, s *model.Session) {
	f.Circuits.EndSession(s.ID)
	f.sync.SessionRemoved(s.ID, f.opt.Tokens.Of(s))
	if s.Type == model.Bind {
		f.Hosts.EndSession(snap, s.ID)
	}
}
