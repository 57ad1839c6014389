package edge

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// How the controller is asked to let clients host.
const (
	hostTime    = 20 * time.Second // that it has for an answer
	firstWait   = time.Second      // before it is asked again, doubled each time
	longestWait = time.Minute
	// settleTime is how long nothing is repeated after a connection to the
	// controller is new: it asks first what it has doubts about.
	settleTime  = 10 * time.Second
	removeBatch = 50
	maxAsking   = 64 // requests at a time
	inspectTime = 10 * time.Second
)

// bind is a client that hosts: a terminator, as the controller knows it.
type bind struct {
	id         string // of the terminator
	token      string // of the session
	session    string // the token's digest
	listener   string // stable for the client's listener; may be empty
	instance   string
	secret     []byte
	key        []byte // the client's public key
	cost       uint32
	precedence message.Precedence
	numbers    bool // this router numbers the host's connections
	flow       bool // the client is the end of streams itself
	inspects   bool
	tellBound  bool

	// Under hosts.mu.
	client *client
	conn   uint32
	state  bindState
	due    time.Time // when the controller is asked again
	wait   time.Duration
	health time.Time // when the controller was last told of it
}

type bindState int

const (
	unasked bindState = iota
	asking
	hosted
	removed
)

// hosts is the terminators of a router.
type hosts struct {
	door *Door

	mu        sync.Mutex
	byID      map[string]*bind
	listeners map[[2]string]*bind // by identity and listener
	removals  map[string]bool     // that the controller has not heard of yet
	wake      chan struct{}
	asking    int
}

func (h *hosts) init(d *Door) {
	h.door, h.byID, h.listeners, h.removals, h.wake = d, map[string]*bind{}, map[[2]string]*bind{}, map[string]bool{}, make(chan struct{}, 1)
}

func (h *hosts) stir() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// get returns the host with a terminator's id.
func (h *hosts) get(id string) (*bind, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.byID[id]
	return b, ok
}

// owner is the client that hosts now.
func (b *bind) owner() *client {
	h := &b.client.door.hosts
	h.mu.Lock()
	defer h.mu.Unlock()
	return b.client
}

// bind is a client that wants to host. It hears that at once; whether it may
// comes later.
func (c *client) bind(f *wire.Frame) {
	id, refusal := c.claim(f)
	b := c.read(f, id)
	if refusal == nil {
		refusal = c.tooMuch(f, len(b.instance)+len(b.secret)+len(b.key)+len(b.listener), maxTold)
	}
	if refusal == nil {
		refusal = c.hold(b)
	}
	if refusal != nil {
		c.refuse(f, refusal)
		return
	}
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, id)
	if b.numbers {
		h.SetBool(message.HeaderRouterNumbers, true)
	}
	_ = c.ch.Reply(f, &wire.Frame{Type: message.TypeConnected, Headers: h})
	c.door.hosts.add(b)
}

// hold makes a bind the client's, or says why it cannot be.
func (c *client) hold(b *bind) *message.Refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.conns[b.conn] != nil || c.binds[b.conn] != nil:
		return errTaken
	case c.over || len(c.binds) >= maxBinds:
		return errManyBinds
	case !take(&c.of.binds, maxBindsOf):
		return errBindsOf
	}
	c.binds[b.conn] = b
	c.door.uses(c, b.session, 1)
	return nil
}

// read is a bind as a client asks for it.
func (c *client) read(f *wire.Frame, id uint32) *bind {
	b := &bind{
		client: c, conn: id,
		id: channel.NewID(), token: string(f.Body), session: message.Digest(string(f.Body)), listener: f.Headers.Text(message.HeaderBindID),
		instance: f.Headers.Text(message.HeaderInstance), secret: f.Headers[message.HeaderInstanceSecret], key: f.Headers[message.HeaderPublicKey],
		numbers: f.Headers.Bool(message.HeaderRouterNumbers), flow: f.Headers.Bool(message.HeaderClientFlow),
		inspects: f.Headers.Bool(message.HeaderInspectable), tellBound: f.Headers.Bool(message.HeaderTellsBound),
	}
	b.cost, b.precedence = costOf(f.Headers)
	return b
}

func costOf(h wire.Headers) (uint32, message.Precedence) {
	var cost uint32
	if v := h[message.HeaderCost]; len(v) == 2 {
		cost = uint32(v[0]) | uint32(v[1])<<8
	}
	p, _ := h.Byte(message.HeaderPrecedence)
	return cost, message.Precedence(p)
}

