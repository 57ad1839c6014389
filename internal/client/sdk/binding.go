package sdk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/cipher"
	"netkeep.internal/internal/wire/message"
)

// bindTime is how long a router may take to agree that a service is hosted.
const bindTime = 10 * time.Second

// binding is one router at which a service is hosted.
type binding struct {
	listener *Listener
	router   *router
	number   uint32
	token    string
	pair     *cipher.Pair  // nil if the service is open
	done     chan struct{} // closed when the router has agreed, or not
	once     sync.Once
	err      error // why not; before done
}

// bind hosts the service at a router.
func (l *Listener) bind(ctx context.Context, p *routerPlace, s *Service, leave *session) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime+bindTime)
	defer cancel()
	if s.Encrypted {
		// Before any router is asked: none has offered another until then.
		if err := l.client.keys.pin(ctx); err != nil {
			return err
		}
	}
	r, err := l.client.reach(ctx, p)
	if err != nil {
		return fmt.Errorf("the router %s: %w", p.Name, err)
	}
	b := &binding{listener: l, router: r, token: leave.Token, done: make(chan struct{})}
	if s.Encrypted {
		b.pair = l.client.keys.pair
	}
	l.mu.Lock()
	l.bindings[r.address] = b // before it is asked for: from then on it may be lost
	l.mu.Unlock()
	if err = r.add(b, 0); err == nil {
		err = b.ask(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.over.Err() != nil {
		err = net.ErrClosed
	}
	if err != nil {
		if l.bindings[r.address] == b {
			delete(l.bindings, r.address)
		}
		b.unbind()
		return fmt.Errorf("the router %s does not host the service %s for us: %w", r.name, l.service, err)
	}
	if !isClosed(l.first) {
		close(l.first)
	}
	l.client.log.Info("a service is hosted", "service", l.service, "router", r.name)
	return nil
}

// ask has the router host the service, and waits until it does.
func (b *binding) ask(ctx context.Context) error {
	l := b.listener
	f := about(message.TypeBind, b.number, []byte(b.token))
	h := f.Headers
	h.SetBool(message.HeaderInspectable, true)
	h.SetBool(message.HeaderTellsBound, true)
	h.SetBool(message.HeaderRouterNumbers, true)
	h.SetBool(message.HeaderClientFlow, !l.client.opt.Plain)
	h.SetText(message.HeaderBindID, l.id)
	if b.pair != nil {
		h[message.HeaderPublicKey] = b.pair.Public()
		h[message.HeaderCryptoMethod] = []byte{0}
	}
	l.mu.Lock()
	h[message.HeaderCost] = binary.LittleEndian.AppendUint16(nil, l.cost)
	h[message.HeaderPrecedence] = []byte{byte(l.precedence)}
	l.mu.Unlock()
	if l.opt.Instance != "" {
		h.SetText(message.HeaderInstance, l.opt.Instance)
		if l.opt.Secret != nil {
			h[message.HeaderInstanceSecret] = l.opt.Secret
		}
	}
	said, err := b.router.ch.Request(ctx, f)
	switch {
	case err != nil:
		return err
	case said.Type != message.TypeConnected:
		return turnedDown(message.RefusalIn(said))
	case !b.router.bound:
		b.settle(nil)
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return errors.New("it does not say in time that it does")
	}
}

// settle notes what the router decided.
func (b *binding) settle(err error) {
	b.once.Do(func() {
		b.err = err
		close(b.done)
	})
}

func (b *binding) unbind() {
	b.router.remove(b.number)
	_ = b.router.ch.Send(about(message.TypeUnbind, b.number, []byte(b.token)))
}

func (b *binding) update(cost uint16, precedence Precedence) {
	f := about(message.TypeUpdateBind, b.number, []byte(b.token))
	f.Headers[message.HeaderCost] = binary.LittleEndian.AppendUint16(nil, cost)
	f.Headers[message.HeaderPrecedence] = []byte{byte(precedence)}
	_ = b.router.ch.Send(f)
}

func (b *binding) health(well bool) {
	f := about(message.TypeBindHealth, b.number, []byte(b.token))
	f.Headers.SetBool(message.HeaderHealthy, well)
	_ = b.router.ch.Send(f)
}

// named implements end.
func (b *binding) named(number uint32) { b.number = number }

// packet implements end: a place where a service is hosted has no data.
func (b *binding) packet(*wire.Packet) {}

// frame implements end.
func (b *binding) frame(f *wire.Frame) {
	switch f.Type {
	case message.TypeBound:
		b.settle(nil)
	case message.TypeClosed:
		b.router.remove(b.number)
		b.drop(turnedDown(message.RefusalIn(f)))
	case message.TypeDial:
		b.dialled(f)
	case message.TypeConnInspect:
		_ = b.router.ch.Reply(f, inspected(b.number, message.ConnBind))
	}
}

// lost implements end.
func (b *binding) lost(err error) { b.drop(err) }

// drop takes the binding out and has another made.
func (b *binding) drop(why error) {
	b.settle(why)
	l := b.listener
	l.mu.Lock()
	was := l.bindings[b.router.address] == b
	if was {
		delete(l.bindings, b.router.address)
		l.around = "" // it may be hosted there again
		l.drops++
		l.droppedAt = l.client.opt.Now()
	}
	l.mu.Unlock()
	if !was || l.over.Err() != nil {
		return
	}
	l.client.log.Log(context.Background(), b.router.loss(), "a service is not hosted at a router any more", "service", l.service, "router", b.router.name, "reason", why)
	select {
	case l.lost <- struct{}{}:
	default:
	}
}

// Pending is a dial that is neither accepted nor refused yet. The dialer waits
// for a few seconds.
type Pending struct {
	binding *binding
	ask     *wire.Frame
	conn    *Conn
	decided sync.Once
}

// dialled makes a connection that somebody asks for, up to where it is decided
// whether there is one.
func (b *binding) dialled(f *wire.Frame) {
	number, numbered := f.Headers.Uint32(message.HeaderRouterNumbers)
	refuse := func(why string) { _ = b.router.ch.Reply(f, dialFailed(b.number, why)) }
	switch {
	case string(f.Body) != b.token:
		refuse("the session is another")
		return
	case !numbered || number < message.FirstAssigned:
		refuse("the router must number connections")
		return
	}
	conn := newConn(b.router, Info{
		Service: b.listener.service, Circuit: f.Headers.Text(message.HeaderClientCircuit),
		Caller: f.Headers.Text(message.HeaderCallerID), Data: f.Headers[message.HeaderAppData],
		Dialer: f.Headers.Text(message.HeaderDialerID), DialerName: f.Headers.Text(message.HeaderDialerName),
	})
	err := b.router.add(conn, number)
	if err == nil {
		err = conn.carry(f.Headers, true)
	}
	if err != nil {
		b.router.remove(number)
		refuse(err.Error())
		return
	}
	p := &Pending{binding: b, ask: f, conn: conn}
	select {
	case b.listener.pending <- p:
	default:
		p.Refuse("too many dials wait to be accepted")
	}
}

// Info is what is known of the dial.
func (p *Pending) Info() Info { return p.conn.Info() }

// Accept tells the dialer that it is connected.
func (p *Pending) Accept() (conn *Conn, err error) {
	err = net.ErrClosed
	p.decided.Do(func() {
		conn, err = p.accept()
	})
	return conn, err
}

func (p *Pending) accept() (*Conn, error) {
	pair := p.binding.pair
	if pair == nil {
		return p.conn, p.confirm()
	}
	keys, err := pair.Host(p.ask.Headers[message.HeaderPublicKey])
	if err != nil {
		p.refuse("the service wants encryption from end to end, and the dialer offers none")
		return nil, err
	}
	if err := p.confirm(); err != nil {
		return nil, err
	}
	// Only now: who has not been told of the connection would not know what to
	// do with its first message.
	if err := p.conn.encrypt(keys); err != nil {
		_ = p.conn.Close()
		return nil, err
	}
	return p.conn, nil
}

// confirm tells the router that the connection is accepted.
func (p *Pending) confirm() error {
	body := binary.LittleEndian.AppendUint32(nil, p.conn.number)
	return p.binding.router.ch.Reply(p.ask, about(message.TypeDialSuccess, p.binding.number, body))
}

// Refuse tells the dialer why it is not connected.
func (p *Pending) Refuse(why string) {
	p.decided.Do(func() { p.refuse(why) })
}

// Fail is Refuse when it is no fault of the dialer: others are better served by
// another host for a while.
func (p *Pending) Fail(why string) {
	p.decided.Do(func() {
		answer := dialFailed(p.binding.number, why)
		answer.Headers.SetBool(message.HeaderHostFailed, true)
		p.turnDown(answer)
	})
}

func (p *Pending) refuse(why string) { p.turnDown(dialFailed(p.binding.number, why)) }

func (p *Pending) turnDown(answer *wire.Frame) {
	p.binding.router.remove(p.conn.number)
	p.conn.carrier().cut(net.ErrClosed)
	_ = p.binding.router.ch.Reply(p.ask, answer)
}
