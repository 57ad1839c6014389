package tun

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"runtime"
	"strings"

	"golang.org/x/sys/windows"
	"golang.zx2c4.com/wireguard/tun"
	"golang.zx2c4.com/wireguard/windows/tunnel/winipcfg"
)

const (
	// fastMTU is as long as packets get: nothing of them ever leaves the machine.
	fastMTU = longestMTU
	maxName = 127
	library = "wintun.dll"
)

// place is where a device is in the machine's network.
type place struct {
	name   string
	index  int
	luid   winipcfg.LUID
	no6    bool // the machine has no IPv6
	blocks blocks
}

// make makes the device and gives it its addresses.
func (p *place) make(opt Options, host netip.Addr) (wire, error) {
	if n := opt.Name; n == "" || len(n) > maxName || strings.ContainsAny(n, "\\/:*?\"<>|\t\n") {
		return nil, fmt.Errorf("%q cannot be the name of a device: choose one with at most %d characters, such as %s", n, maxName, DefaultName)
	}
	if err := ready(); err != nil {
		return nil, err
	}
	if _, err := net.InterfaceByName(opt.Name); err == nil {
		return nil, taken(opt.Name)
	}
	if err := free(opt.Range); err != nil {
		return nil, err
	}
	tun.WintunTunnelType = "netkeep"
	device, err := tun.CreateTUNWithRequestedGUID(opt.Name, number(opt.Name), opt.MTU)
	if err != nil {
		return nil, fmt.Errorf("the device %s cannot be made: %w", opt.Name, err)
	}
	w := newPackets(device)
	native, ok := device.(*tun.NativeTun)
	if !ok {
		_ = w.Close()
		return nil, errors.New("the device is none of wintun")
	}
	p.name, p.luid, p.blocks.led = opt.Name, winipcfg.LUID(native.LUID()), map[netip.Prefix]bool{}
	if err := p.set(opt, host); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("the device %s cannot be set up: %w", p.name, err)
	}
	here.enter(p)
	return w, nil
}

// ready says what is missing for a device.
func ready() error {
	if !windows.GetCurrentProcessToken().IsElevated() {
		return errors.New("this user may make no network device: start it in a terminal that was opened with \"Run as administrator\"")
	}
	const usual = windows.LOAD_LIBRARY_SEARCH_APPLICATION_DIR | windows.LOAD_LIBRARY_SEARCH_SYSTEM32
	handle, err := windows.LoadLibraryEx(library, 0, usual)
	switch {
	case errors.Is(err, windows.ERROR_MOD_NOT_FOUND):
		return fmt.Errorf("%s is missing, which makes network devices: take the one for %s from https://www.wintun.net and put it into the folder of netkeep.exe", library, runtime.GOARCH)
	case errors.Is(err, windows.ERROR_BAD_EXE_FORMAT):
		return fmt.Errorf("%s is for another processor: take the one for %s from https://www.wintun.net and put it into the folder of netkeep.exe", library, runtime.GOARCH)
	case err != nil:
		return fmt.Errorf("%s cannot be used: %w; take the one for %s from https://www.wintun.net and put it into the folder of netkeep.exe", library, err, runtime.GOARCH)
	}
	_ = windows.FreeLibrary(handle)
	return nil
}

// number is that of a device, the same for the same name: the system remembers
// networks by it, and would ask about a new one at each start.
func number(name string) *windows.GUID {
	sum := sha256.Sum256([]byte("netkeep device " + name))
	id := &windows.GUID{Data1: binary.BigEndian.Uint32(sum[:]), Data2: binary.BigEndian.Uint16(sum[4:]), Data3: binary.BigEndian.Uint16(sum[6:])}
	copy(id.Data4[:], sum[8:])
	return id
}

// set gives the device what it needs.
func (p *place) set(opt Options, host netip.Addr) error {
	row, err := p.luid.Interface()
	if err != nil {
		return err
	}
	p.index = int(row.InterfaceIndex)
	if err := p.family(windows.AF_INET, netip.PrefixFrom(host, opt.Range.Bits()), opt.MTU); err != nil {
		return err
	}
	p.no6 = p.family(windows.AF_INET6, six, opt.MTU) != nil
	return nil
}

// family gives the device an address. Where a route of the machine leads to the
// same block, that of the device is taken.
func (p *place) family(family winipcfg.AddressFamily, own netip.Prefix, mtu int) error {
	if err := p.luid.SetIPAddressesForFamily(family, []netip.Prefix{own}); err != nil {
		return err
	}
	row, err := p.luid.IPInterface(family)
	if err != nil {
		return err
	}
	row.RouterDiscoveryBehavior = winipcfg.RouterDiscoveryDisabled
	row.DadTransmits = 0 // nobody else lives on it
	row.ManagedAddressConfigurationSupported, row.OtherStatefulConfigurationSupported = false, false
	row.NLMTU = uint32(mtu)
	row.UseAutomaticMetric, row.Metric = false, 0
	return row.Set()
}

// route implements Device.Route.
func (p *place) route(want []Route) error { return p.blocks.route(want, p.put) }

// put has a block lead to the device, or not any more.
func (p *place) put(block netip.Prefix, in bool) error {
	next := netip.IPv4Unspecified()
	if block.Addr().Is6() {
		next = netip.IPv6Unspecified()
	}
	switch {
	case p.no6 && block.Addr().Is6() && in:
		return errors.New("this machine has no IPv6")
	case in:
		if err := p.luid.AddRoute(block, next, 0); !errors.Is(err, windows.ERROR_OBJECT_ALREADY_EXISTS) {
			return err
		}
	default:
		if err := p.luid.DeleteRoute(block, next); !errors.Is(err, windows.ERROR_NOT_FOUND) {
			return err
		}
	}
	return nil
}

// ways are the machine's routes.
func ways() (all []way, err error) {
	costs := map[winipcfg.LUID]uint32{}
	links, err := winipcfg.GetIPInterfaceTable(windows.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	for i := range links {
		costs[links[i].InterfaceLUID] = links[i].Metric
	}
	routes, err := winipcfg.GetIPForwardTable2(windows.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	for i := range routes {
		r := &routes[i]
		to := r.DestinationPrefix.Prefix()
		all = append(all, way{to: netip.PrefixFrom(to.Addr().WithZone(""), to.Bits()), index: int(r.InterfaceIndex), cost: r.Metric + costs[r.InterfaceLUID]})
	}
	return all, nil
}

// through has a socket use a device, whatever routes say.
func through(fd uintptr, four bool, index int) error {
	const unicastIF = 31 // of both families
	if four {            // in the network's order
		return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IP, unicastIF, int(int32(bits.ReverseBytes32(uint32(index)))))
	}
	return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_IPV6, unicastIF, index)
}
