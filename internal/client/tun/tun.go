// Package tun is a network device of this machine with a TCP/IP stack of its
// own behind it: what programs send to addresses that lead to the device becomes
// connections and datagrams here, each with where it comes from and where it was
// to go. It owns the device, its addresses, and the routes and rules that lead to
// it, and leaves everything else of the machine's network as it is. What becomes
// of a connection is for others to say: it must not import anything of ours.
package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Options of a device.
type Options struct {
	// Name is the device's; some systems choose another.
	Name string
	// Range is what the device leads to: its first address is the machine's own
	// there, and its second that of the stack, where servers may listen.
	Range netip.Prefix
	// MTU is how long a packet may be; what is fast if it is 0.
	MTU int
	// Connect is called, in a goroutine of its own, for every connection that a
	// program wants. It calls Accept or Refuse.
	Connect func(*Wish)
	// Datagrams is called with the first datagram of a sender to a receiver. It
	// reports whether anybody takes them, and must not wait.
	Datagrams func(*Flow) bool
}

// Route is what leads to the device beside its range: a block of addresses at
// some ports, by one protocol. Everything else of the block goes where it did.
type Route struct {
	Block     netip.Prefix
	Protocol  string // tcp or udp
	Low, High uint16
}

// MaxPorts is how many different ranges of ports routes may have, of each
// protocol together: the machine looks at one after the other for each
// connection of anybody.
const MaxPorts = 200

const (
	// DefaultName and DefaultRange are what people get who say nothing.
	DefaultName  = "nk0"
	DefaultRange = "100.64.0.0/10"
	longestMTU   = 65520
	minMTU       = 1280 // what IPv6 asks for
)

// Device is one that is there until it is closed.
type Device struct {
	opt   Options
	host  netip.Addr // the machine's own address
	own   netip.Addr // that of the stack
	link  *link
	stack *stack.Stack
	place place // in the machine's network

	mu   sync.Mutex
	open int // connections that were accepted

	once sync.Once
}

// Open makes the device. Its errors are sentences that say what to do.
func Open(opt Options) (*Device, error) {
	if opt.MTU == 0 {
		opt.MTU = fastMTU
	}
	if opt.MTU < minMTU || opt.MTU > longestMTU {
		return nil, fmt.Errorf("an MTU of %d cannot be: choose one from %d to %d", opt.MTU, minMTU, longestMTU)
	}
	if err := CheckRange(opt.Range); err != nil {
		return nil, err
	}
	d := &Device{opt: opt}
	d.host = opt.Range.Masked().Addr().Next()
	d.own = d.host.Next()
	wire, err := d.place.make(opt, d.host)
	if err != nil {
		return nil, err
	}
	d.link = newLink(wire, uint32(opt.MTU))
	if err := d.build(); err != nil {
		_ = d.place.leave()
		_ = wire.Close()
		return nil, err
	}
	return d, nil
}

// CheckRange says what keeps a block from being the range of a device.
func CheckRange(r netip.Prefix) error {
	const some = 24 // bits that a range has at most
	switch {
	case !r.IsValid() || !r.Addr().Is4():
		return errors.New("the range must be a block of IPv4 addresses, such as " + DefaultRange)
	case r.Bits() > some || r.Bits() < 8:
		return fmt.Errorf("the range %s must have between /8 and /%d: names get addresses of their own there", r, some)
	case r != r.Masked():
		return fmt.Errorf("the range %s has bits behind its prefix: write %s", r, r.Masked())
	case r.Addr().IsLoopback() || r.Addr().IsMulticast() || r.Addr().IsUnspecified():
		return fmt.Errorf("the range %s means something else: choose another, such as %s", r, DefaultRange)
	}
	return nil
}

func taken(name string) error {
	return fmt.Errorf("there is a device %s already: choose another name with --device, or stop what has it", name)
}

func inUse(r, to netip.Prefix, through string) error {
	return fmt.Errorf("the range %s is in use on this machine: %s leads to %s; choose another range with --range, such as 10.213.0.0/16", r, to, through)
}

// Name is what the device is called.
func (d *Device) Name() string { return d.place.name }

// Index is the number that the machine has for the device.
func (d *Device) Index() int { return d.place.index }

// Host is the machine's own address in the range.
func (d *Device) Host() netip.Addr { return d.host }

// Server is the address of the stack, where ListenTCP and ListenUDP listen.
func (d *Device) Server() netip.Addr { return d.own }

// Route has exactly these lead to the device, beside its range. What was there
// and stays is not touched.
func (d *Device) Route(want []Route) error { return d.place.route(want) }

// Look puts back what somebody else has taken away of what leads to the device, and
// says what that was. It is cheap, and meant to be called every few seconds.
func (d *Device) Look() error { return d.place.look() }

// Done is closed when nothing comes from the device any more: it was closed, or
// somebody has taken it away.
func (d *Device) Done() <-chan struct{} { return d.link.over }

// Close ends all connections and takes the device away, with everything that
// led to it.
func (d *Device) Close() error {
	var err error
	d.once.Do(func() {
		err = errors.Join(d.place.leave(), d.link.wire.Close())
		d.stack.Close()
		d.link.Wait()
		d.stack.Wait()
	})
	return err
}

var errNoListener = errors.New("the stack cannot listen")

var _ net.Conn = (*conn)(nil)
