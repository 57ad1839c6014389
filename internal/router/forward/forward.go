// Package forward is where a router looks up what goes where: which circuits it
// carries, and the places, links and ends of streams, that their frames come
// from and go to. It never looks into what it passes on, and never waits for
// one circuit on account of another. It must not import who makes circuits or
// links.
package forward

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/router/lookup"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// Place is where frames of streams go: a link, or a client that is the end of a
// stream itself.
type Place interface {
	// Packet takes a frame, and reports whether it has: then it owns it. With
	// wait, it may take up to a second to find room for it.
	Packet(p *wire.Packet, wait bool) bool
}

// Fault says that a circuit cannot be carried as it was asked for.
type Fault struct {
	Address string // that there is not
	Link    bool
}

func (f *Fault) Error() string {
	if f.Link {
		return fmt.Sprintf("there is no link %s here", f.Address)
	}
	return fmt.Sprintf("there is no end of a circuit %s here", f.Address)
}

// maxStrays is how many circuits are remembered whose frames lead nowhere.
const maxStrays = 1000

// Options of a Table.
type Options struct {
	// ID is this router's.
	ID string
	// Link returns the link with an id: they come and go by themselves.
	Link func(id string) (Place, bool)
	Now  func() time.Time
}

// Table is the circuits and places of a router.
type Table struct {
	opt Options

	mu       sync.Mutex // of who changes what follows
	circuits *lookup.Map[*circuit]
	places   *lookup.Map[place]

	lost atomic.Uint64 // payloads that found no room

	strayMu sync.Mutex
	strays  map[string]bool // whether the circuit is known
}

// place is one of the two.
type place struct {
	end     *stream.End
	via     Place
	control func(c *stream.Control) // of ends: takes what is said about the circuit
	isEnd   bool                    // of a stream, whoever holds it
}

func (p place) there() bool { return p.end != nil || p.via != nil }

// at returns what has an address.
func (t *Table) at(address string) place {
	p, ok := t.places.Get(address)
	if !ok {
		p.via, _ = t.opt.Link(address)
	}
	return p
}

// circuit is where what comes from an address goes. Its hops are replaced, never
// changed.
type circuit struct {
	owner  string       // the controller that had it carried first
	hops   []hop        // first those that it was last told of
	latest int          // how many those are
	active atomic.Int64 // when something last passed, in ns
	heard  atomic.Int64 // when something last came for an end that is here, in ns
	broken atomic.Int64 // since when one of the latest leads nowhere, in ns; 0 if none does
}

type hop struct {
	from, to string
}

func (c *circuit) to(from string) (string, bool) {
	for _, h := range c.hops {
		if h.from == from {
			return h.to, true
		}
	}
	return "", false
}

// New returns a table with nothing in it.
func New(opt Options) *Table {
	return &Table{opt: opt, circuits: lookup.New[*circuit](), places: lookup.New[place](), strays: map[string]bool{}}
}

// AddEnd makes the end of a stream known under its address, and who takes what
// is said about its circuit.
func (t *Table) AddEnd(address string, end *stream.End, control func(c *stream.Control)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places.Set(address, place{end: end, control: control, isEnd: true})
}

// AddClient makes a client known that is the end of a stream.
func (t *Table) AddClient(address string, via Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places.Set(address, place{via: via, control: via.Control, isEnd: true})
}

// Remove forgets the end with an address.
func (t *Table) Remove(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.places.Delete(address)
}

// Has reports whether there is something with an address.
func (t *Table) Has(address string) bool {
	return t.at(address).there()
}

// Route has the table carry a circuit for a controller. What it was told before
// of the same circuit stays where nothing else is said: a circuit that is led
// elsewhere must not lose what is on its way. It stays that of the controller
// that had it carried first.
func (t *Table) Route(id, owner string, forwards []message.Forward) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range forwards {
		if f.Type != message.ToStart && !t.at(f.To).there() {
			return &Fault{Address: f.To, Link: f.Type == message.ToLink}
		}
	}
	c := &circuit{owner: owner}
	for _, f := range forwards {
		if _, twice := c.to(f.From); !twice {
			c.hops = append(c.hops, hop{f.From, f.To})
		}
	}
	c.latest = len(c.hops)
	// Of what it was told before, the last is enough: older paths are empty.
	if old, ok := t.circuits.Get(id); ok {
		c.owner = old.owner
		for _, h := range old.hops[:old.latest] {
			if _, anew := c.to(h.from); !anew {
				c.hops = append(c.hops, h)
			}
		}
	}
	now := t.opt.Now().UnixNano()
	c.active.Store(now)
	c.heard.Store(now)
	t.circuits.Set(id, c)
	return nil
}

