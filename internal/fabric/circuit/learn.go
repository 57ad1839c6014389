package circuit

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

const (
	// learnWait is how long a router has to say which circuits it carries.
	learnWait = 20 * time.Second
	// relearnAfter is when it is asked once more: routers of others name circuits for
	// some seconds that are over, also if it was another that ended them, in the place
	// of this controller.
	relearnAfter = 20 * time.Second
)

// Bounds of what a router may say that it carries. Routers keep the routes of
// former paths for a while, so that there may be more than two of a circuit.
const (
	maxCarried = 50_000
	maxRoutes  = 16
	maxRouters = 32 // that tell of one circuit
)

// asked is which routers have said what they carry since they connected. Their
// word on what is older than this controller counts once: what they have made
// since, they were told to.
type asked struct {
	mu    sync.Mutex
	state map[*control.Router]bool // true when it has answered
	// over are the circuits that a router said are over before it had answered: its
	// answer may be older.
	over map[*control.Router][]string
}

// ended takes note that a router says of a circuit that it is over which is not
// known, unless the router has answered.
func (a *asked) ended(r *control.Router, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.state[r] || len(a.over[r]) == maxFault || r.Context().Err() != nil {
		return
	}
	if a.over == nil {
		a.over = map[*control.Router][]string{}
	}
	a.over[r] = append(a.over[r], id)
}

// overMeanwhile are the circuits that a router said are over before it had answered.
func (a *asked) overMeanwhile(r *control.Router) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.over[r]
	delete(a.over, r)
	return ids
}

// begin reports whether a router is to be asked: not while it is being asked.
func (a *asked) begin(r *control.Router) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, is := a.state[r]; is {
		return false
	}
	if a.state == nil {
		a.state = map[*control.Router]bool{}
	}
	a.state[r] = false
	return true
}

func (a *asked) done(r *control.Router, answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answered && r.Context().Err() == nil {
		a.state[r] = true
	} else {
		delete(a.state, r)
	}
}

func (a *asked) has(r *control.Router) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state[r]
}

func (a *asked) forget(r *control.Router) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.state, r)
	delete(a.over, r)
}

// learn asks a router that has connected which circuits it carries. Those that
// are older than this controller are taken on, or ended if what they rest on is
// gone: else nobody could take them away any more. Those that it should carry and
// does not are led elsewhere, or over.
func (c *Circuits) learn(r *control.Router) {
	if !c.known.begin(r) {
		return
	}
	started := r.Go(func(ctx context.Context) {
		if !r.Recounts(ctx) {
			c.known.done(r, false)
			return
		}
		at := c.Now()
		said, err := c.inspected(ctx, r)
		if err != nil {
			c.known.done(r, false)
			if ctx.Err() == nil {
				r.Say(slog.LevelWarn, "a router does not say which circuits it carries", "error", err)
			}
			return
		}
		carries := c.own(said)
		c.take(ctx, r, carries)
		c.known.done(r, true)
		for _, id := range c.known.overMeanwhile(r) {
			c.over(r, id)
		}
		c.compare(ctx, r, carries, at)
		if ctx.Err() != nil {
			c.onLeft(r) // it may have gone in between
			return
		}
		time.AfterFunc(relearnAfter, func() { c.relearn(r, at) })
	})
	if !started {
		c.known.done(r, false)
	}
}

// compare deals with circuits that a router should carry, and does not.
func (c *Circuits) compare(ctx context.Context, r *control.Router, carries map[string]map[string]string, at time.Time) {
	for _, id := range c.table.ids(byRouter, r.ID) {
		if _, does := carries[id]; !does && ctx.Err() == nil {
			c.forgotten(r.ID, id, at)
		}
	}
}

// relearn asks a router once more, if it is said to carry anything, and after the ends
// of what was there when it was asked first.
func (c *Circuits) relearn(r *control.Router, first time.Time) {
	if r.Context().Err() != nil || len(c.table.ids(byRouter, r.ID)) == 0 {
		return
	}
	r.Go(func(ctx context.Context) {
		at := c.Now()
		said, err := c.inspected(ctx, r)
		if err != nil {
			return
		}
		c.compare(ctx, r, c.own(said), at)
		if !r.Follows {
			c.seek(ctx, r, c.missed(said, first))
		}
	})
}

