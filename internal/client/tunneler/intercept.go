package tunneler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/client/intercept"
	"netkeep.internal/internal/client/names"
	"netkeep.internal/internal/client/resolver"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/status"
	"netkeep.internal/internal/client/tun"
)

// Interception is how programs of this machine reach services under the
// addresses and names that configurations give them.
type Interception struct {
	// Device is the name of the network device that they lead to, and Range where
	// names get addresses from.
	Device string
	Range  netip.Prefix
}

const (
	// maxFlows is how many senders of datagrams there are at once.
	maxFlows = 4 * maxSenders
	// dnsPort is where names are asked for.
	dnsPort = 53
)

// interceptor has services be reached under their addresses.
type interceptor struct {
	t      *Tunneler
	taking context.Context // ends when nothing more is taken
	device *tun.Device
	told   *resolver.Resolver      // of the machine; it knows which names are answered here
	lead   func([]tun.Route) error // to the device
	pool   *names.Pool
	names  *names.Server
	log    *slog.Logger
	free   slots // for connections
	flows  slots
	said   complaints
	pace   pace
	table  atomic.Pointer[intercept.Table]
	news   chan struct{} // has an element when there is another table
	guests guests
	lost   atomic.Bool // the device, to somebody else

	mu       sync.Mutex
	from     []*offer                   // what each identity is offered, in their order
	routed   []tun.Route                // what leads to the device
	overlaps []intercept.Overlap        // and who has what several want
	traffic  map[string]*traffic        // by service
	shown    map[string]*intercept.Rule // what was said to be there, by service and identity
}

// traffic is what a service is used for, whoever offers it how.
type traffic struct {
	tally status.Tally
	// pending is how many connections wait for it to be dialled, and asked those that
	// it is dialled for.
	pending atomic.Int64
	asked   slots
	problem atomic.Pointer[string] // why it was not reached, the last time
}

// offer is what one identity may dial.
type offer struct {
	client *sdk.Client
	rules  []*intercept.Rule
}

// way is how the service of a rule is dialled.
type way struct {
	client *sdk.Client
	who    string // its name
	id     string // of the service
	how    dialling
	*traffic
}

// intercept makes the device, if services are to be intercepted.
func (t *Tunneler) intercept(ctx context.Context) error {
	opt := t.opt.Intercept
	if opt == nil {
		return nil
	}
	i, err := newInterceptor(ctx, t, opt.Range)
	if err != nil {
		return err
	}
	if i.device, err = tun.Open(tun.Options{Name: opt.Device, Range: i.pool.Prefix(), Connect: i.connect, Datagrams: i.datagrams}); err != nil {
		return err
	}
	i.lead = i.device.Route
	// The resolver goes by what it was told when the device was there.
	if i.told, err = resolver.Open(ctx, resolver.Options{Link: i.device.Index(), Server: i.device.Server(), Log: t.log}); err != nil {
		return errors.Join(err, i.device.Close())
	}
	if err := i.answer(ctx); err != nil {
		return errors.Join(err, i.told.Close(), i.device.Close())
	}
	t.interceptor = i
	t.roll.enter(i) // until the end
	i.log.Info("services are intercepted", "device", i.device.Name(), "range", i.pool.Prefix().String(), "names", i.device.Server().String())
	return nil
}

// newInterceptor makes one that has no device yet.
func newInterceptor(ctx context.Context, t *Tunneler, addrs netip.Prefix) (*interceptor, error) {
	i := &interceptor{
		t: t, taking: ctx, log: t.log, free: make(slots, maxConnections), flows: make(slots, maxFlows),
		news: make(chan struct{}, 1), traffic: map[string]*traffic{}, shown: map[string]*intercept.Rule{},
	}
	i.table.Store(intercept.New(nil))
	var err error
	i.pool, err = names.NewPool(names.PoolOptions{Prefix: addrs, Now: t.opt.Now, Avoid: func(ip netip.Addr) bool { return i.table.Load().Holds(ip) }})
	return i, err
}