// add takes a host in. A client that binds the same listener again, from
// another connection, goes on under the same terminator, and the connection that
// it had before is told.
func (h *hosts) add(b *bind) {
	c := b.client
	key := [2]string{c.entry.IdentityID, b.listener}
	h.mu.Lock()
	old := h.listeners[key]
	goesOn := b.listener != "" && old != nil && old.token == b.token && old.instance == b.instance && old.state != removed
	if goesOn {
		b.id, b.state, b.due = old.id, old.state, old.due
		old.state = removed
	}
	if b.listener != "" {
		h.listeners[key] = b
	}
	h.byID[b.id] = b
	bound := b.state == hosted
	h.mu.Unlock()
	if old != nil && b.listener != "" {
		old.client.forget(old)
		if goesOn {
			old.client.tellClosed(old.conn, errElsewhere)
		} else {
			h.remove(old)
		}
	}
	if bound {
		b.tell()
	}
	h.stir()
}

// errElsewhere is why a listener is closed here that goes on at another
// connection.
var errElsewhere = errors.New("the listener is bound elsewhere now")

// tell tells a client that it hosts.
func (b *bind) tell() {
	if !b.tellBound {
		return
	}
	h := wire.Headers{}
	h.SetUint32(message.HeaderConn, b.conn)
	_ = b.client.ch.Send(&wire.Frame{Type: message.TypeBound, Headers: h})
}

// remove ends a host's terminator.
func (h *hosts) remove(b *bind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.state == removed {
		return
	}
	if b.state != unasked {
		h.removals[b.id] = true // whether it was made or is about to be
	}
	b.state = removed
	if h.byID[b.id] == b {
		delete(h.byID, b.id)
	}
	key := [2]string{b.client.entry.IdentityID, b.listener}
	if h.listeners[key] == b {
		delete(h.listeners, key)
	}
	h.stir()
}

// forget takes a bind from what a client has.
func (c *client) forget(b *bind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.binds[b.conn] == b {
		delete(c.binds, b.conn)
		c.of.binds.Add(-1)
		c.door.uses(c, b.session, -1)
	}
}

// dropBind ends a host, and tells its client why.
func (c *client) dropBind(b *bind, reason error) {
	c.forget(b)
	c.door.hosts.remove(b)
	c.tellClosed(b.conn, reason)
}

// find is the bind that a frame names, by its number or by the token.
func (c *client) find(f *wire.Frame, byToken bool) *bind {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id, ok := f.Headers.Uint32(message.HeaderConn); ok && c.binds[id] != nil {
		return c.binds[id]
	}
	if byToken {
		for _, b := range c.binds {
			if b.token == string(f.Body) {
				return b
			}
		}
	}
	return nil
}

// unbind is a client that hosts no more.
func (c *client) unbind(f *wire.Frame, byToken bool) {
	if b := c.find(f, byToken); b != nil {
		c.forget(b)
		c.door.hosts.remove(b)
	}
}

// updateBind is a host that wants to be chosen otherwise.
func (c *client) updateBind(f *wire.Frame) {
	b := c.find(f, true)
	if b == nil {
		return
	}
	cost, precedence := costOf(f.Headers)
	_, newCost := f.Headers[message.HeaderCost]
	_, newPrecedence := f.Headers[message.HeaderPrecedence]
	ctx, cancel := context.WithTimeout(c.ch.Context(), hostTime)
	defer cancel()
	err := c.door.Controller.Update(ctx, &message.UpdateTerminator{
		SessionToken: b.token, APISessionToken: *c.token.Load(), Fingerprints: c.fingerprints, TerminatorID: b.id,
		Cost: cost, Precedence: precedence, UpdateCost: newCost, UpdatePrecedence: newPrecedence,
	})
	if err != nil {
		c.log.Warn("a host's cost was not changed", "terminator", b.id, "error", err)
		return
	}
	c.door.hosts.mu.Lock()
	defer c.door.hosts.mu.Unlock()
	if newCost {
		b.cost = cost
	}
	if newPrecedence {
		b.precedence = precedence
	}
}

// healthTime is how often the controller is told how checks of one host went.
const healthTime = time.Second

// bindHealth passes on how a check of a host went.
func (c *client) bindHealth(f *wire.Frame) {
	b := c.find(f, true)
	if b == nil {
		return
	}
	now := c.door.Now()
	c.door.hosts.mu.Lock()
	soon := now.Sub(b.health) < healthTime
	if !soon {
		b.health = now
	}
	c.door.hosts.mu.Unlock()
	if !soon {
		c.door.Controller.Health(&message.HealthEvent{
			SessionToken: b.token, APISessionToken: *c.token.Load(), Fingerprints: c.fingerprints, TerminatorID: b.id,
			Passed: f.Headers.Bool(message.HeaderHealthy),
		})
	}
}

