package uplink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// seat is the place of one controller: it is dialled for as long as the seat is
// there. All but what is said below is under Uplink.mu.
type seat struct {
	u         *Uplink
	id        string   // of the controller, as it or a list says; empty if nobody has
	listed    []string // where it is, as it is told
	addresses []string // tried in turn: these, and those that no list takes away
	pinned    string   // that is tried first; empty if there is none
	home      string   // of Options.Endpoints, which has led to it; empty if none has
	at        string   // the address that is tried, or was last
	next      int      // which of the addresses is tried then
	line      *line    // the connection; nil if there is none
	spare     bool     // another seat has the same controller
	since     time.Time
	problem   string // why there is no connection

	end  context.CancelFunc // of the seat; nil if it is not tried yet
	cut  context.CancelFunc // of what is tried now
	wake chan struct{}      // has an element when there is a reason not to wait
}

// line is a connection to a controller.
type line struct {
	*channel.Channel
	id      string // who the controller says it is
	address string
	finds   bool                // whether it can be asked for the API session of a token
	shown   []*x509.Certificate // by the controller
	own     *x509.Certificate   // that it let the router in with
	trusted atomic.Pointer[string]
	since   time.Time

	took   atomic.Int64 // that signs of life are on their way, in ns; 0 if there was none
	heard  atomic.Int64 // when the last came, in ns
	probed atomic.Int64 // since when one is waited for, in ns; 0 if none is
}

// newSeat returns one, which is dialled at once if the uplink runs. u.mu is
// held.
func (u *Uplink) newSeat(c Controller) *seat {
	s := &seat{
		u: u, id: c.ID, listed: c.Addresses, addresses: c.Addresses, at: c.Addresses[0], since: u.opt.Now(), problem: "it has not been tried yet",
		wake: make(chan struct{}, 1),
	}
	if u.running != nil {
		s.start(u.running)
	}
	return s
}

// start has the seat dialled until ctx or the seat ends.
func (s *seat) start(ctx context.Context) {
	ctx, s.end = context.WithCancel(ctx)
	s.u.parts.Go(func() { s.run(ctx) })
}

// leave ends the seat and its connection.
func (s *seat) leave() {
	if s.end != nil {
		s.end()
	}
}

// rank says which of two seats of one controller is worth more.
func (s *seat) rank() int {
	if s.line != nil {
		return 1
	}
	return 0
}

// move takes note of where the controller is. If that is elsewhere, it is
// dialled there at once. An address that the router began with, and that has led
// to the controller, stays behind the others: what controllers say of themselves
// need not be reached from everywhere.
func (s *seat) move(c Controller) {
	if c.ID != "" {
		s.id = c.ID
	}
	s.listed = c.Addresses
	addresses := slices.Clone(c.Addresses)
	if s.pinned != "" && !slices.Contains(addresses, s.pinned) {
		addresses = append([]string{s.pinned}, addresses...)
	}
	if s.home != "" && !slices.Contains(addresses, s.home) {
		addresses = append(addresses, s.home)
	}
	if slices.Equal(addresses, s.addresses) {
		return
	}
	s.addresses, s.next = addresses, 0
	if s.line != nil && (slices.Contains(s.listed, s.at) || s.at == s.pinned) {
		return
	}
	if s.cut != nil {
		s.cut()
	}
	s.stir()
}

func (s *seat) stir() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look
	}
}

// Times between attempts to connect. The first comes soon: most often a
// controller has only been restarted. Each is shorter by chance, up to the
// half, so that not all routers of a network come at once.
const (
	firstPause  = 500 * time.Millisecond
	longPause   = 15 * time.Second
	connectWait = 10 * time.Second
	// sparePause is how long an address is left alone at which a controller
	// answers that is connected by another, unless that connection is lost.
	sparePause = 2 * time.Minute
	// settled is how long a connection lasts that counts as one that works, and
	// manyTorn how many in a row that did not are no accident.
	settled  = 20 * time.Second
	manyTorn = 3
)

