package tun

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
)

const (
	deviceFile = "/dev/net/tun"
	maxName    = unix.IFNAMSIZ - 1
	// mark is the bit that sockets have which are not to see our routes. Others
	// use bits too: this is one that none of the usual ones has.
	mark = 0x2000
	// firstTable is where our tables of routes begin: in the bits below are the
	// number of the device and which of its tables it is, so that what a killed
	// process has left is known by its device being gone.
	firstTable = 0x6e000000
	tableBits  = 8
	indexBits  = 16
	// priority is before the machine's own table, at 32766, and those of other
	// networks that take everything.
	priority = 5290
	// fastMTU is as long as packets get: nothing of them ever leaves the machine,
	// and each costs the same whatever its length.
	fastMTU = longestMTU
)

// six is the machine's own address for those that have IPv6 addresses: programs
// must come from somewhere.
var six = netip.MustParsePrefix("fd6e:6b65:6570::1/128")

// place is where a device is in the machine's network.
type place struct {
	name  string
	index int
	host  netip.Prefix // the machine's own address there
	net   *netlink.Handle
	fell  atomic.Bool   // it was set down
	gone  chan struct{} // closed when nobody watches it any more

	mu     sync.Mutex
	over   bool
	no6    bool         // the machine has no IPv6
	gates  map[int]bool // that are made, by family
	tables map[ports]*table
}

// ports is what a rule looks at.
type ports struct {
	protocol  string
	low, high uint16
}

// table is the blocks of addresses that some ports lead to the device of.
type table struct {
	id     int
	blocks map[netip.Prefix]bool
	rules  map[int]bool // by family
}

// make makes the device and gives it its addresses.
func (p *place) make(opt Options, host netip.Addr) (wire, error) {
	if n := opt.Name; n == "" || len(n) > maxName || n == "." || n == ".." || strings.ContainsAny(n, "/:% \t\n") {
		return nil, fmt.Errorf("%q cannot be the name of a device: choose one with at most %d characters, such as %s", n, maxName, DefaultName)
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("the machine's network cannot be looked at: %w", err)
	}
	p.net, p.tables, p.gates = handle, map[ports]*table{}, map[int]bool{}
	if err := p.free(opt); err != nil {
		handle.Close()
		return nil, err
	}
	file, err := create(opt.Name)
	if err != nil {
		handle.Close()
		return nil, err
	}
	device, name, err := tun.CreateUnmonitoredTUNFromFD(file)
	if err != nil {
		handle.Close()
		_ = unix.Close(file)
		return nil, fmt.Errorf("the device %s cannot be used: %w", opt.Name, err)
	}
	p.name = name
	w, err := newNative(device)
	if err == nil {
		err = p.set(opt, host)
	}
	if err != nil {
		handle.Close()
		_ = device.Close()
		return nil, fmt.Errorf("the device %s cannot be set up: %w", name, err)
	}
	return w, nil
}

// create asks the kernel for a device that goes when its file is closed.
func create(name string) (int, error) {
	file, err := unix.Open(deviceFile, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV):
		return 0, fmt.Errorf("there is no %s on this machine: load the kernel's module with modprobe tun, or give the container the device", deviceFile)
	case errors.Is(err, fs.ErrPermission):
		return 0, fmt.Errorf("this user may not open %s: have it be of mode 0666, as udev makes it, and let the service or container have it, or run it as root", deviceFile)
	case err != nil:
		return 0, fmt.Errorf("%s cannot be opened: %w", deviceFile, err)
	}
	ask, err := unix.NewIfreq(name)
	if err == nil {
		ask.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_TUN_EXCL)
		err = unix.IoctlIfreq(file, unix.TUNSETIFF, ask)
	}
	if err == nil {
		return file, nil
	}
	_ = unix.Close(file)
	switch {
	case errors.Is(err, unix.EPERM):
		return 0, errNoRights
	case errors.Is(err, unix.EBUSY):
		return 0, taken(name)
	}
	return 0, fmt.Errorf("the device %s cannot be made: %w", name, err)
}