// ErrUnrouted is why the end of a stream is over whose circuit was taken away.
var ErrUnrouted = errors.New("the circuit has ended")

// Client is a place that is the end of a stream.
type Client interface {
	Place
	// Unrouted says that the circuit was taken away.
	Unrouted()
	// Control takes what is said about the circuit, beside the stream.
	Control(c *stream.Control)
}

// Unroute forgets a circuit. Those of its ends that are here are over.
func (t *Table) Unroute(id string) {
	for _, p := range t.unroute(id) {
		p.unrouted()
	}
}

// Abort ends what has an address, whose circuit cannot be carried.
func (t *Table) Abort(address string) {
	p, _ := t.places.Get(address)
	p.unrouted()
}

func (p place) unrouted() {
	if p.end != nil {
		p.end.Abort(ErrUnrouted)
	} else if c, ok := p.via.(Client); ok {
		c.Unrouted()
	}
}

func (t *Table) unroute(id string) (was []place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c, ok := t.circuits.Get(id)
	if !ok {
		return nil
	}
	t.circuits.Delete(id)
	for _, h := range c.hops {
		for _, address := range []string{h.from, h.to} {
			p, _ := t.places.Get(address)
			was = append(was, p)
		}
	}
	return was
}

// next finds where what comes from an address goes.
func (t *Table) next(id []byte, from string) (place, bool) {
	c, ok := t.circuits.GetBytes(id)
	if !ok {
		return place{}, false
	}
	to, ok := c.to(from)
	if !ok {
		return place{}, false
	}
	p := t.at(to)
	if p.there() { // what leads nowhere does not pass, however often it is sent again
		now := t.opt.Now().UnixNano()
		c.active.Store(now)
		if p.isEnd {
			c.heard.Store(now)
		}
	}
	return p, p.there()
}

// Payload passes on what an end of this router sends. With wait, it may take up
// to a second.
func (t *Table) Payload(from string, p *stream.Payload, wait bool) bool {
	to, ok := t.next([]byte(p.Circuit), from)
	switch {
	case !ok:
		t.stray(p.Circuit)
		return false
	case to.end != nil:
		to.end.Payload(p)
		return true
	}
	return t.counted(to.via.Packet(p.Packet(), wait))
}

// counted counts a payload if it was not taken.
func (t *Table) counted(taken bool) bool {
	if !taken {
		t.lost.Add(1)
	}
	return taken
}

// Lost is how many payloads have found no room. Their ends send them again.
func (t *Table) Lost() uint64 { return t.lost.Load() }

// Ack passes on what an end of this router acknowledges.
func (t *Table) Ack(from string, a *stream.Ack) {
	to, ok := t.next([]byte(a.Circuit), from)
	switch {
	case !ok:
	case to.end != nil:
		to.end.Acked(a)
	default:
		to.via.Packet(a.Packet(), false)
	}
}

// Packet passes on a frame of a stream that came over a link or from a client.
// It never waits: what finds no room is lost, and sent again by its end. The frame
// is the table's to release.
func (t *Table) Packet(from string, p *wire.Packet) {
	if p.Type == message.TypeStreamControl {
		if c, err := stream.ParseControl(p); err == nil {
			t.Control(from, c)
		}
		return
	}
	if !t.pass(from, p) {
		p.Release()
	}
}

// pass is Packet for what the ends of streams send each other, and reports whether
// somebody has it now.
func (t *Table) pass(from string, p *wire.Packet) bool {
	id, ok := stream.CircuitOf(p)
	if !ok {
		return false
	}
	to, ok := t.next(id, from)
	switch {
	case !ok && p.Type == message.TypePayload:
		t.stray(string(id))
		return false
	case !ok:
		return false
	case to.end != nil:
		return deliver(to.end, p)
	case p.Type == message.TypePayload:
		return t.counted(to.via.Packet(p, false))
	}
	return to.via.Packet(p, false)
}