// take goes through what a router says that it carries.
func (c *Circuits) take(ctx context.Context, r *control.Router, carries map[string]map[string]string) {
	if len(carries) > maxCarried {
		r.Misbehaves(control.TooMuch, fmt.Sprintf("it says that it carries %d circuits", len(carries)))
		return
	}
	for id, routes := range carries {
		if ctx.Err() != nil {
			return
		}
		if len(routes) > maxRoutes {
			r.Misbehaves(control.TooMuch, fmt.Sprintf("it says that a circuit has %d routes", len(routes)))
			routes = nil
		}
		if routes == nil || !c.wants(r, id, routes) {
			unroute(r, id, true)
		}
	}
}

// onLeft forgets the circuits that are known by the word of a router alone which
// is gone. If it is as it said, it says so again when it comes back.
func (c *Circuits) onLeft(r *control.Router) {
	c.known.forget(r)
	if now, back := c.Routers.Get(r.ID); back && now != r {
		return
	}
	for _, id := range c.table.ids(byRouter, r.ID) {
		circuit, ok := c.table.get(id)
		known := circuit != nil && circuit.foreign && !circuit.unnamed()
		if ok && circuit.older && !known && len(circuit.Path) == 1 && c.table.drop(circuit) {
			c.Ended(circuit)
			c.moves.forget(id)
		}
	}
}

// wants reports whether a router should go on with a circuit.
func (c *Circuits) wants(r *control.Router, id string, routes map[string]string) bool {
	circuit, known := c.table.get(id)
	if known && circuit.whole() {
		return circuit.involves(r.ID)
	}
	return c.adopt(r.ID, id, routes)
}

// forgotten deals with a circuit that a router should have carried when it was
// asked, and does not: it has begun anew.
func (c *Circuits) forgotten(routerID, id string, asked time.Time) {
	circuit, ok := c.table.get(id)
	switch {
	case !ok || circuit.Ready.IsZero() || !circuit.Ready.Before(asked) || !circuit.Moved.Before(asked):
	case !circuit.movable() || circuit.first() == routerID || circuit.last() == routerID:
		c.end(id, true)
	default:
		c.moves.add(nil, id)
	}
}

// own are those of a router's circuits that are this controller's, and of each where
// what comes from an address goes. Those of other controllers are left to them.
func (c *Circuits) own(said map[string]inspected) map[string]map[string]string {
	all := make(map[string]map[string]string, len(said))
	for id, circuit := range said {
		if circuit.Owner == "" || circuit.Owner == c.Controller {
			all[id] = circuit.Routes
		}
	}
	return all
}

// inspected is what a router says of a circuit: by whose word it carries it, for how
// long it has been idle, and where what comes from an address goes.
type inspected struct {
	Owner  string            `json:"ctrlId"`
	Idle   string            `json:"timeSinceActivity"`
	Routes map[string]string `json:"routes"`
}

// inspected returns all circuits of a router.
func (c *Circuits) inspected(ctx context.Context, r *control.Router) (map[string]inspected, error) {
	ctx, cancel := context.WithTimeout(ctx, learnWait)
	defer cancel()
	var said struct {
		Circuits map[string]inspected `json:"circuits"`
	}
	err := about(ctx, r, "router-circuits", &said)
	return said.Circuits, err
}

// adopt takes on a circuit that is older than this controller, if the sessions
// in its id still are and let the router be where it says it is. Each router on
// its path knows a part of it.
func (c *Circuits) adopt(routerID, id string, routes map[string]string) bool {
	for {
		old, known := c.table.get(id)
		if !known {
			fresh, ok := c.recall(id, routerID, routes)
			if !ok {
				return false
			}
			fresh.tell(routerID, routes)
			if c.table.add(fresh) {
				c.moves.adopt(id, c.Now())
				return true
			}
			continue
		}
		if old.whole() {
			return old.involves(routerID)
		}
		if _, told := old.told[routerID]; !told && len(old.told) >= maxRouters || !c.mayTell(old, routerID, routes) {
			return false
		}
		next := *old
		next.tell(routerID, routes)
		if c.table.replace(old, &next) {
			if next.movable() {
				c.moves.adopt(id, c.Now())
			}
			return true
		}
	}
}

