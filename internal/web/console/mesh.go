package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// mesh is the routers of a network and what is between them.
type mesh struct {
	nodes   []*meshNode // by name
	byID    map[string]*meshNode
	pairs   []*meshPair // by the names of their ends
	links   int         // how many there are, several between two among them
	unknown int         // hosts beyond those that were read
}

// meshNode is a router, or several that are drawn as one.
type meshNode struct {
	id, name, state string
	hosts           []string // names of services that are hosted there
	words           []string // role attributes
	routers, away   int      // how many it stands for, and how many of them are not there
	place           int      // among all
	group           string
}

// meshPair is the links between two nodes.
type meshPair struct {
	a, b  *meshNode
	best  time.Duration // there and back over the quickest; 0 if none was measured
	worst time.Duration
	count int
	down  int // how many cannot be used
}

// The states of a router.
const (
	stateOnline   = "online"
	stateOffline  = "offline"
	stateLeaving  = "online, leaving"
	stateDisabled = "disabled"
	stateInvited  = "not enrolled"
)

// slowLink is from when on a link is called slow.
const slowLink = 200 * time.Millisecond

func (p *meshPair) slow() bool { return p.best >= slowLink }
func (p *meshPair) cut() bool  { return p.down == p.count }

// Bounds of what pictures read.
const (
	mostRouters = 5000
	mostLinks   = 20_000
	mostHosts   = 5000
)

// readMesh asks for all that a picture is made of.
func (v *visit) readMesh() (*mesh, error) {
	routers, _, err := v.every(v.FabricRoot+"/routers", url.Values{"sort": {"name"}, "fields": {"id,name,connected,disabled,quiesced,isVerified"}}, mostRouters)
	if err != nil {
		return nil, err
	}
	links, _, err := v.every(v.FabricRoot+"/links", url.Values{"fields": {"id,sourceRouterId,destRouterId,sourceLatency,destLatency,down"}}, mostLinks)
	if err != nil {
		return nil, err
	}
	hosts, total, err := v.every(v.FabricRoot+"/terminators", url.Values{"fields": {"routerId,service"}}, mostHosts)
	if err != nil {
		return nil, err
	}
	m := &mesh{byID: map[string]*meshNode{}, links: len(links), unknown: total - len(hosts)}
	for _, rec := range routers {
		n := &meshNode{id: rec.text("id"), name: rec.text("name"), state: routerState(rec), routers: 1}
		if !n.there() {
			n.away = 1
		}
		m.nodes, m.byID[n.id] = append(m.nodes, n), n
	}
	m.order()
	for _, rec := range hosts {
		var service members
		if n := m.byID[rec.text("routerId")]; n != nil && json.Unmarshal(rec["service"], &service) == nil {
			n.hosts = append(n.hosts, label(service))
		}
	}
	for _, n := range m.nodes {
		slices.Sort(n.hosts)
		n.hosts = slices.Compact(n.hosts)
	}
	m.join(links)
	return m, nil
}

func routerState(rec members) string {
	yes := func(name string) bool { return string(rec[name]) == "true" }
	switch {
	case yes("disabled"):
		return stateDisabled
	case yes("connected") && yes("quiesced"):
		return stateLeaving
	case yes("connected"):
		return stateOnline
	case !yes("isVerified"):
		return stateInvited
	}
	return stateOffline
}

// there reports whether a router is connected.
func (n *meshNode) there() bool { return n.state == stateOnline || n.state == stateLeaving }

// online says how many of a group are connected.
func (n *meshNode) online() string {
	return fmt.Sprintf("%d of %d online", n.routers-n.away, n.routers)
}

// order numbers nodes by their names.
func (m *mesh) order() {
	slices.SortFunc(m.nodes, func(a, b *meshNode) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)), strings.Compare(a.id, b.id))
	})
	for i, n := range m.nodes {
		n.place = i
	}
}

// join adds the links, those between the same two as one.
func (m *mesh) join(links []members) {
	between := map[[2]int]*meshPair{}
	for _, rec := range links {
		a, b := m.byID[rec.text("sourceRouterId")], m.byID[rec.text("destRouterId")]
		if a == nil || b == nil || a == b {
			continue
		}
		p := m.pair(between, a, b)
		p.add(max(nanoseconds(rec["sourceLatency"]), nanoseconds(rec["destLatency"])), string(rec["down"]) == "true")
	}
	m.orderPairs()
}

// pair is what is between two nodes.
func (m *mesh) pair(between map[[2]int]*meshPair, a, b *meshNode) *meshPair {
	if a.place > b.place {
		a, b = b, a
	}
	at := [2]int{a.place, b.place}
	if between[at] == nil {
		between[at] = &meshPair{a: a, b: b}
		m.pairs = append(m.pairs, between[at])
	}
	return between[at]
}

