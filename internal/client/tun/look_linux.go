package tun

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// look puts back what somebody else has taken away, and says what that was: a
// network manager that starts again removes rules which it does not know, and who
// sets a device down takes its routes along.
func (p *place) look() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	link, err := p.net.LinkByIndex(p.index)
	if err != nil {
		return nil // it is gone, which Done tells
	}
	var said []error
	if fell := p.fell.Swap(false); fell || link.Attrs().RawFlags&unix.IFF_UP == 0 {
		said = append(said, fmt.Errorf("somebody had set the device %s down: it is up again", p.name))
		if err := errors.Join(p.raise(link), p.refill()); err != nil {
			p.fell.Store(true) // once more, later
			return fmt.Errorf("somebody has set the device %s down, and it cannot be set up again: %w", p.name, err)
		}
	}
	n, err := p.mend()
	if n > 0 {
		said = append(said, fmt.Errorf("somebody had removed %d rules that lead to the device %s: they are there again; if it is systemd-networkd, set ManageForeignRoutingPolicyRules=no in networkd.conf", n, p.name))
	}
	return errors.Join(append(said, err)...)
}

// refill puts all routes into their tables again.
func (p *place) refill() error {
	var errs []error
	for _, t := range p.tables {
		for block := range t.blocks {
			errs = append(errs, p.put(t, block, true))
		}
	}
	return errors.Join(errs...)
}

// line is what our rules differ in.
type line struct {
	family, at, table int
	from              netip.Prefix
}

func lineOf(r *netlink.Rule) line { return line{r.Family, r.Priority, r.Table, prefix(r.Src)} }

// mend makes rules that are not there, and says how many those were.
func (p *place) mend() (n int, err error) {
	there := map[line]bool{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := p.net.RuleList(family)
		if err != nil && p.gates[family] {
			return 0, nil // nobody knows: it is looked at again
		}
		for i := range rules {
			there[lineOf(&rules[i])] = true
		}
	}
	var errs []error
	add := func(r *netlink.Rule) {
		if there[lineOf(r)] {
			return
		}
		n++
		if err := p.net.RuleAdd(r); err != nil && !errors.Is(err, unix.EEXIST) {
			errs = append(errs, fmt.Errorf("a rule that leads to the device %s was removed, and cannot be made: %w", p.name, err))
		}
	}
	for family := range p.gates {
		for _, r := range p.gate(family) {
			add(r)
		}
	}
	for key, t := range p.tables {
		for family := range t.rules {
			add(p.ruleOf(key, t, family))
		}
	}
	return n, errors.Join(errs...)
}

// watch hears when the device is set down, until it is gone. That it was up again
// when somebody looks does not bring its routes back.
func (p *place) watch(gone chan struct{}) {
	news := make(chan netlink.LinkUpdate, 16)
	if err := netlink.LinkSubscribe(news, gone); err != nil {
		return // whether it is down is looked at too
	}
	go func() {
		for u := range news {
			if int(u.Index) == p.index && u.Header.Type == unix.RTM_NEWLINK && u.Attrs().RawFlags&unix.IFF_UP == 0 {
				p.fell.Store(true)
			}
		}
	}()
}