// Connected is a new connection to a controller, which may have forgotten.
func (d *Door) Connected() {
	h := &d.hosts
	h.mu.Lock()
	due := d.Now().Add(settleTime)
	for _, b := range h.byID {
		if b.state == hosted {
			b.state, b.due = asking, due
		}
	}
	h.mu.Unlock()
	h.stir()
}

// run asks the controller what there is to ask, until ctx ends.
func (h *hosts) run(ctx context.Context) {
	tick := time.NewTicker(firstWait)
	defer tick.Stop()
	for {
		h.askDue(ctx)
		h.sayRemoved(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.wake:
		}
	}
}

// askDue asks for the hosts whose time has come.
func (h *hosts) askDue(ctx context.Context) {
	now := h.door.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.byID {
		if h.asking == maxAsking {
			return
		}
		if b.state == hosted || b.due.After(now) || b.client.of.asking == maxAskingOf {
			continue
		}
		b.state = asking
		b.wait = min(max(2*b.wait, firstWait), longestWait)
		b.due = now.Add(hostTime + b.wait) // unless an answer says otherwise
		h.asking++
		b.client.of.asking++
		go h.ask(ctx, b, b.client)
	}
}

// ask asks the controller to let a client host.
func (h *hosts) ask(ctx context.Context, b *bind, c *client) {
	defer func() {
		h.mu.Lock()
		h.asking--
		c.of.asking--
		h.mu.Unlock()
		h.stir()
	}()
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	m := &message.CreateTerminator{
		Address: b.id, SessionToken: b.token, APISessionToken: *c.token.Load(), Fingerprints: c.fingerprints,
		Cost: b.cost, Precedence: b.precedence, InstanceID: b.instance, InstanceSecret: b.secret,
	}
	if b.key != nil {
		m.PeerData = map[uint32][]byte{message.PeerPublicKey: b.key}
	}
	c.settle(ctx)
	answer, err := h.door.Controller.Host(ctx, m)
	h.answered(b, answer, err)
}

// answered takes note of what the controller said. The client may have bound
// its listener anew meanwhile, or given it up.
func (h *hosts) answered(b *bind, answer *message.TerminatorCreated, err error) {
	busy := err != nil || answer.Result == message.TerminatorBusy
	h.mu.Lock()
	b = h.byID[b.id]
	switch {
	case b == nil:
		if !busy && answer.Result == message.TerminatorOK {
			h.removals[answer.ID] = true
		}
	case busy:
		b.due = h.door.Now().Add(b.wait)
	case answer.Result == message.TerminatorOK:
		b.state, b.wait = hosted, 0
	}
	h.mu.Unlock()
	switch {
	case b == nil || busy:
	case answer.Result == message.TerminatorOK:
		b.tell()
	default:
		b.owner().dropBind(b, answer.Refusal())
	}
}

// sayRemoved tells the controller which terminators are gone, until it has
// heard.
func (h *hosts) sayRemoved(ctx context.Context) {
	h.mu.Lock()
	var ids []string
	for id := range h.removals {
		if ids = append(ids, id); len(ids) == removeBatch {
			break
		}
	}
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hostTime)
	defer cancel()
	if h.door.Controller.Remove(ctx, ids) != nil {
		return // it is told again
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		delete(h.removals, id)
	}
	if len(h.removals) > 0 {
		h.stir()
	}
}

// Validate reports whether a client hosts under a terminator's id. With ask, it
// is asked; a client that does not say is believed to.
func (d *Door) Validate(ctx context.Context, id string, ask bool) bool {
	h := &d.hosts
	h.mu.Lock()
	b, ok := h.byID[id]
	if ok && b.state == asking {
		b.state = hosted // the controller knows it
	}
	var c *client
	var conn uint32
	if ok {
		c, conn = b.client, b.conn
	}
	h.mu.Unlock()
	if !ok || !ask || !b.inspects {
		return ok
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	headers := wire.Headers{}
	headers.SetUint32(message.HeaderConn, conn)
	answer, err := c.ch.Request(ctx, &wire.Frame{Type: message.TypeConnInspect, Headers: headers})
	if err != nil {
		return true
	}
	typ, _ := answer.Headers.Byte(message.HeaderConnType)
	return typ == message.ConnBind
}

// Terminators are the ids of those that are hosted here.
func (d *Door) Terminators() []string {
	d.hosts.mu.Lock()
	defer d.hosts.mu.Unlock()
	var ids []string
	for id := range d.hosts.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