// add takes in a link.
func (p *meshPair) add(took time.Duration, down bool) {
	p.count++
	if down {
		p.down++
		return
	}
	if took > 0 && (p.best == 0 || took < p.best) {
		p.best = took
	}
	p.worst = max(p.worst, took)
}

func (m *mesh) orderPairs() {
	slices.SortFunc(m.pairs, func(a, b *meshPair) int {
		return cmp.Or(cmp.Compare(a.a.place, b.a.place), cmp.Compare(a.b.place, b.b.place))
	})
}

func nanoseconds(raw jsontext.Value) (d time.Duration) {
	var ns int64
	_ = json.Unmarshal(raw, &ns)
	return time.Duration(ns)
}

// around is a router with those that it has links to.
func (m *mesh) around(n *meshNode) *mesh {
	keep := map[*meshNode]bool{n: true}
	for _, p := range m.pairs {
		if p.a == n || p.b == n {
			keep[p.a], keep[p.b] = true, true
		}
	}
	return m.only(func(o *meshNode) bool { return keep[o] }, func(p *meshPair) bool { return p.a == n || p.b == n })
}

// only is a part of the mesh.
func (m *mesh) only(keep func(*meshNode) bool, pairs func(*meshPair) bool) *mesh {
	part, own := &mesh{byID: map[string]*meshNode{}}, map[*meshNode]*meshNode{}
	for _, n := range m.nodes {
		if keep(n) {
			copied := *n
			own[n] = &copied
			part.nodes, part.byID[n.id] = append(part.nodes, &copied), &copied
		}
	}
	part.order()
	for _, p := range m.pairs {
		if own[p.a] != nil && own[p.b] != nil && pairs(p) {
			copied := *p
			copied.a, copied.b = own[p.a], own[p.b]
			part.pairs, part.links = append(part.pairs, &copied), part.links+p.count
		}
	}
	part.orderPairs()
	return part
}

// others is the group of those that have nothing in common.
const others = "others"

// mostGroups is how many groups a picture has.
const mostGroups = 60

// sort gives every router a group: a role attribute that it shares with some and not
// with most, or else how its name begins.
func (m *mesh) sort() {
	shared := map[string]int{}
	for _, n := range m.nodes {
		for _, w := range n.words {
			shared[w]++
		}
	}
	for _, n := range m.nodes {
		for _, w := range n.words {
			better := shared[w] > shared[n.group] || shared[w] == shared[n.group] && w < n.group
			if shared[w] > 1 && shared[w] <= len(m.nodes)/2 && (n.group == "" || better) {
				n.group = w
			}
		}
		if n.group == "" {
			n.group = beginning(n.name)
		}
	}
	sizes := map[string]int{}
	for _, n := range m.nodes {
		sizes[n.group]++
	}
	var names []string
	for name := range sizes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b)) })
	small := map[string]bool{}
	for i, name := range names {
		small[name] = name == "" || sizes[name] == 1 || i >= mostGroups-1
	}
	for _, n := range m.nodes {
		if small[n.group] {
			n.group = others
		}
	}
}

// beginning is a name up to its first number or sign.
func beginning(name string) string {
	if i := strings.IndexFunc(name, func(r rune) bool { return r >= '0' && r <= '9' || strings.ContainsRune("-._ /:", r) }); i > 0 {
		return name[:i]
	}
	return name
}

// grouped is a mesh of the groups.
func (m *mesh) grouped() *mesh {
	g, between := &mesh{byID: map[string]*meshNode{}, links: m.links, unknown: m.unknown}, map[[2]int]*meshPair{}
	for _, n := range m.nodes {
		into := g.byID[n.group]
		if into == nil {
			into = &meshNode{id: n.group, name: n.group, state: stateOnline}
			g.nodes, g.byID[n.group] = append(g.nodes, into), into
		}
		into.routers, into.away = into.routers+1, into.away+n.away
		into.hosts = append(into.hosts, n.hosts...)
	}
	g.order()
	for _, n := range g.nodes {
		slices.Sort(n.hosts)
		if n.hosts = slices.Compact(n.hosts); n.away == n.routers {
			n.state = stateOffline
		}
	}
	for _, p := range m.pairs {
		a, b := g.byID[p.a.group], g.byID[p.b.group]
		if a == b {
			continue
		}
		to := g.pair(between, a, b)
		to.count, to.down, to.worst = to.count+p.count, to.down+p.down, max(to.worst, p.worst)
		if p.best > 0 && (to.best == 0 || p.best < to.best) {
			to.best = p.best
		}
	}
	g.orderPairs()
	return g
}
