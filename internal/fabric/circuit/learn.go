package circuit

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"netkeep/internal/fabric/control"
	"netkeep/internal/model"
)

// learnWait is how long a router has to say which circuits it carries.
const learnWait = 20 * time.Second

// Learn asks a router which circuits it carries. Those that are older than this
// controller are taken on, or ended if what they rest on is gone: else nobody
// could take them away any more. Those that it should carry and does not are
// led elsewhere, or over.
func (c *Circuits) Learn(r *control.Router) {
	r.Go(func(ctx context.Context) {
		asked := c.Now()
		carries, err := carried(ctx, r)
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Warn("a router does not say which circuits it carries", "router", r.ID, "error", err)
			}
			return
		}
		for id, routes := range carries {
			if !c.wants(r, id, routes) {
				unroute(r, id, true)
			}
		}
		for _, id := range c.table.ids(byRouter, r.ID) {
			if _, does := carries[id]; !does {
				c.forgotten(r.ID, id, asked)
			}
		}
	})
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

// carried returns a router's circuits, and of each where what comes from an
// address goes.
func carried(ctx context.Context, r *control.Router) (map[string]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, learnWait)
	defer cancel()
	text, err := r.Inspect(ctx, "router-circuits")
	if err != nil {
		return nil, err
	}
	var said struct {
		Circuits map[string]struct {
			Routes map[string]string `json:"routes"`
		} `json:"circuits"`
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return nil, err
	}
	all := make(map[string]map[string]string, len(said.Circuits))
	for id, circuit := range said.Circuits {
		all[id] = circuit.Routes
	}
	return all, nil
}

// adopt takes on a circuit that is older than this controller, if the sessions
// in its id still are. Each router on its path knows a part of it.
func (c *Circuits) adopt(routerID, id string, routes map[string]string) bool {
	for {
		old, known := c.table.get(id)
		if !known {
			fresh, ok := c.recall(id)
			if !ok {
				return false
			}
			fresh.tell(routerID, routes)
			if c.table.add(fresh) {
				c.adopted(fresh)
				return true
			}
			continue
		}
		if old.whole() {
			return old.involves(routerID)
		}
		next := *old
		next.tell(routerID, routes)
		if c.table.replace(old, &next) {
			c.adopted(&next)
			return true
		}
	}
}

// adopted has the path of a circuit looked at that has just become known.
func (c *Circuits) adopted(circuit *Circuit) {
	if circuit.movable() {
		c.moves.adopt(circuit.ID, c.Now())
	}
}

// recall makes a circuit of what its id says.
func (c *Circuits) recall(id string) (*Circuit, bool) {
	dial, host, ok := sessionsOf(id)
	if !ok {
		return nil, false
	}
	snap := c.State.Snapshot()
	s, ok := model.Sessions.Get(snap, dial)
	if !ok || s.Type != model.Dial || !c.Sessions.Live(snap, s) {
		return nil, false
	}
	now := c.Now()
	circuit := &Circuit{ID: id, SessionID: dial, HostSessionID: host, ServiceID: s.ServiceID, IdentityID: s.IdentityID, Made: now, Ready: now}
	if host != "" {
		hosting, ok := model.Sessions.Get(snap, host)
		if !ok || !c.Sessions.Live(snap, hosting) {
			return nil, false
		}
		circuit.HostID = hosting.IdentityID
	}
	return circuit, true
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
	for id, routes := range told {
		if id != first && id != last {
			path = append(path, id)
		}
		for from := range routes {
			if !strings.HasPrefix(from, ingressPrefix) && !strings.HasPrefix(from, egressPrefix) && !slices.Contains(links, from) {
				links = append(links, from)
			}
		}
	}
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