// answer answers who asks for names.
func (i *interceptor) answer(ctx context.Context) error {
	packets, err := i.device.ListenUDP(dnsPort)
	if err != nil {
		return err
	}
	streams, err := i.device.ListenTCP(dnsPort)
	if err != nil {
		return err
	}
	i.names = names.NewServer(names.Options{
		Pool: i.pool, Covers: func(name string) bool { return i.table.Load().Covers(name) },
		Servers: i.told.Servers, Dial: (&net.Dialer{Control: tun.Unseen}).DialContext,
		Log: i.log, Now: i.t.opt.Now,
	})
	go func() {
		if err := i.names.Serve(ctx, packets, streams); err != nil {
			i.log.Error("names are not answered any more; start the tunneler again", "error", err)
		}
	}()
	return nil
}

// tellEvery is how soon names that came or went are told to the machine's
// resolver, all that did together, and how often somebody looks whether it still
// knows them and the device is as it was.
const tellEvery = 2 * time.Second

// serve tells the machine of names until ctx ends, waits until nobody is
// connected, and takes the device away.
func (i *interceptor) serve(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-i.news:
			i.tellNames(ctx)
		case <-time.After(tellEvery):
			if err := i.told.Look(); err != nil {
				i.complain("the machine's resolver does not know names of services", "", err)
			}
			if err := i.device.Look(); err != nil {
				i.complain("what leads to the device was changed by somebody else", "", err)
			}
		case <-i.device.Done():
			i.lost.Store(true)
			i.t.end()
		case <-ctx.Done():
		}
	}
	if err := i.told.Close(); err != nil {
		i.log.Error("the machine's resolver is not as it was before", "error", err)
	}
	i.guests.leave()
	if err := i.device.Close(); err != nil {
		i.log.Warn("not everything that led to the device could be taken away; the next start does it", "device", i.device.Name(), "error", err)
	}
}

// tellNames tells the machine's resolver which names are answered here.
func (i *interceptor) tellNames(ctx context.Context) {
	if err := i.told.Tell(ctx, i.table.Load().Names()); err != nil && ctx.Err() == nil {
		i.complain("the machine's resolver cannot be told of names of services; they are answered at "+i.device.Server().String(), "", err)
	}
}

// unseen makes connections that are not intercepted themselves: those that carry
// what is, and those to servers here.
func (t *Tunneler) unseen() *net.Dialer {
	if t.opt.Intercept == nil {
		return nil
	}
	return &net.Dialer{Control: tun.Unseen, Resolver: &net.Resolver{PreferGo: true, Dial: t.interceptor.names.Outside}}
}

// plain is how servers here are connected to.
func (t *Tunneler) plain() net.Dialer {
	if d := t.unseen(); d != nil {
		return *d
	}
	return net.Dialer{}
}