// deliver takes a frame apart for the end of a stream, and reports whether that has
// it now. One that is damaged is as good as lost.
func deliver(end *stream.End, p *wire.Packet) bool {
	switch p.Type {
	case message.TypePayload:
		if payload, err := stream.ParsePayload(p); err == nil {
			end.Payload(payload)
			return true
		}
	case message.TypeAck:
		if ack, err := stream.ParseAck(p); err == nil {
			end.Acked(ack)
		}
	}
	return false
}

// stray remembers a circuit whose payloads lead nowhere.
func (t *Table) stray(id string) {
	_, known := t.circuits.Get(id)
	t.strayMu.Lock()
	defer t.strayMu.Unlock()
	if len(t.strays) < maxStrays {
		t.strays[id] = known
	}
}

// Strays returns the circuits whose payloads have led nowhere since it was last
// asked: those that are carried here, by owner, and others.
func (t *Table) Strays() (known map[string][]string, unknown []string) {
	t.strayMu.Lock()
	strays := t.strays
	t.strays = map[string]bool{}
	t.strayMu.Unlock()
	known = map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(strays)) {
		if c, ok := t.circuits.Get(id); !strays[id] {
			unknown = append(unknown, id)
		} else if ok {
			known[c.owner] = append(known[c.owner], id)
		}
	}
	return known, unknown
}

// quiet is how long nothing has come for an end that is here, or has passed where there
// is none. What an end sends says nothing: it sends the same again and again if nobody is
// there any more.
func (t *Table) quiet(c *circuit) time.Duration {
	last := &c.active
	if slices.ContainsFunc(c.hops, func(h hop) bool { p, _ := t.places.Get(h.to); return p.isEnd }) {
		last = &c.heard
	}
	return time.Duration(t.opt.Now().UnixNano() - last.Load())
}

// Idle returns the circuits that have been quiet for a while, by owner, and for how long.
func (t *Table) Idle(least time.Duration) map[string]map[string]time.Duration {
	idle := map[string]map[string]time.Duration{}
	for id, c := range t.circuits.All() {
		if since := t.quiet(c); since >= least {
			if idle[c.owner] == nil {
				idle[c.owner] = map[string]time.Duration{}
			}
			idle[c.owner][id] = since
		}
	}
	return idle
}

// Owner is the controller that a circuit belongs to; false if it is not carried.
func (t *Table) Owner(id string) (string, bool) {
	c, ok := t.circuits.Get(id)
	if !ok {
		return "", false
	}
	return c.owner, true
}

// Quiet is how long a circuit has been quiet; false if it is not carried.
func (t *Table) Quiet(id string) (time.Duration, bool) {
	c, ok := t.circuits.Get(id)
	if !ok {
		return 0, false
	}
	return t.quiet(c), true
}

// Spent reports whether a circuit brings nobody anything any more: whatever is on
// it leads nowhere, or to an end that takes nothing.
func (t *Table) Spent(id string) bool {
	c, ok := t.circuits.Get(id)
	return ok && !slices.ContainsFunc(c.hops, func(h hop) bool {
		p := t.at(h.to)
		return p.there() && (p.end == nil || !p.end.Deaf())
	})
}

// Broken returns the circuits of which a part has led nowhere for so long: their
// link is gone and they were not led over another, or their end is gone and
// nobody has taken them away. It sees only what is there when it is called, so it
// has to be called often.
func (t *Table) Broken(least time.Duration) (ids []string) {
	now := t.opt.Now().UnixNano()
	for id, c := range t.circuits.All() {
		switch since := c.broken.Load(); {
		case !slices.ContainsFunc(c.hops[:c.latest], func(h hop) bool { return !t.at(h.to).there() }):
			c.broken.Store(0)
		case since == 0:
			c.broken.Store(now)
		case time.Duration(now-since) >= least:
			ids = append(ids, id)
		}
	}
	return ids
}

// Carried is a circuit: whose it is, and where what comes from an address goes.
type Carried struct {
	Owner  string            `json:"ctrlId"`
	Routes map[string]string `json:"routes"`
}

// Circuits returns what is carried.
func (t *Table) Circuits() map[string]Carried {
	all := make(map[string]Carried, t.circuits.Len())
	for id, c := range t.circuits.All() {
		routes := make(map[string]string, len(c.hops))
		for _, h := range c.hops {
			routes[h.from] = h.to
		}
		all[id] = Carried{c.owner, routes}
	}
	return all
}

// Len is how many circuits are carried.
func (t *Table) Len() int {
	return t.circuits.Len()
}
