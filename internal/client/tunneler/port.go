package tunneler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/intercept"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/status"
)

// Port is a local port that leads to a service.
type Port struct {
	Service string
	Bind    string // IP address
	Number  int
	UDP     bool
}

// ReadPort understands SERVICE:PORT or SERVICE:PORT/udp. The service's name may
// have colons itself.
func ReadPort(text, bind string) (p Port, err error) {
	rest, protocol, said := strings.Cut(text, "/")
	if said && protocol != "udp" && protocol != "tcp" {
		return p, fmt.Errorf("%q ends with neither /tcp nor /udp", text)
	}
	at := strings.LastIndexByte(rest, ':')
	if at < 1 {
		return p, fmt.Errorf("%q is not SERVICE:PORT, such as wiki:8080 or dns:5353/udp", text)
	}
	number, err := strconv.ParseUint(rest[at+1:], 10, 16)
	if err != nil || number == 0 {
		return p, fmt.Errorf("%q is no port, in %q", rest[at+1:], text)
	}
	if _, err := netip.ParseAddr(bind); err != nil {
		return p, fmt.Errorf("%q is no IP address to listen on", bind)
	}
	return Port{Service: rest[:at], Bind: bind, Number: int(number), UDP: protocol == "udp"}, nil
}

func (p Port) address() string { return net.JoinHostPort(p.Bind, strconv.Itoa(p.Number)) }

func (p Port) protocol() string {
	if p.UDP {
		return "udp"
	}
	return "tcp"
}

// port is one that is listened on.
type port struct {
	Port
	t    *Tunneler
	log  *slog.Logger
	free slots
	asks slots // dials on their way
	said complaints

	tcp net.Listener
	udp net.PacketConn

	tally   status.Tally
	waiting atomic.Int64 // bytes of datagrams that nobody has taken yet

	leads int // what was said last; under the mutex of all

	mu      sync.Mutex
	senders map[string]*sender // of datagrams, by their address
}

// What can be said of a port.
const (
	leadsOn = iota + 1
	leadsNowhere
)

// listen opens all ports that can be opened.
func (t *Tunneler) listen(ctx context.Context) []*port {
	var open []*port
	for _, want := range t.opt.Ports {
		p := &port{
			Port: want, t: t, free: make(slots, maxConnections), asks: make(slots, maxAsked), senders: map[string]*sender{},
			log: t.log.With("service", want.Service, "address", want.address(), "protocol", want.protocol()),
		}
		var err error
		if want.UDP {
			p.udp, err = new(net.ListenConfig).ListenPacket(ctx, "udp", want.address())
		} else {
			p.tcp, err = new(net.ListenConfig).Listen(ctx, "tcp", want.address())
		}
		if err != nil {
			p.log.Error("a port cannot be listened on", "error", taken(err))
			continue
		}
		t.roll.enter(p) // until the end
		open = append(open, p)
	}
	return open
}

// led says of every port whether its service can be dialled, when that changes.
func (t *Tunneler) led() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.ports {
		may := slices.ContainsFunc(t.clients, func(c *sdk.Client) bool { s := c.Find(p.Service); return s != nil && s.Dial })
		switch {
		case may && p.leads != leadsOn:
			p.leads = leadsOn
			p.log.Info("a port leads to a service")
		case !may && p.leads != leadsNowhere:
			p.leads = leadsNowhere
			p.log.Warn("a port is open, and nobody who is logged in here may dial its service, if there is one: connections are closed until somebody may; look with: netkeep services --identity FILE")
		}
	}
}

// follow says what becomes of ports while what an identity may do changes.
func (t *Tunneler) follow(ctx context.Context, c *sdk.Client) {
	for {
		_, next := c.Services()
		t.led()
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// taken says what to do about a port that cannot be had.
func taken(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return errors.New("something else listens there: stop it, or choose another port")
	case errors.Is(err, syscall.EACCES):
		return errors.New("this user may not listen there: choose a port above 1023")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return errors.New("this machine has no such address: give one that it has with --bind")
	}
	return err
}

// serve leads whoever connects to the service, until ctx ends and nobody is
// connected.
func (p *port) serve(ctx context.Context) {
	if p.UDP {
		p.serveUDP(ctx)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = p.tcp.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := p.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if p.said.fresh(err.Error(), p.t.opt.Now()) {
				p.log.Error("nobody can connect at present", "error", err)
			}
			if !pause(ctx, firstPause) { // no files are left, most likely
				return
			}
			continue
		}
		if !p.free.take() {
			_ = conn.Close()
			p.complain("a connection was closed: as many as may be are open", nil)
			continue
		}
		all.Go(func() {
			defer p.free.give()
			p.lead(p.t.life, conn)
		})
	}
}

// lead connects one local connection with the service.
func (p *port) lead(ctx context.Context, local net.Conn) {
	remote, err := p.dial(ctx, local.RemoteAddr())
	if err != nil {
		_ = local.Close()
		if ctx.Err() == nil {
			p.complain("a connection was closed", err)
		}
		return
	}
	p.log.Debug("connected", "from", local.RemoteAddr().String(), "circuit", remote.Info().Circuit)
	p.t.join(local, p.t.count(&p.tally, remote))
}

func (p *port) complain(what string, err error) {
	text := what
	if err != nil {
		text = err.Error()
	}
	if p.said.fresh(text, p.t.opt.Now()) {
		p.log.Warn(what, "error", err)
	}
}

