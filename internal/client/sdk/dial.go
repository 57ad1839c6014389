package sdk

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/cipher"
	"netkeep.internal/internal/wire/message"
)

// DialOptions are what may be said of a dial.
type DialOptions struct {
	// Instance is the host that is wanted, by the name that it hosts under.
	Instance string
	// Data is for the host.
	Data []byte
	// Caller is who dials, in the host's eyes; the identity's name if empty.
	Caller string
}

// Dial connects to whoever hosts a service.
func (c *Client) Dial(ctx context.Context, service string, opt DialOptions) (*Conn, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTime)
		defer cancel()
	}
	s, err := c.service(ctx, service, toDial)
	if err != nil {
		return nil, err
	}
	if len(c.api.remote().Places()) == 1 {
		return c.dial(ctx, s, opt)
	}
	return persist(ctx, func(ctx context.Context) (*Conn, error) { return c.dial(ctx, s, opt) })
}

// dial is Dial without a look at what may be another moment later.
func (c *Client) dial(ctx context.Context, s *Service, opt DialOptions) (*Conn, error) {
	// A session or a router that was known may be gone: then it is worth a try
	// with what there is now.
	const most = 3
	tried := map[string]bool{}
	var last error
	for try := range most {
		leave, fresh, err := c.sessionFor(ctx, s, toDial, try > 0)
		if err != nil {
			return nil, err
		}
		r, err := c.nearest(ctx, leave, tried)
		if err != nil {
			if last == nil {
				last = err
			}
			if fresh || ctx.Err() != nil {
				break
			}
			continue
		}
		conn, err := r.dial(ctx, s, leave, opt)
		if err == nil {
			return conn, nil
		}
		last = err
		switch gone := r.ch.Err() != nil; {
		case ctx.Err() != nil:
			return nil, slow(s, err)
		case gone && r.young():
			tried[r.address] = true // it does not want us
		case errors.Is(err, errForged):
			tried[r.address] = true
			c.log.Warn("a dial is tried over another router, if there is one", "service", s.Name, "reason", err)
		case !gone && (fresh || !worthAnother(err)):
			return nil, last
		}
	}
	return nil, last
}

// slow says that a dial took too long.
func slow(s *Service, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return say(context.DeadlineExceeded, "the service %s was not connected in time", s.Name)
	}
	return err
}

// dial asks a router for a connection.
func (r *router) dial(ctx context.Context, s *Service, leave *session, opt DialOptions) (*Conn, error) {
	conn := newConn(r, Info{Service: s.Name})
	conn.dialled = true
	err := r.add(conn, 0)
	if err != nil {
		return nil, err
	}
	number := conn.number
	ask := about(message.TypeConnect, number, []byte(leave.Token))
	var pair *cipher.Pair
	if s.Encrypted {
		if pair, err = cipher.NewPair(); err != nil {
			r.remove(number)
			return nil, err
		}
		ask.Headers[message.HeaderPublicKey] = pair.Public()
		ask.Headers[message.HeaderCryptoMethod] = []byte{0}
	}
	ask.Headers.SetBool(message.HeaderClientFlow, !r.client.opt.Plain && (r.both || !r.client.hosts(s.Name)))
	opt.fill(ask.Headers, r.client)
	said, err := r.ch.Request(ctx, ask)
	if err == nil {
		err = conn.connected(ctx, s, opt.Instance, said, pair)
	} else if r.ch.Err() == nil {
		_ = r.ch.Send(about(message.TypeClosed, number, nil)) // it may come about yet
	}
	if gone := r.ch.Err(); err != nil && gone != nil {
		err = say(ErrNoRouter, "the router %s ended the connection before the service %s was connected: %v", r.name, s.Name, gone)
	}
	if err != nil {
		r.remove(number)
		return nil, err
	}
	return conn, nil
}

// fill adds what a dial says.
func (o DialOptions) fill(h wire.Headers, c *Client) {
	h.SetText(message.HeaderMarker, marker())
	if o.Caller == "" {
		o.Caller = c.Name()
	}
	h.SetText(message.HeaderCallerID, o.Caller)
	if o.Instance != "" {
		h.SetText(message.HeaderInstance, o.Instance)
	}
	if o.Data != nil {
		h[message.HeaderAppData] = o.Data
	}
}

// hosts reports whether a service is hosted here too. Routers of others know streams by
// their circuits: one that has both ends here must have one of them there, and stops
// when much is sent at once, since that end and what it waits for share a socket.
func (c *Client) hosts(service string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.listeners {
		if l.service == service {
			return true
		}
	}
	return false
}

// marker names a connection in the logs of all who carry it.
func marker() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// connected goes on with what a router says to a dial.
func (c *Conn) connected(ctx context.Context, s *Service, instance string, said *wire.Frame, pair *cipher.Pair) error {
	switch said.Type {
	case message.TypeConnected:
	case message.TypeClosed:
		return notConnected(c.about.Service, instance, message.RefusalIn(said))
	default:
		return say(ErrRefused, "the router %s answers a dial with a frame of type %d", c.router.name, said.Type)
	}
	c.about.Circuit = said.Headers.Text(message.HeaderClientCircuit)
	if err := c.carry(said.Headers, false); err != nil {
		return err
	}
	if pair == nil {
		return nil
	}
	// Never without: the service asks for it, and who hosts it must show that
	// it does too.
	theirs := said.Headers[message.HeaderPublicKey]
	keys, err := pair.Dialer(theirs)
	if err == nil {
		err = c.router.client.keys.check(ctx, s, theirs)
	}
	if err == nil {
		err = c.encrypt(keys)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errForged):
		err = say(errForged, "the router %s answers a dial to the service %s with a key that none of its hosts has; the router may be in somebody else's hands", c.router.name, s.Name)
	default:
		err = say(ErrRefused, "the connection to the service %s could not be encrypted, as the service asks: %v", s.Name, err)
	}
	_ = c.Close()
	return err
}
