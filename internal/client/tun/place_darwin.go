package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/net/route"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
)

// fastMTU is the longest that utun carries as fast as it can.
const fastMTU = 4064

// anyUtun lets the system choose a number.
const anyUtun = "utun"

// place is where a device is in the machine's network.
type place struct {
	name   string
	index  int
	no6    bool // the machine has no IPv6
	blocks blocks
}

// make makes the device and gives it its addresses.
func (p *place) make(opt Options, host netip.Addr) (wire, error) {
	name := opt.Name
	if name == DefaultName {
		name = anyUtun
	}
	if number, ok := strings.CutPrefix(name, anyUtun); !ok || number != "" && !isNumber(number) {
		return nil, fmt.Errorf("%q cannot be the name of a device: here they are called utun and a number; leave --device out, and one is chosen", opt.Name)
	}
	if err := free(opt.Range); err != nil {
		return nil, err
	}
	device, err := tun.CreateTUN(name, opt.MTU)
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return nil, errors.New("this user may make no network device: run it as root, with sudo")
	case errors.Is(err, unix.EBUSY):
		return nil, taken(name)
	case err != nil:
		return nil, fmt.Errorf("the device %s cannot be made: %w", name, err)
	}
	w := newPackets(device)
	if err := p.set(device, opt, host); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("the device %s cannot be set up: %w", p.name, err)
	}
	here.enter(p)
	return w, nil
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 15)
	return err == nil
}

// set gives the device what it needs, and brings it up.
func (p *place) set(device tun.Device, opt Options, host netip.Addr) (err error) {
	p.blocks.led = map[netip.Prefix]bool{}
	if p.name, err = device.Name(); err != nil {
		return err
	}
	link, err := net.InterfaceByName(p.name)
	if err != nil {
		return err
	}
	p.index = link.Index
	if err := ifconfig(p.name, "inet", host.String(), host.Next().String(), "netmask", "255.255.255.255", "up"); err != nil {
		return err
	}
	p.no6 = ifconfig(p.name, "inet6", six.Addr().String(), "prefixlen", "128", "alias") != nil
	return p.put(opt.Range, true)
}

func ifconfig(args ...string) error {
	out, err := exec.Command("/sbin/ifconfig", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ifconfig %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// route implements Device.Route.
func (p *place) route(want []Route) error { return p.blocks.route(want, p.put) }

// put has a block lead to the device, or not any more.
func (p *place) put(block netip.Prefix, in bool) error {
	if p.no6 && block.Addr().Is6() && in {
		return errors.New("this machine has no IPv6")
	}
	m := route.RouteMessage{
		Version: unix.RTM_VERSION, Type: unix.RTM_ADD, Flags: unix.RTF_UP | unix.RTF_STATIC, Seq: 1,
		Addrs: []route.Addr{unix.RTAX_DST: inet(block.Addr()), unix.RTAX_GATEWAY: &route.LinkAddr{Index: p.index, Name: p.name}, unix.RTAX_NETMASK: inet(mask(block))},
	}
	if !in {
		m.Type = unix.RTM_DELETE
	}
	text, err := m.Marshal()
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_ROUTE, unix.SOCK_RAW, unix.AF_UNSPEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, text)
	switch {
	case in && errors.Is(err, unix.EEXIST):
		return errors.New("the machine has one, which stays: choose another address for the service, or take that route away")
	case !in && errors.Is(err, unix.ESRCH):
		return nil
	}
	return err
}

func inet(ip netip.Addr) route.Addr {
	if ip.Is4() {
		return &route.Inet4Addr{IP: ip.As4()}
	}
	return &route.Inet6Addr{IP: ip.As16()}
}

func mask(block netip.Prefix) netip.Addr {
	ip, _ := netip.AddrFromSlice(net.CIDRMask(block.Bits(), block.Addr().BitLen()))
	return ip
}

// ways are the machine's routes but those that only some programs see.
func ways() (all []way, err error) {
	text, err := route.FetchRIB(unix.AF_UNSPEC, route.RIBTypeRoute, 0)
	if err != nil {
		return nil, err
	}
	messages, err := route.ParseRIB(route.RIBTypeRoute, text)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		r, ok := m.(*route.RouteMessage)
		if !ok || r.Flags&unix.RTF_UP == 0 || r.Flags&(unix.RTF_IFSCOPE|unix.RTF_REJECT|unix.RTF_BLACKHOLE) != 0 || len(r.Addrs) <= unix.RTAX_NETMASK {
			continue
		}
		to, ok := plainOf(r.Addrs[unix.RTAX_DST])
		if !ok {
			continue
		}
		bits := to.BitLen()
		if m, ok := plainOf(r.Addrs[unix.RTAX_NETMASK]); ok && r.Flags&unix.RTF_HOST == 0 {
			bits, _ = net.IPMask(m.AsSlice()).Size()
		} else if to.IsUnspecified() {
			bits = 0
		}
		all = append(all, way{to: netip.PrefixFrom(to, bits), index: r.Index})
	}
	return all, nil
}

func plainOf(a route.Addr) (netip.Addr, bool) {
	switch a := a.(type) {
	case *route.Inet4Addr:
		return netip.AddrFrom4(a.IP), true
	case *route.Inet6Addr:
		return netip.AddrFrom16(a.IP), true
	}
	return netip.Addr{}, false
}

// through has a socket use a device, whatever routes say.
func through(fd uintptr, four bool, index int) error {
	if four {
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BOUND_IF, index)
	}
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_BOUND_IF, index)
}