// dial connects to the service, as the first identity that may.
func (p *port) dial(ctx context.Context, from net.Addr) (*sdk.Conn, error) {
	c := p.t.dialer(p.Service)
	if c == nil {
		return nil, errors.New("no identity is logged in yet")
	}
	source, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return nil, err
	}
	said := map[string]string{
		"dst_protocol": p.protocol(), "dst_ip": p.Bind, "dst_port": strconv.Itoa(p.Number),
		"src_protocol": p.protocol(), "src_ip": source.Addr().Unmap().String(), "src_port": strconv.Itoa(int(source.Port())),
	}
	var how dialling
	if s := c.Find(p.Service); s != nil {
		if _, err := s.Configured(intercept.Type, &how); err != nil {
			return nil, wrong(intercept.Type, err)
		}
	}
	if err := p.asks.wait(ctx); err != nil {
		return nil, err
	}
	defer p.asks.give()
	return how.dial(ctx, c, p.Service, said)
}

// dial connects to a service as its configuration says, with what is said to the
// host.
func (d *dialling) dial(ctx context.Context, c *sdk.Client, service string, said map[string]string) (*sdk.Conn, error) {
	values := maps.Clone(said)
	values["tunneler_id.name"] = c.Name()
	var opt sdk.DialOptions
	var err error
	if opt.Instance, err = fill("dialOptions.identity", d.DialOptions.Identity, values); err != nil {
		return nil, err
	}
	source, err := fill("sourceIp", d.SourceIP, values)
	if err != nil {
		return nil, err
	}
	if source != "" {
		said["source_addr"] = source
	}
	if opt.Data, err = json.Marshal(said, json.Deterministic(true)); err != nil {
		return nil, err
	}
	if within := time.Duration(d.DialOptions.ConnectTimeoutSeconds) * time.Second; within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	return c.Dial(ctx, service, opt)
}

// dialer is the first identity that may dial a service, or the first of all,
// which then says why it may not.
func (t *Tunneler) dialer(service string) *sdk.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.clients {
		if s := c.Find(service); s != nil && s.Dial {
			return c
		}
	}
	if len(t.clients) == 0 {
		return nil
	}
	return t.clients[0]
}

// maxSenders is how many senders of datagrams are remembered at a port, and
// maxWaiting how many datagrams of each wait for a connection to be made or to
// take them. All together they have maxWaitingBytes: senders cost nothing.
const (
	maxSenders      = 1000
	maxWaiting      = 32
	maxWaitingBytes = 16 << 20
)

// sender is somebody who sends datagrams to a port. What it reads and writes is
// datagrams.
type sender struct {
	port *port
	from net.Addr
	came chan []byte
	over chan struct{}

	mu     sync.Mutex // so that nothing comes behind the end
	closed bool
}

// serveUDP gives every sender of datagrams a connection to the service.
func (p *port) serveUDP(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = p.udp.Close() })()
	var all sync.WaitGroup
	defer all.Wait()
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := p.udp.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !pause(ctx, firstPause) {
				return
			}
			continue
		}
		s, fresh := p.sender(from)
		if s == nil {
			p.complain("a datagram was dropped: as many senders as may be are remembered", nil)
			continue
		}
		s.offer(buf[:n])
		if fresh {
			all.Go(func() { p.leadUDP(ctx, s) })
		}
	}
}

// sender finds a sender, or remembers a new one if there is room.
func (p *port) sender(from net.Addr) (s *sender, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.senders[from.String()]; s != nil {
		return s, false
	}
	if len(p.senders) >= maxSenders {
		return nil, false
	}
	s = &sender{port: p, from: from, came: make(chan []byte, maxWaiting), over: make(chan struct{})}
	p.senders[from.String()] = s
	return s, true
}

// leadUDP connects one sender with the service.
func (p *port) leadUDP(ctx context.Context, s *sender) {
	defer s.Close()
	remote, err := p.dial(ctx, s.from)
	if err != nil {
		if ctx.Err() == nil {
			p.complain("a datagram was dropped", err)
		}
		return
	}
	joinDatagrams(ctx, s, p.t.count(&p.tally, remote), p.t.opt.UDPIdle)
}

// offer takes a datagram, unless there is no room: then it is lost, as in any
// network.
func (s *sender) offer(data []byte) bool {
	size := int64(len(data))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.came) == cap(s.came) {
		return false
	}
	if s.port.waiting.Add(size) > maxWaitingBytes {
		s.port.waiting.Add(-size)
		return false
	}
	s.came <- append([]byte(nil), data...) // nobody else does
	return true
}

// Read returns one datagram.
func (s *sender) Read(b []byte) (int, error) {
	select {
	case data := <-s.came:
		s.port.waiting.Add(-int64(len(data)))
		return copy(b, data), nil
	case <-s.over:
		return 0, net.ErrClosed
	}
}

// Write sends one datagram back.
func (s *sender) Write(b []byte) (int, error) { return s.port.udp.WriteTo(b, s.from) }

// Close forgets the sender, and what it has sent.
func (s *sender) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.over)
	s.port.mu.Lock()
	delete(s.port.senders, s.from.String())
	s.port.mu.Unlock()
	for {
		select {
		case data := <-s.came:
			s.port.waiting.Add(-int64(len(data)))
		default:
			return nil
		}
	}
}
