package edge

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// client is one program that has shown who it is, over a socket or several.
type client struct {
	door         *Door
	ch           *channel.Channel
	entry        Entry
	of           *identity
	token        atomic.Pointer[string] // of its API session
	leaf         *x509.Certificate
	fingerprints []string
	secret       []byte // that further sockets have to know
	since        time.Time
	log          *slog.Logger
	sockets      atomic.Int64 // of both kinds

	mu       sync.Mutex
	conns    map[uint32]*conn
	binds    map[uint32]*bind
	flows    [2]map[string]*conn // by circuit, of those where the client is the end itself: it dialled, or hosts
	reports  [][]byte            // of its device, of which the controller is told the first
	unheard  int                 // of them that the controller has not heard
	said     int                 // how many there were
	news     chan struct{}       // closed with the next; nil if nobody waits for it
	heard    chan struct{}       // closed when it has heard all; nil if it has
	doubted  bool                // whether one was refused; of who passes them on
	boasted  bool                // whether it was logged that it says too much
	waiting  []*conn             // that have something for the client and found no room
	assigned uint32              // the last number that was given to a connection
	over     bool
}

func (d *Door) newClient(token string, chain []*x509.Certificate, hello *channel.Hello) *client {
	c := &client{
		door: d, leaf: chain[0], secret: channel.NewSecret(), since: d.Now(), log: d.Log,
		conns: map[uint32]*conn{}, binds: map[uint32]*bind{}, flows: [2]map[string]*conn{{}, {}}, assigned: message.FirstAssigned - 1,
	}
	c.token.Store(&token)
	for _, cert := range chain[:min(len(chain), maxChain)] {
		c.fingerprints = append(c.fingerprints, pki.Fingerprint(cert))
	}
	c.ch = channel.New(channel.NewID(), channel.Options{
		Handle: c.handle, Packet: c.packet, Pooled: true, Closed: c.closed, Room: c.resume, Large: c.large,
		Bounds: wire.Bounds{Headers: maxHeaders, Body: maxFrame},
		// Clients know no signs of life, and may be slow for as long as they like:
		// it costs them alone.
		Beat: -1, Silence: -1,
		// What one stream has in flight finds room: it was sent as fast as the
		// other end's socket takes it, and nobody holds that back but a window.
		Lane: laneOf, Deep: stream.Window, Purse: purse{c},
		Now: d.Now,
	})
	return c
}

// purse is what the client's identity may hold. Nothing waits for a client that
// has none yet.
type purse struct{ *client }

func (p purse) Take(bytes int) bool { return p.of.Take(bytes) }
func (p purse) Give(bytes int)      { p.of.Give(bytes) }

// socket is one that counts among those of its identity until it is closed.
type socket struct {
	net.Conn
	once sync.Once
	gone func()
}

// NetConn is what it counts.
func (s *socket) NetConn() net.Conn { return s.Conn }

// Close closes it.
func (s *socket) Close() error {
	s.once.Do(s.gone)
	return s.Conn.Close()
}

// place makes a connection a socket of the client, of which its identity may have
// another. It reports why not, if there are too many.
func (c *client) place(conn net.Conn) (*socket, error) {
	if !take(&c.sockets, maxSockets) {
		return nil, fmt.Errorf("its client has %d sockets already", maxSockets)
	}
	if !take(&c.of.sockets, maxSocketsOf) {
		c.sockets.Add(-1)
		return nil, fmt.Errorf("its identity has %d sockets here already", maxSocketsOf)
	}
	return &socket{Conn: conn, gone: func() {
		c.of.sockets.Add(-1)
		c.sockets.Add(-1)
	}}, nil
}

// mention tells the log of the client, unless it was told much of its identity.
func (c *client) mention(what string, args ...any) {
	if c.door.Mentions(c.entry.IdentityID) {
		c.log.Info(what, args...)
	}
}

// large waits until no other client of the identity is read from that sends much
// at once.
func (c *client) large() (done func()) {
	c.of.large.Lock()
	return c.of.large.Unlock
}

// count is how many connections the client has.
func (c *client) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// packet takes what there is much of.
func (c *client) packet(_ *channel.Channel, p *wire.Packet) bool {
	switch p.Type {
	case message.TypeData:
		if conn := c.conn(p); conn != nil {
			conn.fromClient(p)
		}
	case message.TypePayload, message.TypeAck:
		c.flowing(p)
	default:
		return false
	}
	return true
}