// follow keeps up with what an identity may dial.
func (i *interceptor) follow(ctx context.Context, c *sdk.Client) {
	for {
		services, next := c.Services()
		i.offer(c, c.Name(), services)
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// offer takes up what an identity may dial now.
func (i *interceptor) offer(c *sdk.Client, who string, services []*sdk.Service) {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.IndexFunc(i.from, func(o *offer) bool { return o.client == c })
	if at < 0 {
		at = len(i.from)
		i.from = append(i.from, &offer{client: c})
	}
	i.from[at].rules = i.rules(c, who, services)
	i.build()
}

// rules are what services want to be reached under.
func (i *interceptor) rules(c *sdk.Client, who string, services []*sdk.Service) (all []*intercept.Rule) {
	for _, s := range services {
		if !s.Dial {
			continue
		}
		rule, problems := intercept.Read(s.Name, s.Config)
		for _, err := range problems {
			i.complain("a service is not intercepted as its configuration says; mend the configuration", s.Name, err)
		}
		if rule == nil {
			continue
		}
		w := &way{client: c, who: who, id: s.ID, traffic: i.traffic[s.ID]}
		if w.traffic == nil {
			w.traffic = &traffic{asked: make(slots, maxAsked)}
			i.traffic[s.ID] = w.traffic
		}
		w.how.SourceIP, w.how.DialOptions.Identity = rule.SourceIP, rule.Identity
		w.how.DialOptions.ConnectTimeoutSeconds = int(rule.ConnectTimeout.Seconds())
		rule.Handle = w
		all = append(all, rule)
	}
	return all
}

// wayOf is how the service of a rule is dialled.
func wayOf(r *intercept.Rule) *way { return r.Handle.(*way) }

// build makes the table of what all identities are offered. Of several that are
// offered the same service, the first dials it. It is called under mu.
func (i *interceptor) build() {
	var all []*intercept.Rule
	seen := map[string]bool{}
	for _, o := range i.from {
		for _, r := range o.rules {
			if id := wayOf(r).id; !seen[id] {
				seen[id] = true
				all = append(all, r)
			}
		}
	}
	maps.DeleteFunc(i.traffic, func(id string, _ *traffic) bool { return !seen[id] })
	table := intercept.New(all)
	i.table.Store(table)
	select {
	case i.news <- struct{}{}:
	default: // somebody will look
	}
	i.guests.cut(table)
	i.route(all)
	// What is only said comes when all is in force.
	i.overlaps = table.Overlaps()
	for _, o := range i.overlaps {
		if now := i.t.opt.Now(); i.said.fresh(o.String(), now) && i.pace.take(now) {
			i.log.Warn("several services want the same address", "reason", o.String())
		}
	}
	i.show(all)
}

// route has the addresses of services lead to the device.
func (i *interceptor) route(all []*intercept.Rule) {
	var want []tun.Route
	for _, r := range all {
		for _, a := range r.Addresses {
			block, ok := a.Prefix()
			if !ok {
				continue
			}
			for _, p := range r.Ports {
				for _, protocol := range r.Protocols {
					want = append(want, tun.Route{Block: block, Protocol: protocol, Low: p.Low, High: p.High})
				}
			}
		}
	}
	if slices.Equal(want, i.routed) {
		return
	}
	i.routed = want
	if err := i.lead(want); err != nil {
		text := err.Error()
		i.complain("not all addresses lead to the device", "", errors.New(text[:min(len(text), maxText)]))
	}
}

// show says which services are there now and were not before, and the other way
// round.
func (i *interceptor) show(all []*intercept.Rule) {
	shown := make(map[string]*intercept.Rule, len(all))
	for _, r := range all {
		key := fmt.Sprint(r.Service, "\x00", r.Addresses, r.Ports, r.Protocols)
		shown[key] = r
		if i.shown[key] == nil {
			i.log.Info("a service is intercepted", "service", r.Service, "identity", wayOf(r).who, "addresses", brief(r.Addresses), "ports", brief(r.Ports), "protocols", strings.Join(r.Protocols, " "))
		}
	}
	for key, r := range i.shown {
		if shown[key] == nil {
			i.log.Info("a service is not intercepted any more", "service", r.Service, "addresses", brief(r.Addresses))
		}
	}
	i.shown = shown
}

// brief is the first few of a list.
func brief[T fmt.Stringer](list []T) string {
	const some = 5
	var b strings.Builder
	for n, one := range list {
		if n == some {
			fmt.Fprintf(&b, " and %d more", len(list)-some)
			break
		}
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(one.String())
	}
	return b.String()
}

// complain says once a while what goes wrong, and how often in all is bounded:
// programs of this machine choose where they connect to.
func (i *interceptor) complain(what, service string, err error) {
	text := what + service
	if err != nil {
		text += err.Error()
	}
	if now := i.t.opt.Now(); i.said.fresh(text, now) && i.pace.take(now) {
		i.log.Warn(what, "service", service, "error", err)
	}
}

// tell implements teller.
func (i *interceptor) tell(r *status.Report) {
	i.mu.Lock()
	defer i.mu.Unlock()
	r.Device = &status.Device{Name: i.device.Name(), Range: i.pool.Prefix().String(), Resolver: i.told.String()}
	for _, rule := range i.shown {
		w := wayOf(rule)
		one := status.Intercepted{Service: rule.Service, Identity: w.who, Protocols: rule.Protocols, Traffic: w.tally.Traffic()}
		if why := w.problem.Load(); why != nil {
			one.Error = *why
		}
		for _, a := range rule.Addresses {
			one.Addresses = append(one.Addresses, a.String())
		}
		for _, p := range rule.Ports {
			one.Ports = append(one.Ports, p.String())
		}
		r.Intercepted = append(r.Intercepted, one)
	}
	for _, o := range i.overlaps {
		r.Overlaps = append(r.Overlaps, status.Overlap{Address: o.At.String(), Ports: o.Protocol + " " + o.Ports.String(), Wins: o.Winner.Service, Loses: o.Loser.Service})
	}
}
