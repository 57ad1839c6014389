//go:build darwin || windows

package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
)

// six is the machine's own address for those that have IPv6 addresses: programs
// must come from somewhere.
var six = netip.MustParsePrefix("fd6e:6b65:6570::1/128")

// blocks is what leads to a device on systems whose routes know no ports: all of
// a block does, and what no service wants there is refused.
type blocks struct {
	mu   sync.Mutex
	over bool
	led  map[netip.Prefix]bool
}

// fewestBits is how short the prefix of a block may be: a larger one would take
// most of what the machine sends.
const fewestBits = 8

// route has exactly the blocks of these lead to the device.
func (b *blocks) route(want []Route, put func(block netip.Prefix, in bool) error) error {
	wanted := map[netip.Prefix]bool{}
	for _, r := range want {
		wanted[r.Block.Masked()] = true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return os.ErrClosed
	}
	var errs []error
	for block := range b.led {
		if !wanted[block] {
			delete(b.led, block)
			if err := put(block, false); err != nil {
				errs = append(errs, fmt.Errorf("the route to %s cannot be taken away: %w", block, err))
			}
		}
	}
	for block := range wanted {
		if b.led[block] {
			continue
		}
		if block.Bits() < fewestBits {
			errs = append(errs, fmt.Errorf("%s does not lead to the device, since all else that goes there would come along, whatever its port: give the service blocks of /%d or longer", block, fewestBits))
			continue
		}
		if err := put(block, true); err != nil {
			errs = append(errs, fmt.Errorf("no route to %s can be made: %w", block, err))
			continue
		}
		b.led[block] = true
	}
	return errors.Join(errs...)
}

func (b *blocks) holds(ip netip.Addr) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for block := range b.led {
		if block.Contains(ip) {
			return true
		}
	}
	return false
}

// leave takes nothing away: routes go with their device, however that ends.
func (p *place) leave() error {
	here.forget(p)
	p.blocks.mu.Lock()
	defer p.blocks.mu.Unlock()
	p.blocks.over = true
	return nil
}

// look finds nothing: nobody has seen yet what others take away here, and how that
// shows.
func (p *place) look() error { return nil }

// here is the devices of this process: what carries intercepted traffic has to be
// led around them, by whoever makes a connection.
var here devices

type devices struct {
	mu  sync.Mutex
	all map[*place]bool
}

func (d *devices) enter(p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[*place]bool{}
	}
	d.all[p] = true
}

func (d *devices) forget(p *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, p)
}

// among are the numbers of the devices, and whether an address leads to one.
func (d *devices) among(ip netip.Addr) (ours map[int]bool, led bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ours = map[int]bool{}
	for p := range d.all {
		ours[p.index] = true
		led = led || p.blocks.holds(ip)
	}
	return ours, led
}

// way is a route of the machine.
type way struct {
	to    netip.Prefix
	index int    // of the device that it leads to
	cost  uint32 // of several to the same, the cheapest is taken
}

// around is the device that leads to an address beside those of ours; 0 if there
// is none.
func around(ip netip.Addr, ours map[int]bool, all []way) int {
	var best way
	for _, w := range all {
		if ours[w.index] || !w.to.Contains(ip) {
			continue
		}
		if better := w.to.Bits() - best.to.Bits(); best.index == 0 || better > 0 || better == 0 && w.cost < best.cost {
			best = w
		}
	}
	return best.index
}

// Unseen is the Control of dialers whose connections go where they would without
// any device of ours: what carries intercepted traffic must not be intercepted.
func Unseen(_, address string, c syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil // it has no address that could lead to a device
	}
	ip := to.Addr().Unmap().WithZone("")
	ours, led := here.among(ip)
	if !led {
		return nil
	}
	all, err := ways()
	if err != nil {
		return fmt.Errorf("the machine's routes cannot be looked at: %w", err)
	}
	index := around(ip, ours, all)
	if index == 0 {
		return nil
	}
	var failed error
	err = c.Control(func(fd uintptr) { failed = through(fd, ip.Is4(), index) })
	return errors.Join(err, failed)
}

// free refuses a range that the machine uses for something else.
func free(r netip.Prefix) error {
	all, err := ways()
	if err != nil {
		return fmt.Errorf("the machine's routes cannot be looked at: %w", err)
	}
	for _, w := range all {
		if w.to.Bits() == 0 || !w.to.Overlaps(r) {
			continue
		}
		if means := w.to.Addr(); means.IsMulticast() || means == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
			continue
		}
		name := "this machine"
		if link, err := net.InterfaceByIndex(w.index); err == nil {
			name = link.Name
		}
		return inUse(r, w.to, name)
	}
	return nil
}
