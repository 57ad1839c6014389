// Package resolver tells the machine's own resolver of names that are answered
// here, and has everything as it was before when it ends. It owns how that is
// said: to systemd-resolved, in resolv.conf, or as other systems have it. Who
// answers, and what, is none of its business.
package resolver

import (
	"context"
	"log/slog"
	"net/netip"
)

// Options of a resolver.
type Options struct {
	// Link is the device that the server is reached through, by its number.
	Link int
	// Server is where names are answered, on port 53.
	Server netip.Addr
	Log    *slog.Logger

	// Path is where resolv.conf is, and Bus the address of the system's bus, if
	// not where they usually are.
	Path, Bus string
}

// Resolver is the machine's resolver, which knows of a server.
type Resolver struct{ way way }

// way is one of the ways to tell it.
type way interface {
	// tell says which names are ours from now on, in place of those before.
	tell(ctx context.Context, names []string) error
	// look does what has to be done now and then.
	look() error
	// servers are who would be asked for a name if it were not for us.
	servers(name string) []netip.AddrPort
	close() error
	String() string
}

// Open finds out how the machine resolves names. What a process that was killed
// left behind is as before after that; nothing else is changed until there are
// names.
func Open(ctx context.Context, opt Options) (*Resolver, error) {
	if opt.Path == "" {
		opt.Path = "/etc/resolv.conf"
	}
	w, err := open(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &Resolver{w}, nil
}

// Tell says which names are answered by the server, in place of those before:
// names, and domains with *. before them whose names below are meant.
func (r *Resolver) Tell(ctx context.Context, names []string) error { return r.way.tell(ctx, names) }

// Look finds out whether somebody else has changed what was set here, and does
// what it takes for names to be found again. It is cheap, and meant to be called
// every few seconds.
func (r *Resolver) Look() error { return r.way.look() }

// Servers are who would be asked for a name if it were not for us: resolvers ask
// us for more than our names.
func (r *Resolver) Servers(name string) []netip.AddrPort { return r.way.servers(name) }

// String is what was told, for people.
func (r *Resolver) String() string { return r.way.String() }

// Close has everything as before.
func (r *Resolver) Close() error { return r.way.close() }

const dnsPort = 53
