package fabric_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/fabric"
	"netkeep.internal/internal/fabric/circuit"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
)

// settled is longer than anything takes that the fabric does by itself.
const settled = 2 * time.Minute

// credentials are what all networks of a test have in common: making keys takes
// longer than all else.
type credentials struct {
	keys    *pki.Keystore
	server  tls.Certificate
	routers []tls.Certificate
}

func newCredentials(t *testing.T, n int) *credentials {
	keys, err := pki.Open(t.TempDir(), pki.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	c := &credentials{keys: keys}
	issue := func(name string, grant pki.Grant, err error) tls.Certificate {
		if err != nil {
			t.Fatal(err)
		}
		key, err := pki.Algorithm("").Generate()
		if err != nil {
			t.Fatal(err)
		}
		chain, err := keys.Signer().Sign(grant, key.Public())
		if err != nil {
			t.Fatal(err)
		}
		pair, err := pki.Pair(key, pki.EncodeCertificates(chain...))
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	const long = 10 * 365 * 24 * time.Hour
	grant, err := pki.ServerGrant("controller", []string{"controller"}, nil, long)
	c.server = issue("controller", grant, err)
	for i := range n {
		grant, err := pki.ClientGrant(routerName(i), nil, long)
		c.routers = append(c.routers, issue(routerName(i), grant, err))
	}
	return c
}

func routerName(i int) string { return fmt.Sprint("r", i) }

// world is a network whose routers follow a script, and what is known of it
// without asking the controller.
type world struct {
	*credentials
	t      *rapid.T
	st     *state.State
	grants *grant.Grants
	apis   *authn.APISessions
	fabric *fabric.Fabric
	stop   func()

	routers  []*node
	links    map[string][2]int // that work, by the routers at their ends
	sessions []*model.Session  // to dial with
	dialled  map[string]*dialled
	made     int // links and sessions so far
}

// node is a router, connected or not.
type node struct {
	i        int
	conn     *scripted.Router // nil while it is away
	circuits map[string]*message.Route
	gone     map[string]bool // ends of theirs
	links    map[string]message.Link
	refuses  atomic.Bool            // to make circuits
	before   atomic.Pointer[func()] // it makes the next of a dial, if there is anything to do
}

// dialled is a connection that somebody has.
type dialled struct {
	id       string
	from, to int
	session  string
	over     bool  // it has ended, for a reason that is known
	unheard  *node // who knows that alone; nil if others do
	excused  bool  // it may have ended
}

// hosts is how many services there are, each hosted at the router with its number. The
// host of the last holds the flow of what is dialled there.
const hosts = 2

// flowing are the terminators at a router whose hosts hold the flow.
func flowing(router int) []string {
	if router != hosts-1 {
		return nil
	}
	return []string{terminatorName(router)}
}

func terminatorName(i int) string { return fmt.Sprint("t", i) }

func newWorld(t *rapid.T, c *credentials) *world {
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := grant.NewTokens([]byte("a secret of 32 bytes, for tests."))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	w := &world{credentials: c, t: t, st: st, links: map[string][2]int{}, dialled: map[string]*dialled{}}
	w.apis = &authn.APISessions{State: st, Keys: func() [][]byte { return [][]byte{[]byte("key")} }, Timeout: 1000 * time.Hour, Now: time.Now, Log: log}
	w.grants = &grant.Grants{State: st, Usable: w.apis.Usable, Recall: w.apis.Recall, RecallFormer: w.apis.RecallFormer, Failures: new(posture.Failures), Changes: new(access.LastChange), Tokens: tokens, Now: time.Now, Log: log}
	w.write(w.seed)
	for i := range c.routers {
		w.routers = append(w.routers, &node{i: i, links: map[string]message.Link{}, circuits: map[string]*message.Route{}, gone: map[string]bool{}})
	}
	w.start()
	for _, n := range w.routers {
		w.connect(n)
	}
	for i, n := range w.routers {
		w.join(n, w.routers[(i+1)%len(w.routers)])
	}
	return w
}

func (w *world) write(fn func(tx *state.Tx) error) {
	if err := w.st.Update(context.Background(), state.Program("test"), fn); err != nil {
		w.t.Fatal(err)
	}
}

// seed makes routers, services with a host each, and who dials them.
func (w *world) seed(tx *state.Tx) error {
	if err := model.Seed(tx); err != nil {
		return err
	}
	who := model.Identities.New()
	who.ID, who.Name, who.Type, who.IsAdmin = "ann", "ann", "User", true
	err := model.Identities.Create(tx, who)
	if err == nil {
		password := model.NewPassword("ann", "ann of the network", "")
		password.ID = "password"
		err = model.Authenticators.Create(tx, password)
	}
	if err == nil {
		err = model.APISessions.Create(tx, &model.APISession{Meta: kind.Meta{ID: "api"}, IdentityID: "ann", AuthenticatorID: "password", TokenHash: "hash", LastActivityAt: kind.MomentOf(tx.Now())})
	}
	for i, pair := range w.credentials.routers {
		r := model.EdgeRouters.New()
		r.ID, r.Name, r.IsVerified, r.Fingerprint = routerName(i), routerName(i), true, pki.Fingerprint(pair.Leaf)
		if err == nil {
			err = model.EdgeRouters.Create(tx, r)
		}
	}
	every := model.EdgeRouterPolicies.New()
	every.Name, every.Semantic, every.IdentityRoles, every.EdgeRouterRoles = "all", model.AnyOf, []string{"#all"}, []string{"#all"}
	if err == nil {
		err = model.EdgeRouterPolicies.Create(tx, every)
	}
	served := model.ServiceEdgeRouterPolicies.New()
	served.Name, served.Semantic, served.ServiceRoles, served.EdgeRouterRoles = "all", model.AnyOf, []string{"#all"}, []string{"#all"}
	if err == nil {
		err = model.ServiceEdgeRouterPolicies.Create(tx, served)
	}
	for i := 0; i < hosts && err == nil; i++ {
		err = w.host(tx, i)
	}
	return err
}

// host makes a service that is hosted at a router.
func (w *world) host(tx *state.Tx, i int) error {
	service := model.Services.New()
	service.ID, service.Name = fmt.Sprint("s", i), fmt.Sprint("s", i)
	if err := model.Services.Create(tx, service); err != nil {
		return err
	}
	bind := &model.Session{Meta: kind.Meta{ID: fmt.Sprint("bind", i)}, APISessionID: "api", IdentityID: "ann", ServiceID: service.ID, Type: model.Bind, Key: fmt.Sprint("bind", i)}
	if err := model.Sessions.Create(tx, bind); err != nil {
		return err
	}
	t := model.Terminators.New()
	t.ID = terminatorName(i)
	t.ServiceID, t.RouterID, t.Binding, t.Address, t.HostID, t.SessionID = service.ID, routerName(i), "edge", "hosted", "ann", bind.ID
	return model.Terminators.Create(tx, t)
}

// start makes a controller, which knows nothing but what is stored.
func (w *world) start() {
	w.fabric = fabric.New(fabric.Options{
		State: w.st, ID: "netkeep-1", Alone: true, Tells: func(string, string) bool { return true }, Authorities: w.keys.Authorities, APISessions: w.apis, Sessions: w.grants, Tokens: w.grants.Tokens,
		Devices: w.grants, Changed: w.grants.Changes.Of, Kept: func(net.Conn) {}, Misbehaved: func(string) {},
		Dialled: func(string, time.Duration) {}, Carried: func(string, uint64, uint64) {},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.fabric.Run(ctx)
	}()
	of := w.fabric
	w.stop = func() {
		of.Close()
		cancel()
		<-done
	}
}

// connect has a router connect with what it has.
func (w *world) connect(n *node) {
	at := w.fabric
	conn, err := scripted.Connect(context.Background(), scripted.Options{
		ID: routerName(n.i), Circuits: n.circuits, Gone: n.gone, Flowing: flowing(n.i), Links: n.links, Aside: true, Now: time.Now,
		TLS: &tls.Config{RootCAs: nil, InsecureSkipVerify: true, Certificates: []tls.Certificate{w.credentials.routers[n.i]}},
		Dial: func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go at.Take(tls.Server(there, &tls.Config{Certificates: []tls.Certificate{w.server}, ClientAuth: tls.RequireAnyClientCert, NextProtos: []string{message.ALPN}}))
			return here, nil
		},
		Route: w.makes(n),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	n.conn = conn
}

// makes is how a router makes circuits: over links that it has, unless it
// refuses for once.
func (w *world) makes(n *node) func(*message.Route) (wire.Headers, error) {
	return func(route *message.Route) (wire.Headers, error) {
		if route.Egress != nil {
			if first := n.before.Swap(nil); first != nil {
				(*first)()
			}
		}
		if n.refuses.Load() {
			return nil, fmt.Errorf("not now")
		}
		return nil, nil
	}
}

// join makes a link between two routers.
func (w *world) join(a, b *node) {
	w.made++
	id := fmt.Sprint("link", w.made)
	w.links[id] = [2]int{a.i, b.i}
	b.conn.Keep(message.Link{ID: id, Destination: routerName(a.i)})
	must(w.t, a.conn.Link(message.Link{ID: id, Destination: routerName(b.i), Protocol: "tls", DialAddress: "tls:somewhere", Iteration: 1}))
}

// leave ends a router's connection. It goes on with what it has.
func (w *world) leave(n *node) {
	n.circuits, n.links = n.conn.Has()
	n.conn.Close()
	<-n.conn.Done()
	n.conn = nil
}

// settle lets everything come to rest.
func settle() {
	synctest.Wait()
	<-time.After(settled)
	synctest.Wait()
}

// close ends the network.
func (w *world) close() {
	for _, n := range w.routers {
		if n.conn != nil {
			w.leave(n)
		}
	}
	w.stop()
	w.st.Close()
	synctest.Wait()
}

// reaches reports whether there is a path between routers over those that are
// connected.
func (w *world) reaches(from, to int) bool {
	if w.routers[from].conn == nil || w.routers[to].conn == nil {
		return false
	}
	seen := map[int]bool{from: true}
	for grown := true; grown; {
		grown = false
		for _, ends := range w.links {
			for _, way := range [][2]int{ends, {ends[1], ends[0]}} {
				if seen[way[0]] && !seen[way[1]] && w.routers[way[1]].conn != nil {
					seen[way[1]], grown = true, true
				}
			}
		}
	}
	return seen[to]
}

// check compares what the controller and the routers know.
func (w *world) check() {
	w.t.Helper()
	w.checkView()
	circuits := map[string]*circuit.Circuit{}
	for _, c := range w.fabric.Circuits.All() {
		circuits[c.ID] = c
		d := w.dialled[c.ID]
		if d != nil && d.unheard != nil && d.unheard.conn == nil {
			continue
		}
		if d == nil || d.over {
			w.t.Fatalf("the circuit %s is over or was never made, and is listed: %+v", c.ID, c)
		}
		w.checkPath(c, d)
	}
	for _, n := range w.routers {
		if n.conn == nil {
			continue
		}
		has, _ := n.conn.Has()
		for id := range has {
			if c := circuits[id]; c == nil || !slices.Contains(c.Path, routerName(n.i)) {
				w.t.Fatalf("router %d carries %s, and the controller has %+v", n.i, id, c)
			}
		}
	}
	for id, d := range w.dialled {
		d.excused = d.excused || !w.reaches(d.from, d.to)
		if !d.over && !d.excused && circuits[id] == nil {
			w.t.Fatalf("the circuit %s from %d to %d is lost, and there has been a path all the time", id, d.from, d.to)
		}
	}
}

// checkPath tests that the routers on a path carry the circuit as the controller
// says, over links that there are.
func (w *world) checkPath(c *circuit.Circuit, d *dialled) {
	w.t.Helper()
	if w.routers[d.from].conn == nil || w.routers[d.to].conn == nil {
		return // it waits for its ends
	}
	if c.Path[0] != routerName(d.from) || c.Path[len(c.Path)-1] != routerName(d.to) || len(c.Links) != len(c.Path)-1 {
		w.t.Fatalf("the circuit from %d to %d is %+v", d.from, d.to, c)
	}
	from := c.Ingress
	for place, name := range c.Path {
		n := w.routers[slices.IndexFunc(w.routers, func(n *node) bool { return routerName(n.i) == name })]
		to := c.Egress
		if place < len(c.Links) {
			to = c.Links[place]
			ends, works := w.links[to]
			if !works || !slices.Contains(ends[:], n.i) || !slices.ContainsFunc(ends[:], func(i int) bool { return routerName(i) == c.Path[place+1] }) {
				w.t.Fatalf("the circuit %s leads over %s from %s, and there are %v: %+v", c.ID, to, name, w.links, c)
			}
		}
		has := n.circuits // of one that goes on by itself
		if n.conn != nil {
			has, _ = n.conn.Has()
		}
		if has[c.ID] == nil || !slices.ContainsFunc(has[c.ID].Forwards, func(f message.Forward) bool { return f.From == from && f.To == to }) {
			w.t.Fatalf("at %s the circuit %s comes from %s and goes to %s, the router has %+v", name, c.ID, from, to, has[c.ID])
		}
		from = to
	}
}

// known are the ids of what was dialled and is not over, in order.
func (w *world) known() []string {
	ids := slices.Sorted(maps.Keys(w.dialled))
	return slices.DeleteFunc(ids, func(id string) bool { return w.dialled[id].over })
}
