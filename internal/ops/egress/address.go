package egress

import (
	"fmt"
	"net/netip"
)

// A zone says how far the rules let a fetch go.
type zone int

const (
	public  zone = iota // anyone's network
	inner               // private networks and this host: refused when strict
	refused             // nobody publishes keys there
)

// ranges name the addresses that are not public. The first match counts, so
// exceptions come before the range that holds them.
var ranges = []struct {
	prefix netip.Prefix
	zone   zone
	name   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), refused, "unspecified"},
	{netip.MustParsePrefix("169.254.0.0/16"), refused, "link-local"},
	{netip.MustParsePrefix("224.0.0.0/4"), refused, "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), refused, "broadcast"},
	{netip.MustParsePrefix("100.100.100.200/32"), refused, "cloud metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), refused, "cloud metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), refused, "cloud metadata"},
	{netip.MustParsePrefix("::/128"), refused, "unspecified"},
	{netip.MustParsePrefix("fe80::/10"), refused, "link-local"},
	{netip.MustParsePrefix("ff00::/8"), refused, "multicast"},
	{netip.MustParsePrefix("fd00:ec2::/32"), refused, "cloud metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), refused, "cloud metadata"},
	{netip.MustParsePrefix("fd00:42::42/128"), refused, "cloud metadata"},
	// Where the IPv4 address sits in this one is up to each network, so it
	// cannot be judged.
	{netip.MustParsePrefix("64:ff9b:1::/48"), refused, "local translation"},

	{netip.MustParsePrefix("127.0.0.0/8"), inner, "loopback"},
	{netip.MustParsePrefix("10.0.0.0/8"), inner, "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), inner, "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), inner, "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), inner, "shared"},
	{netip.MustParsePrefix("192.0.0.0/24"), inner, "protocol assignment"},
	{netip.MustParsePrefix("198.18.0.0/15"), inner, "benchmarking"},
	{netip.MustParsePrefix("240.0.0.0/4"), inner, "reserved"},
	{netip.MustParsePrefix("::1/128"), inner, "loopback"},
	{netip.MustParsePrefix("fc00::/7"), inner, "private"},
	{netip.MustParsePrefix("fec0::/10"), inner, "site-local"},
}

// carriers are IPv6 ranges whose addresses lead to the IPv4 address inside.
var carriers = []struct {
	prefix   netip.Prefix
	offset   int  // of the IPv4 address, in bytes
	inverted bool // its bits are flipped
}{
	{netip.MustParsePrefix("::/96"), 12, false},        // IPv4-compatible
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false}, // NAT64
	{netip.MustParsePrefix("2002::/16"), 2, false},     // 6to4
	{netip.MustParsePrefix("2001::/32"), 12, true},     // Teredo
}

// plain strips what makes two spellings of an address differ: the interface,
// and an IPv6 coat around IPv4.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }

// place returns the zone of a plain address and, unless public, the name of
// its range.
func place(a netip.Addr) (zone, string) {
	if !a.IsValid() {
		return refused, "no address"
	}
	for _, r := range ranges {
		if r.prefix.Contains(a) {
			return r.zone, r.name
		}
	}
	if v4, ok := carried(a); ok {
		return place(v4)
	}
	return public, ""
}

// carried returns the IPv4 address to which an IPv6 address leads, if any.
func carried(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	for _, c := range carriers {
		if !c.prefix.Contains(a) {
			continue
		}
		b := a.As16()
		v4 := [4]byte(b[c.offset:])
		if c.inverted {
			for i := range v4 {
				v4[i] = ^v4[i]
			}
		}
		return netip.AddrFrom4(v4), true
	}
	return a, false
}

func isPublic(a netip.Addr) bool {
	z, _ := place(a)
	return z == public
}

// judge refuses an address that must not be reached.
func judge(a netip.Addr, publicOnly bool) error {
	z, name := place(a)
	if z == refused || z == inner && publicOnly {
		return fmt.Errorf("%w: %s is %s", ErrAddress, a, name)
	}
	return nil
}