// conn is the connection that a packet names, nil if there is none: that is
// usual after one has ended.
func (c *client) conn(p *wire.Packet) *conn {
	id, _ := p.Uint32(message.HeaderConn)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[id]
}

// handle takes everything else.
func (c *client) handle(_ *channel.Channel, f *wire.Frame) {
	switch f.Type {
	case message.TypeConnect:
		c.ask(f, c.connect)
	case message.TypeBind:
		c.bind(f)
	case message.TypeUnbind:
		c.unbind(f, true)
	case message.TypeUpdateBind:
		c.ask(f, c.updateBind)
	case message.TypeBindHealth:
		c.bindHealth(f)
	case message.TypeClosed:
		c.close(f)
	case message.TypeCircuitEnded:
		c.endFlow(string(f.Body))
	case message.TypeTraceRoute:
		c.trace(f)
	case message.TypeTraced:
		c.traced(f)
	case message.TypePosture:
		c.report(f.Body)
	case message.TypeUpdateToken:
		c.ask(f, c.renew)
	default:
		c.log.Debug("a client says what is not known here", "type", f.Type)
	}
}

// renewTime is how long it may take to find out what a token is of.
const renewTime = 10 * time.Second

// renew takes another token of the client's API session: one that names it lasts for a
// while, and is replaced before it ends.
func (c *client) renew(f *wire.Frame) {
	ctx, cancel := context.WithTimeout(c.ch.Context(), renewTime)
	defer cancel()
	answer := &wire.Frame{Type: message.TypeTokenUpdated}
	token := string(f.Body)
	if len(token) > maxToken {
		c.refuse(f, never(fmt.Sprintf("a token has at most %d bytes", maxToken)))
		return
	}
	if err := c.entry.Renew(ctx, token); err != nil {
		answer = &wire.Frame{Type: message.TypeTokenNotUpdated, Body: []byte(err.Error())}
	} else {
		c.token.Store(&token)
	}
	_ = c.ch.Reply(f, answer)
}

// ask does what takes time away from where frames are read, for a bounded
// number of requests at a time.
func (c *client) ask(f *wire.Frame, do func(*wire.Frame)) {
	if !take(&c.of.pending, maxPending) {
		c.refuse(f, errPending)
		return
	}
	go func() {
		defer c.of.pending.Add(-1)
		do(f)
	}()
}

// What clients are refused here, without the controller.
var (
	errPending   = message.Busy("too many requests of this identity wait already; try again")
	errManyConns = message.Busy("this identity has too many connections; close some")
	errManyBinds = message.Busy("this client hosts too much; stop hosting something")
	errBindsOf   = message.Busy("this identity hosts too much; stop hosting something")
	errGone      = message.Refuse(message.CodeInternal, "the client is gone")
	errNumber    = never("the connection has no number that a client may give")
	errTaken     = never("there is a connection with this number already")
	errOver      = message.Refuse(message.CodeInvalidSession, "the session is over")
)

// never is a refusal of what will not be heeded if it comes again.
func never(text string) *message.Refusal {
	return &message.Refusal{Code: message.CodeInternal, Retry: message.RetryNever, Text: text}
}

// tooMuch says what is wrong with a request of which more would go on to the
// controller than it takes. The first of a client is logged: whoever sends them
// means no good, or a program is broken.
func (c *client) tooMuch(f *wire.Frame, said, most int) *message.Refusal {
	reason := ""
	switch {
	case len(f.Body) > maxToken:
		reason = fmt.Sprintf("the token of a session has at most %d bytes, this one %d", maxToken, len(f.Body))
	case said > most:
		reason = fmt.Sprintf("instance, secret, key and data of the application have at most %d bytes together, these %d; send the rest over the connection", most, said)
	default:
		return nil
	}
	c.mu.Lock()
	first := !c.boasted
	c.boasted = true
	c.mu.Unlock()
	if first {
		c.log.Warn("a client asks with more than the controller takes, and is refused; further requests of it are not mentioned", "reason", reason)
	}
	return never(reason)
}

// refuse answers a request with why it was not heeded.
func (c *client) refuse(f *wire.Frame, err error) {
	refused, ok := errors.AsType[*message.Refusal](err)
	if !ok {
		refused = message.Refuse(message.CodeInternal, err.Error())
	}
	answer := refused.Closed(true)
	if id, ok := f.Headers[message.HeaderConn]; ok {
		answer.Headers[message.HeaderConn] = id
	}
	_ = c.ch.Reply(f, answer)
}

