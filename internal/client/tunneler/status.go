package tunneler

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/status"
)

// teller has something to say of itself when somebody asks how things stand.
type teller interface{ tell(r *status.Report) }

// roll is everything that has.
type roll struct {
	mu   sync.Mutex
	last int
	all  map[int]teller
}

// enter has somebody asked until leave is called.
func (l *roll) enter(one teller) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int]teller{}
	}
	l.last++
	number := l.last
	l.all[number] = one
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, number)
	}
}

// asked are all who have something to say.
func (l *roll) asked() (all []teller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		all = append(all, one)
	}
	return all
}

// Status is how the tunneler stands.
func (t *Tunneler) Status() *status.Report {
	r := &status.Report{
		PID: os.Getpid(), Version: t.opt.Version, Began: t.began, At: t.opt.Now(),
		Connections: t.tally.Traffic(), Errors: t.memory.Errors(),
	}
	for _, one := range t.roll.asked() {
		one.tell(r)
	}
	slices.SortFunc(r.Identities, func(a, b status.Identity) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File))
	})
	slices.SortFunc(r.Hosted, func(a, b status.Hosted) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Identity, b.Identity), cmp.Compare(a.Target, b.Target))
	})
	slices.SortFunc(r.Ports, func(a, b status.Port) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Protocol, b.Protocol))
	})
	slices.SortFunc(r.Intercepted, func(a, b status.Intercepted) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Identity, b.Identity))
	})
	return r
}

// count counts what goes over a connection of the network: for all, and for what it
// belongs to.
func (t *Tunneler) count(of *status.Tally, conn net.Conn) net.Conn {
	c := &counted{Conn: conn, tallies: [2]*status.Tally{&t.tally, of}}
	for _, tally := range c.tallies {
		tally.Begin()
	}
	return c
}

// counted is a connection of the network whose bytes are counted.
type counted struct {
	net.Conn
	tallies [2]*status.Tally
	once    sync.Once
}

// Read takes from the network.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	for _, tally := range c.tallies {
		tally.Received(n)
	}
	return n, err
}

// Write gives to the network.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	for _, tally := range c.tallies {
		tally.Sent(n)
	}
	return n, err
}

// CloseWrite says that nothing follows.
func (c *counted) CloseWrite() error {
	half, can := c.Conn.(halfCloser)
	if !can {
		return net.ErrClosed
	}
	return half.CloseWrite()
}

// Close ends the connection, which counts once.
func (c *counted) Close() error {
	c.once.Do(func() {
		for _, tally := range c.tallies {
			tally.End()
		}
	})
	return c.Conn.Close()
}

// member is an identity that is acted for, or will be.
type member struct {
	file string

	mu     sync.Mutex
	client *sdk.Client
	err    error // why it is not in use yet
}

func (m *member) uses(c *sdk.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client, m.err = c, nil
}

func (m *member) fails(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// tell implements teller.
func (m *member) tell(r *status.Report) {
	m.mu.Lock()
	c, err := m.client, m.err
	m.mu.Unlock()
	one := status.Identity{File: m.file, Error: why(err), Routers: []status.Router{}}
	if c != nil {
		services, _ := c.Services()
		one.Name, one.Services = c.Name(), len(services)
		for _, e := range c.Stands() {
			if e.Router == "" {
				one.Controller, one.Connected, one.Error = e.Address, e.State == sdk.Connected, why(e.Err)
				continue
			}
			one.Routers = append(one.Routers, status.Router{
				Name: e.Router, Address: e.Address, Connected: e.State == sdk.Connected, Since: e.At, Error: why(e.Err),
			})
		}
	}
	r.Identities = append(r.Identities, one)
}

// why is the text of an error, if there is one.
func why(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// tell implements teller.
func (h *hosted) tell(r *status.Report) {
	one := status.Hosted{Service: h.service.Name, Identity: h.c.Name(), Target: h.endpoint.leads(), Checks: []status.Check{}, Traffic: h.tally.Traffic()}
	if l := h.listen.Load(); l != nil {
		var err error
		if one.Routers, err = l.Stands(); one.Routers == 0 {
			one.Error = why(err)
		}
	}
	if tests := h.tests.Load(); tests != nil {
		for _, c := range *tests {
			said := status.Check{Name: c.rule.name()}
			if last := c.last.Load(); last != nil {
				said.Known, said.Well, said.Since, said.Error = true, last.well, last.since, why(last.err)
			}
			one.Checks = append(one.Checks, said)
		}
	}
	r.Hosted = append(r.Hosted, one)
}

// asDialled stands for what dialers say.
const asDialled = "as dialled"

// leads says where an endpoint leads to.
func (e *endpoint) leads() string {
	protocol, host, port := e.Protocol, e.Address, strconv.Itoa(e.Port)
	if e.ForwardProtocol && e.ForwardAddress && e.ForwardPort {
		return asDialled
	}
	if e.ForwardProtocol {
		protocol = asDialled
	}
	if e.ForwardAddress {
		host = asDialled
	}
	if e.ForwardPort {
		port = asDialled
	}
	return fmt.Sprintf("%s %s", protocol, net.JoinHostPort(host, port))
}

// tell implements teller.
func (p *port) tell(r *status.Report) {
	one := status.Port{Service: p.Service, Address: p.address(), Protocol: p.protocol(), Traffic: p.tally.Traffic()}
	if c := p.t.dialer(p.Service); c != nil {
		if s := c.Find(p.Service); s != nil && s.Dial {
			one.Identity = c.Name()
		}
	}
	r.Ports = append(r.Ports, one)
}
