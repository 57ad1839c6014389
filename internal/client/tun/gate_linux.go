package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The gate decides who sees our rules at all: what begins on this machine, which has
// no source yet, what has begun by way of the device, and what the machine passes on
// for others. What has another source is none of ours: a connection from before, an
// answer to somebody who has connected to this machine, and the kernel's own question
// where an answer would go to, with which rp_filter judges what has come. That has no
// mark, and would be led to the device otherwise, whoever began it.
const (
	gateIn     = priority - 2 // past the next
	gateAround = priority - 1 // past ours
	gateOut    = priority + 1 // where those go on that are led around
)

var (
	none4  = netip.MustParsePrefix("0.0.0.0/32")
	halves = [...]netip.Prefix{netip.MustParsePrefix("::/1"), netip.MustParsePrefix("8000::/1")}
)

// gate is the rules of one family. Each has the number of our first table, which it
// does not lead to, so that it is known whose it is.
func (p *place) gate(family int) (all []*netlink.Rule) {
	add := func(at, to int, from *net.IPNet) *netlink.Rule {
		r := netlink.NewRule()
		r.Family, r.Priority, r.Table, r.Goto, r.Src = family, at, p.first(), to, from
		all = append(all, r)
		return r
	}
	add(gateOut, -1, nil).Type = nl.FR_ACT_NOP
	if family == unix.AF_INET {
		add(gateIn, priority, ipNet(none4))
		add(gateIn, priority, ipNet(netip.PrefixFrom(p.host.Addr(), p.host.Addr().BitLen())))
		add(gateAround, gateOut, nil).IifName = loopback
		return all
	}
	// With IPv6 a rule with a source is not for what has none.
	add(gateIn, priority, ipNet(six))
	for _, half := range halves {
		add(gateAround, gateOut, ipNet(half)).IifName = loopback
	}
	return all
}

// loopback is what everything comes from that begins here.
const loopback = "lo"

// open makes the gate of a family, before the first rule of it.
func (p *place) open(family int) error {
	if p.gates[family] {
		return nil
	}
	for _, r := range p.gate(family) {
		if err := p.net.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("no rule for what begins on this machine can be made: %w", err)
		}
	}
	p.gates[family] = true
	return nil
}

// shut takes the gate of a family away, when nothing is behind it.
func (p *place) shut(family int) error {
	if !p.gates[family] {
		return nil
	}
	delete(p.gates, family)
	var errs []error
	for _, r := range p.gate(family) {
		if err := p.net.RuleDel(r); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("the rule for what begins on this machine cannot be taken away: %w", err))
		}
	}
	return errors.Join(errs...)
}