// recall makes a circuit of what its id says. There is none that was made here:
// it has ended.
func (c *Circuits) recall(id, routerID string, routes map[string]string) (*Circuit, bool) {
	dial, host, ok := sessionsOf(id)
	switch {
	case len(id) > maxID:
		return nil, false
	case !ok:
		return c.strange(id)
	case strings.HasPrefix(id, c.epoch):
		return nil, false
	}
	snap := c.State.Snapshot()
	s, ok := model.Sessions.Get(snap, dial)
	if !ok || s.Type != model.Dial || !c.Sessions.Live(snap, s) {
		return nil, false
	}
	circuit := &Circuit{Circuit: c.record(id, s), older: true}
	circuit.Ready = c.Now()
	if host != "" {
		hosting, ok := model.Sessions.Get(snap, host)
		if !ok || hosting.ServiceID != s.ServiceID || !c.Sessions.Live(snap, hosting) {
			return nil, false
		}
		circuit.HostSessionID, circuit.HostID = hosting.ID, hosting.IdentityID
	}
	return circuit, c.mayTell(circuit, routerID, routes)
}

// maxID is more than the id of any circuit has.
const maxID = 128

// mayTell reports whether a router may be a part of a circuit as it says: who
// enters or leaves the network there must be one who may use it.
func (c *Circuits) mayTell(circuit *Circuit, routerID string, routes map[string]string) bool {
	snap := c.Sessions.Timely(c.State.Snapshot())
	for from, to := range routes {
		switch {
		case len(from) > maxID || len(to) > maxID:
			return false
		case strings.HasPrefix(from, ingressPrefix) && !mayUse(snap, routerID, circuit.IdentityID, circuit.ServiceID):
			return false
		case strings.HasPrefix(from, egressPrefix) && circuit.HostID != "" && !mayUse(snap, routerID, circuit.HostID, circuit.ServiceID):
			return false
		}
	}
	return true
}

// mayUse reports whether an identity may use a service through a router. One that
// is no edge router has no clients.
func mayUse(snap *state.Snapshot, routerID, identityID, serviceID string) bool {
	ord, known := snap.Ordinal(model.EdgeRouters.Def, routerID)
	return known && access.CommonRouters(snap, identityID, serviceID).Contains(ord)
}

// tell adds what a router says of a circuit. When that is enough the path is
// known.
func (c *Circuit) tell(routerID string, routes map[string]string) {
	c.told = maps.Clone(c.told)
	if c.told == nil {
		c.told = map[string]map[string]string{}
	}
	c.told[routerID] = routes
	first, ingress := end(c.told, ingressPrefix)
	last, egress := end(c.told, egressPrefix)
	c.Ingress, c.Egress = ingress, egress
	if path, links, ok := assemble(c.told, first, ingress, egress); ok {
		c.Path, c.Links, c.told = path, links, nil
		return
	}
	c.Path, c.Links = pieces(c.told, first, last)
}

// pieces are the routers that tell of a circuit and the links that they name,
// with the ends in their places.
func pieces(told map[string]map[string]string, first, last string) (path, links []string) {
	named := map[string]bool{}
	for id, routes := range told {
		if id != first && id != last {
			path = append(path, id)
		}
		for from := range routes {
			if !strings.HasPrefix(from, ingressPrefix) && !strings.HasPrefix(from, egressPrefix) {
				named[from] = true
			}
		}
	}
	links = slices.Collect(maps.Keys(named))
	slices.Sort(path)
	if first != "" {
		path = slices.Insert(path, 0, first)
	}
	if last != "" && last != first {
		path = append(path, last)
	}
	return path, links
}

// assemble follows a circuit from where it begins to where it ends, through
// what its routers say.
func assemble(told map[string]map[string]string, first, ingress, egress string) (path, links []string, ok bool) {
	at, from := first, ingress
	for at != "" && egress != "" && len(path) < len(told) {
		path = append(path, at)
		to := told[at][from]
		if to == egress {
			return path, links, true
		}
		links = append(links, to)
		at, from = behind(told, to, at), to
	}
	return nil, nil, false
}

// end is the router where a circuit begins or ends, and the address of that end.
func end(told map[string]map[string]string, prefix string) (routerID, address string) {
	for id, routes := range told {
		for from := range routes {
			if strings.HasPrefix(from, prefix) {
				return id, from
			}
		}
	}
	return "", ""
}

// behind is the router at the other end of a link.
func behind(told map[string]map[string]string, link, from string) string {
	for id, routes := range told {
		if _, ok := routes[link]; ok && link != "" && id != from {
			return id
		}
	}
	return ""
}