// run connects to the controller, again and again, until ctx ends.
func (s *seat) run(ctx context.Context) {
	pause, torn := firstPause, 0
	for ctx.Err() == nil {
		began := s.u.opt.Now()
		welcome, err := s.try(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errMoved) {
			pause, torn = firstPause, 0
			continue
		}
		switch lasted := s.u.opt.Now().Sub(began) > settled; {
		case lasted:
			pause, torn = firstPause, 0
		case welcome:
			if torn++; torn < manyTorn {
				pause = firstPause // the controller was there
			}
		}
		if torn >= manyTorn {
			err = fmt.Errorf("%w (%w)", errTorn, err)
		}
		wait := pause/2 + rand.N(pause/2)
		switch spare, round := s.note(err); {
		case spare:
			wait, torn = sparePause, 0
		case round:
			pause = min(2*pause, longPause)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.wake:
			pause = firstPause
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// try dials the next of the addresses, and returns when that is over: whether
// the router was welcome there, and why it is not any more.
func (s *seat) try(ctx context.Context) (welcome bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.u.mu.Lock()
	s.at = s.addresses[s.next%len(s.addresses)]
	s.cut = cancel
	at := s.at
	s.u.mu.Unlock()
	welcome, err = s.once(ctx, at)
	if ctx.Err() != nil {
		err = errMoved
	}
	return welcome, err
}

// note takes down why there is no connection. It reports whether another seat has
// the same controller, and whether all addresses were tried. The same reason is
// logged once, and that another seat has it never.
func (s *seat) note(err error) (spare, round bool) {
	u, problem := s.u, plain(err)
	u.mu.Lock()
	s.next = (s.next + 1) % len(s.addresses)
	round = s.next == 0
	s.spare = u.other(s) != nil
	if spare = s.spare; spare {
		problem = errSpare.Error()
	}
	fresh := s.problem != problem
	s.problem = problem
	at := s.at
	u.mu.Unlock()
	if fresh && !spare {
		u.opt.Log.Warn("there is no connection to the controller; it is tried again", "address", at, "reason", problem)
	}
	return spare, round
}

// other is another seat that is connected to the same controller; u.mu is held.
func (u *Uplink) other(s *seat) *seat {
	at := slices.IndexFunc(u.seats, func(o *seat) bool { return o != s && o.line != nil && o.line.id != "" && o.line.id == s.id })
	if at < 0 {
		return nil
	}
	return u.seats[at]
}

// once connects, and returns whether it was welcome and why that is over.
func (s *seat) once(ctx context.Context, endpoint string) (welcome bool, err error) {
	u := s.u
	conn, l, err := s.greet(ctx, endpoint)
	if err != nil {
		return false, err
	}
	if !s.take(ctx, l) {
		_ = conn.Close()
		return false, errSpare
	}
	u.opt.Log.Info("connected to the controller", "address", endpoint, "controller", l.id)
	stop := context.AfterFunc(ctx, func() { l.Close(nil) })
	defer stop()
	l.Attach(conn)
	u.opt.Handler.Connected()
	u.keep(l)
	s.lose(l)
	u.sessions.abandon(l.id)
	u.opt.Handler.Disconnected()
	return true, l.Err()
}

// probeWait is how long a controller has to show that it is there.
const probeWait = 2 * time.Second

// take makes a connection that of the seat, unless the same controller is
// connected already: that one stays if it lives. A controller ends it if it is
// the same process that was dialled by another address.
func (s *seat) take(ctx context.Context, l *line) bool {
	u := s.u
	for {
		u.mu.Lock()
		if s.id = cmp.Or(l.id, s.id); slices.Contains(u.opt.Endpoints, l.address) {
			s.home = l.address
		}
		held := u.other(s)
		if held == nil {
			s.line, s.spare, s.since, s.problem = l, false, l.since, ""
			u.mu.Unlock()
			return true
		}
		old := held.line
		u.mu.Unlock()
		within, cancel := context.WithTimeout(ctx, probeWait)
		_, err := old.Request(within, &wire.Frame{Type: message.TypePing})
		cancel()
		if err == nil || ctx.Err() != nil {
			return false
		}
		old.Close(errReplaced)
		u.mu.Lock()
		if held.line == old {
			held.line = nil
		}
		u.mu.Unlock()
	}
}

// lose takes note that a connection is over. Whoever could take its place
// hears of it; with the last of all, any list of controllers counts again.
func (s *seat) lose(l *line) {
	u := s.u
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.line == l {
		s.line, s.since = nil, u.opt.Now()
	}
	connected := false
	for _, o := range u.seats {
		connected = connected || o.line != nil
		if o != s && o.spare && o.id == l.id {
			o.stir()
		}
	}
	if !connected {
		u.index, u.alone = nil, u.opt.Now()
	}
}

var (
	// errTorn says why connections may end that the controller has just welcomed.
	errTorn = errors.New("the controller welcomes this router and then ends the connection, again and again: " +
		"another one may run with a copy of its directory, and they take each other's place; stop one, and enroll a router of its own there")
	// errNoWord is how OpenZiti's controllers turn routers away.
	errNoWord = errors.New("the controller ends the connection without saying why: it may not know this router, or not any more; " +
		"look for it there, and enroll it again if it is gone")
	errSpare    = errors.New("the controller that answers there is connected by another address")
	errMoved    = errors.New("the controller is elsewhere now")
	errReplaced = errors.New("the controller was dialled by another address")
)

// greet dials the controller and says hello.
func (s *seat) greet(ctx context.Context, endpoint string) (net.Conn, *line, error) {
	u := s.u
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	at, err := parseAddress(endpoint)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := u.opt.TLS()
	if err != nil {
		return nil, nil, err
	}
	cfg = cfg.Clone()
	cfg.NextProtos = []string{message.ALPN}
	if cfg.ServerName == "" || !slices.Contains(u.opt.Endpoints, endpoint) {
		cfg.ServerName = at.Hostname
	}
	conn, err := (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", strings.TrimPrefix(endpoint, "tls:"))
	if err != nil {
		return nil, nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	l := &line{address: endpoint, shown: conn.(*tls.Conn).ConnectionState().PeerCertificates}
	if len(cfg.Certificates) > 0 {
		l.own = cfg.Certificates[0].Leaf
	}
	if s.again(l) {
		_ = conn.Close()
		return nil, nil, errSpare
	}
	welcome, err := channel.Greet(conn, u.opt.Now().Add(connectWait), u.hello())
	if errors.Is(err, io.EOF) {
		err = errNoWord
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	l.id, l.finds, l.since = welcome.Text(message.HeaderListenerID), welcome.Bool(message.HeaderFinds), u.opt.Now()
	l.Channel = channel.New(welcome.Text(message.HeaderConnectionID), channel.Options{
		Handle: func(_ *channel.Channel, f *wire.Frame) { u.hear(l, f) }, Takes: takes, Echoed: func(took time.Duration) { l.echoed(took, u.opt.Now()) }, Now: u.opt.Now,
	})
	l.heard.Store(l.since.UnixNano())
	return conn, l, nil
}

// again reports whether an address that led to a controller that is connected
// by another still does, by what that shows: with a hello it would take this
// connection for the other.
func (s *seat) again(l *line) bool {
	s.u.mu.Lock()
	defer s.u.mu.Unlock()
	other := s.u.other(s)
	return other != nil && len(l.shown) > 0 && len(other.line.shown) > 0 && l.shown[0].Equal(other.line.shown[0])
}

// hello is what the router says first.
func (u *Uplink) hello() channel.Hello {
	h := wire.Headers{}
	h.SetText(message.HeaderVersion, u.opt.Version)
	h.SetBool(message.HeaderAuthorities, true)
	h[message.HeaderOldMetadata] = message.Marshal(&message.RouterMetadata{Capabilities: []message.RouterAbility{message.MakesLinks}})
	if len(u.opt.LinkListeners) > 0 {
		h[message.HeaderOldListeners] = message.Marshal(&message.Listeners{Listeners: u.opt.LinkListeners})
	}
	return channel.Hello{ID: u.opt.ID, Headers: h}
}

// plain is an error of connecting in words for whoever runs the router.
func plain(err error) string {
	var unknown *tls.CertificateVerificationError
	var dated x509.CertificateInvalidError
	var refused *channel.Refused
	switch {
	case errors.As(err, &dated) && dated.Reason == x509.Expired:
		return fmt.Sprintf("by the clock of this machine the controller's certificate has expired or is not valid yet (%s): set the clock, or renew that certificate", dated.Detail)
	case errors.As(err, &refused):
		return refused.Words
	case errors.Is(err, errNoWord):
		return errNoWord.Error()
	case errors.As(err, &unknown):
		return fmt.Sprintf("the controller's certificate is not to be trusted (%v): it is another controller, or was set up anew; enroll the router again with --force if that is right", unknown.Err)
	case errors.Is(err, channel.ErrClosed):
		return "the connection was closed from here"
	}
	return err.Error()
}