var errNoRights = errors.New("this user may make no network device: run it as root, or with CAP_NET_ADMIN, as the unit has it that netkeep tunnel install writes")

// free refuses a name and a range that the machine uses for something else.
func (p *place) free(opt Options) error {
	if _, err := p.net.LinkByName(opt.Name); err == nil {
		return taken(opt.Name)
	}
	r := opt.Range
	routes, err := p.net.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("the machine's routes cannot be looked at: %w", err)
	}
	for _, route := range routes {
		to := prefix(route.Dst)
		ours := route.Table>>(tableBits+indexBits) == firstTable>>(tableBits+indexBits) // of another process, and some ports alone
		if ours || !to.IsValid() || to.Bits() == 0 || !to.Overlaps(r) {
			continue
		}
		through := "this machine"
		if link, err := p.net.LinkByIndex(route.LinkIndex); err == nil {
			through = link.Attrs().Name
		}
		return inUse(r, to, through)
	}
	return nil
}

func prefix(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	ip, ok := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	if !ok {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(ip.Unmap(), ones)
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// set gives the device what it needs, and brings it up.
func (p *place) set(opt Options, host netip.Addr) error {
	link, err := p.net.LinkByName(p.name)
	if err != nil {
		return err
	}
	p.index, p.host = link.Attrs().Index, netip.PrefixFrom(host, opt.Range.Bits())
	p.sweep()
	if err := p.net.LinkSetMTU(link, opt.MTU); err != nil {
		return err
	}
	if err := p.raise(link); err != nil {
		return err
	}
	p.gone = make(chan struct{})
	p.watch(p.gone)
	return nil
}

// raise brings the device up, with its addresses.
func (p *place) raise(link netlink.Link) error {
	if err := p.net.AddrReplace(link, &netlink.Addr{IPNet: ipNet(p.host)}); err != nil {
		return err
	}
	// Nobody lives on the link whom the machine would have to look for.
	_ = p.net.LinkSetIP6AddrGenMode(link, nl.IN6_ADDR_GEN_MODE_NONE)
	p.no6 = p.net.AddrReplace(link, &netlink.Addr{IPNet: ipNet(six), Flags: unix.IFA_F_NODAD}) != nil
	return p.net.LinkSetUp(link)
}

// sweep takes away rules that lead to devices which are gone, or to ours
// already: a process that was killed has left them.
func (p *place) sweep() {
	rules, err := p.net.RuleList(netlink.FAMILY_ALL)
	if err != nil {
		return // they lead nowhere
	}
	for _, r := range rules {
		index := r.Table >> tableBits & (1<<indexBits - 1)
		if r.Table>>(tableBits+indexBits) != firstTable>>(tableBits+indexBits) || r.Priority < gateIn || r.Priority > gateOut {
			continue
		}
		if link, err := p.net.LinkByIndex(index); err == nil && link.Type() == "tuntap" && index != p.index {
			continue // somebody else's, who is there
		}
		_ = p.net.RuleDel(&r)
	}
}

// route implements Device.Route.
func (p *place) route(want []Route) error {
	wanted := sorted(want)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return os.ErrClosed
	}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for key, t := range p.tables {
		if wanted[key] == nil {
			note(p.unrule(key, t, unix.AF_INET))
			note(p.unrule(key, t, unix.AF_INET6))
		}
		for block := range t.blocks {
			if !wanted[key][block] {
				note(p.put(t, block, false))
			}
		}
		if wanted[key] == nil {
			delete(p.tables, key)
		}
	}
	for key, blocks := range wanted {
		t := p.tables[key]
		if t == nil {
			t = &table{id: p.number(), blocks: map[netip.Prefix]bool{}, rules: map[int]bool{}}
			p.tables[key] = t
		}
		for block := range blocks {
			if p.no6 && block.Addr().Is6() {
				note(fmt.Errorf("%s: this machine has no IPv6", block))
				continue
			}
			if !t.blocks[block] {
				note(p.put(t, block, true))
			}
			note(p.rule(key, t, family(block)))
		}
	}
	return errors.Join(errs...)
}

// sorted is the blocks of each range of ports.
func sorted(want []Route) map[ports]map[netip.Prefix]bool {
	wanted := map[ports]map[netip.Prefix]bool{}
	for _, r := range want {
		key := ports{r.Protocol, r.Low, r.High}
		if wanted[key] == nil && len(wanted) >= MaxPorts {
			key = ports{r.Protocol, 1, 65535} // better too much than nothing
		}
		if wanted[key] == nil {
			wanted[key] = map[netip.Prefix]bool{}
		}
		wanted[key][r.Block.Masked()] = true
	}
	return wanted
}

// number is one of a table that is not in use.
func (p *place) number() int {
	used := map[int]bool{}
	for _, t := range p.tables {
		used[t.id] = true
	}
	id := p.first()
	for used[id] {
		id++
	}
	return id
}

// first is the number that those of our tables begin with.
func (p *place) first() int { return firstTable | (p.index&(1<<indexBits-1))<<tableBits }

func family(block netip.Prefix) int {
	if block.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// put adds a block to a table, or takes it out.
func (p *place) put(t *table, block netip.Prefix, in bool) error {
	route := &netlink.Route{LinkIndex: p.index, Table: t.id, Dst: ipNet(block), Scope: netlink.SCOPE_LINK}
	if !in {
		delete(t.blocks, block)
		if err := p.net.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("the route to %s cannot be taken away: %w", block, err)
		}
		return nil
	}
	if err := p.net.RouteReplace(route); err != nil {
		return fmt.Errorf("no route to %s can be made: %w", block, err)
	}
	t.blocks[block] = true
	return nil
}

// ruleOf is what sends ports to a table: those of everybody but who has the
// mark.
func (p *place) ruleOf(key ports, t *table, family int) *netlink.Rule {
	r := netlink.NewRule()
	bit := uint32(mark)
	r.Family, r.Priority, r.Table, r.Mask = family, priority, t.id, &bit
	if r.IPProto = unix.IPPROTO_TCP; key.protocol == "udp" {
		r.IPProto = unix.IPPROTO_UDP
	}
	if key.low > 1 || key.high < 65535 {
		r.Dport = netlink.NewRulePortRange(key.low, key.high)
	}
	return r
}

func (p *place) rule(key ports, t *table, family int) error {
	if t.rules[family] {
		return nil
	}
	if err := p.open(family); err != nil {
		return err
	}
	if err := p.net.RuleAdd(p.ruleOf(key, t, family)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("no rule for %s at ports %d to %d can be made: %w", key.protocol, key.low, key.high, err)
	}
	t.rules[family] = true
	return nil
}

func (p *place) unrule(key ports, t *table, family int) error {
	if !t.rules[family] {
		return nil
	}
	delete(t.rules, family)
	if err := p.net.RuleDel(p.ruleOf(key, t, family)); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("the rule for %s at ports %d to %d cannot be taken away: %w", key.protocol, key.low, key.high, err)
	}
	return nil
}

// leave takes away what would outlast the device: its routes go with it.
func (p *place) leave() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	close(p.gone)
	var errs []error
	for key, t := range p.tables {
		errs = append(errs, p.unrule(key, t, unix.AF_INET), p.unrule(key, t, unix.AF_INET6))
	}
	errs = append(errs, p.shut(unix.AF_INET), p.shut(unix.AF_INET6))
	p.net.Close()
	return errors.Join(errs...)
}

// Unseen is the Control of dialers whose connections go where they would without
// any device of ours: what carries intercepted traffic must not be intercepted.
func Unseen(_, _ string, c syscall.RawConn) error {
	var failed error
	err := c.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, mark)
	})
	return errors.Join(err, failed)
}
