package tun

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestOtherSources shows that what has an address of the machine's own goes where it
// would without us, whichever of two devices goes first, and that what has none yet,
// or one of the device, comes here.
func TestOtherSources(t *testing.T) {
	if !alone(t) {
		return
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"198.18.0.1/32", "2001:db8:1::1/128"}
	for _, a := range own {
		if err := netlink.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(a))}); err != nil {
			t.Fatal(err)
		}
	}
	before := machine(t)
	e := &echoes{}
	other := e.options()
	other.Name, other.Range = "nkother", netip.MustParsePrefix("10.213.0.0/16")
	first, d := open(t, other), open(t, e.options())
	for at, device := range []*Device{first, d} {
		block := netip.MustParsePrefix("192.0.2.0/24")
		if err := device.Route([]Route{{block, "tcp", 80, uint16(80 + at)}, {netip.MustParsePrefix("2001:db8::/48"), "tcp", 80, uint16(80 + at)}}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		t.Helper()
		for at, to := range []string{"192.0.2.9:80", "[2001:db8::9]:80"} {
			from := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParsePrefix(own[at]).Addr(), 0))
			if c, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", to); !errors.Is(err, syscall.ENETUNREACH) {
				t.Errorf("from %s to %s: %v %v", from, to, c, err)
			}
			echo(t, "tcp", to, 16)
		}
	}
	look()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	look()
	from := &net.TCPAddr{IP: d.Host().AsSlice()}
	if c, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", "192.0.2.9:81"); err != nil {
		t.Errorf("from the device: %v", err)
	} else {
		_ = c.Close()
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
