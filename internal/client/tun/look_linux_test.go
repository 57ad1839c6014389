package tun

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestMended has somebody set the device down, and remove rules: both is said, and
// everything leads to the device again.
func TestMended(t *testing.T) {
	if !alone(t) {
		return
	}
	before := machine(t)
	d := open(t, (&echoes{}).options())
	if err := d.Route([]Route{
		{netip.MustParsePrefix("192.0.2.0/24"), "tcp", 80, 81},
		{netip.MustParsePrefix("198.51.100.7/32"), "udp", 53, 53},
		{netip.MustParsePrefix("2001:db8::/32"), "tcp", 80, 81},
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Look(); err != nil {
		t.Fatalf("nothing was done to it: %v", err)
	}
	with := machine(t)
	link, err := netlink.LinkByIndex(d.Index())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		do   func() error
	}{
		{"somebody had set the device nktest down: it is up again", func() error { return netlink.LinkSetDown(link) }},
		{"somebody had removed", func() error {
			for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
				rules, err := netlink.RuleList(family)
				if err != nil {
					return err
				}
				for _, r := range rules {
					if r.Priority > 0 && r.Priority < 32766 {
						if err := netlink.RuleDel(&r); err != nil {
							return err
						}
					}
				}
			}
			return nil
		}},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		if machine(t) == with {
			t.Fatal("nothing was done")
		}
		if err := d.Look(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v instead of %s", err, c.says)
		}
		err := d.Look()
		if err != nil && strings.Contains(err.Error(), "nktest down") {
			err = d.Look() // the kernel's word of the same fall came after we had seen it ourselves
		}
		if err != nil {
			t.Errorf("it is not mended: %v", err)
		}
		for _, at := range []string{"192.0.2.9:80", "[2001:db8::5]:80", "100.64.0.9:80"} {
			echo(t, "tcp", at, 16)
		}
		echo(t, "udp", "198.51.100.7:53", 16)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestFlapped has the device be down for so short a time that nobody who looks sees
// it: its routes are gone all the same.
func TestFlapped(t *testing.T) {
	if !alone(t) {
		return
	}
	d := open(t, (&echoes{}).options())
	if err := d.Route([]Route{{netip.MustParsePrefix("192.0.2.0/24"), "tcp", 80, 81}}); err != nil {
		t.Fatal(err)
	}
	link, err := netlink.LinkByIndex(d.Index())
	if err == nil {
		err = errors.Join(netlink.LinkSetDown(link), netlink.LinkSetUp(link))
	}
	if err != nil {
		t.Fatal(err)
	}
	for d.Look() == nil { // it hears of it as it happens
	}
	echo(t, "tcp", "192.0.2.9:80", 16)
}
