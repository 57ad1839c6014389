package tunneler

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Allow is one sort of targets that a host may reach, said on its own machine:
// whoever writes configurations for it cannot lead it elsewhere.
type Allow struct {
	name      string       // of hosts, *.domain for those below one, * for all
	block     netip.Prefix // of addresses, if there is no name
	low, high uint16
	protocol  string // empty for both
}

// ReadAllow understands HOST:PORTS, with /tcp or /udp behind it if not both are
// meant.
func ReadAllow(text string) (Allow, error) {
	var a Allow
	fail := func(why string) (Allow, error) {
		return Allow{}, fmt.Errorf("--allow %q %s; it is HOST:PORTS, such as 10.0.0.0/8:443, *.example.com:8000-8999/tcp, [fd00::/8]:* or *:53/udp", text, why)
	}
	rest := text
	for _, protocol := range []string{"tcp", "udp"} {
		if cut, ok := strings.CutSuffix(rest, "/"+protocol); ok {
			rest, a.protocol = cut, protocol
			break
		}
	}
	colon := strings.LastIndexByte(rest, ':')
	if colon < 0 || strings.HasSuffix(rest, "]") {
		return fail("says no ports (:* for all)")
	}
	host, ports := rest[:colon], rest[colon+1:]
	var ok bool
	if a.low, a.high, ok = portsOf(ports); !ok {
		return fail(fmt.Sprintf("has the ports %q, which is neither a port from 1 to 65535, nor LOW-HIGH, nor *", ports))
	}
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		inner, ok = strings.CutSuffix(inner, "]")
	}
	if strings.Contains(inner, ":") != bracketed || !ok {
		return fail("needs brackets around an IPv6 address, and around nothing else")
	}
	if block, err := blockOf(inner); err == nil {
		a.block = block
		return a, nil
	}
	if domain := strings.TrimPrefix(inner, "*."); bracketed || inner != "*" && !isName(domain) {
		return fail(fmt.Sprintf("has the host %q, which is neither an address, nor a block of them, nor a name, nor one below *.", inner))
	}
	a.name = inner
	return a, nil
}

// portsOf understands a port, a range of them or all.
func portsOf(text string) (low, high uint16, ok bool) {
	if text == "*" {
		return 1, 65535, true
	}
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	from, err1 := strconv.ParseUint(first, 10, 16)
	to, err2 := strconv.ParseUint(last, 10, 16)
	return uint16(from), uint16(to), err1 == nil && err2 == nil && 0 < from && from <= to
}

// blockOf understands an address or a block of them, of IPv4 however it is
// written.
func blockOf(text string) (netip.Prefix, error) {
	block, err := netip.ParsePrefix(text)
	if err != nil {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return block, errors.New("no address")
		}
		block = netip.PrefixFrom(ip, ip.BitLen())
	}
	if block.Addr().Is4In6() && block.Bits() >= 96 {
		block = netip.PrefixFrom(block.Addr().Unmap(), block.Bits()-96)
	}
	return block, nil
}

func (a *Allow) port(protocol string, port uint16) bool {
	return (a.protocol == "" || a.protocol == protocol) && a.low <= port && port <= a.high
}

// errNotAllowed is that of a target that the host may not reach.
var errNotAllowed = errors.New("--allow does not list it")

// allowed is what a host may reach: everything, if nothing was said.
type allowed []Allow

// dial connects to a target if that may be. A name that is listed may be wherever
// it is; any other counts by its address, which is looked at when it is connected
// to and not before, so that a name that means something else by then is no way
// round.
func (l allowed) dial(ctx context.Context, d *net.Dialer, protocol, address string) (net.Conn, error) {
	if l == nil {
		return d.DialContext(ctx, protocol, address)
	}
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%q is no port", digits)
	}
	if host == "" { // which is the machine itself
		host = "localhost"
		address = net.JoinHostPort(host, digits)
	}
	_, noAddress := netip.ParseAddr(host)
	reachable := slices.ContainsFunc(l, func(a Allow) bool { return a.name == "" && a.port(protocol, uint16(port)) })
	for _, a := range l {
		if a.name == "" || !a.port(protocol, uint16(port)) {
			continue
		}
		if a.name == "*" || noAddress != nil && isName(host) && called(a.name, host) {
			return d.DialContext(ctx, protocol, address)
		}
	}
	if !reachable {
		return nil, errNotAllowed // and nobody is asked what the name means
	}
	judged := *d
	judged.Control = func(network, to string, c syscall.RawConn) error {
		at, err := netip.ParseAddrPort(to)
		if err == nil {
			err = l.judge(protocol, at)
		}
		if err == nil && d.Control != nil {
			err = d.Control(network, to, c)
		}
		return err
	}
	return judged.DialContext(ctx, protocol, address)
}

// judge refuses an address that is not listed.
func (l allowed) judge(protocol string, at netip.AddrPort) error {
	ip := at.Addr().Unmap().WithZone("")
	switch ip { // the machine itself answers there
	case netip.IPv4Unspecified():
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case netip.IPv6Unspecified():
		ip = netip.IPv6Loopback()
	}
	for _, a := range l {
		if a.name == "" && a.port(protocol, at.Port()) && a.block.Contains(ip) {
			return nil
		}
	}
	return errNotAllowed
}