// tellClosed tells the client that a connection or listener is over. That is as
// it should be unless it is a refusal.
func (c *client) tellClosed(id uint32, reason error) {
	refused, ok := errors.AsType[*message.Refusal](reason)
	if !ok {
		refused = &message.Refusal{Text: reason.Error()}
	}
	f := refused.Closed(false)
	f.Headers.SetUint32(message.HeaderConn, id)
	_ = c.ch.Send(f)
}

// claim takes a number for a connection that the client has chosen, or reports
// why it cannot have it.
func (c *client) claim(f *wire.Frame) (uint32, *message.Refusal) {
	id, ok := f.Headers.Uint32(message.HeaderConn)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !ok || id >= message.FirstAssigned:
		return 0, errNumber
	case c.conns[id] != nil || c.binds[id] != nil:
		return 0, errTaken
	}
	return id, nil
}

// number gives a connection a number that the client does not use, if it may
// have another.
func (c *client) number(conn *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || !take(&c.of.conns, maxConns) {
		return false
	}
	if !c.door.share(c.of, conn.dialer, 1) {
		c.of.conns.Add(-1)
		return false
	}
	for {
		if c.assigned++; c.assigned < message.FirstAssigned {
			c.assigned = message.FirstAssigned
		}
		if c.conns[c.assigned] == nil {
			break
		}
	}
	conn.id = c.assigned
	c.conns[conn.id] = conn
	c.door.uses(c, conn.session, 1)
	return true
}

// close is a client that ends a connection. That it ends a listener follows
// upon its unbinding it.
func (c *client) close(f *wire.Frame) {
	id, _ := f.Headers.Uint32(message.HeaderConn)
	c.mu.Lock()
	conn := c.conns[id]
	c.mu.Unlock()
	if conn != nil {
		conn.closedByClient()
		return
	}
	c.unbind(f, false)
}

// resume goes on with the connections that waited for room, each in its turn.
func (c *client) resume(*channel.Channel) {
	c.mu.Lock()
	waiting := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	for _, conn := range waiting {
		conn.resume()
	}
}

// offer queues a packet for the client. If there is no room, the connection is
// called when there is; a client that is gone takes everything.
func (c *client) offer(conn *conn, p *wire.Packet) bool {
	if c.ch.Offer(p) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Once more: there may have been room before anybody could be called.
	if c.over || c.ch.Offer(p) {
		return true
	}
	c.waiting = append(c.waiting, conn)
	return false
}

// drop forgets a connection.
func (c *client) drop(conn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns[conn.id] == conn {
		delete(c.conns, conn.id)
		c.of.conns.Add(-1)
		c.door.share(c.of, conn.dialer, -1)
		c.door.uses(c, conn.session, -1)
	}
	if side := conn.side(); c.flows[side][conn.circuit] == conn {
		delete(c.flows[side], conn.circuit)
	}
}

// closed is the end of the client: so it is of all that it had. What a client had
// to say that went arrives yet; one that was cut off may have had more to say, and
// nobody is to take what came for all of it.
func (c *client) closed(_ *channel.Channel, reason error) {
	if c.door.remove(c) {
		c.entry.Leave()
		c.mention("a client is gone", "reason", reason.Error())
	}
	c.mu.Lock()
	c.over = true
	var conns []*conn
	for _, conn := range c.conns {
		conns = append(conns, conn)
	}
	var binds []*bind
	for _, b := range c.binds {
		binds = append(binds, b)
	}
	c.mu.Unlock()
	for _, b := range binds {
		c.forget(b)
		c.door.hosts.remove(b)
	}
	cut := errors.Is(reason, errStops) || errors.Is(reason, errSessionOver)
	for _, conn := range conns {
		if cut {
			conn.abort(reason)
		} else {
			conn.closedByClient()
		}
	}
	c.resume(nil)
}

// endSession ends what the client does with a session.
func (c *client) endSession(digest string) {
	c.mu.Lock()
	var conns []*conn
	for _, conn := range c.conns {
		if conn.session == digest {
			conns = append(conns, conn)
		}
	}
	var binds []*bind
	for _, b := range c.binds {
		if b.session == digest {
			binds = append(binds, b)
		}
	}
	c.mu.Unlock()
	for _, conn := range conns {
		conn.abort(errOver)
	}
	for _, b := range binds {
		c.dropBind(b, errOver)
	}
}
