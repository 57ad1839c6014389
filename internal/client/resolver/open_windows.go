package resolver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.zx2c4.com/wireguard/windows/tunnel/winipcfg"
)

const (
	// Where the system keeps which server is asked for which names: its own rules,
	// and those of a group policy, beside which it forgets its own.
	ownRules    = `SYSTEM\CurrentControlSet\Services\Dnscache\Parameters\DnsPolicyConfig`
	policyRules = `SOFTWARE\Policies\Microsoft\Windows NT\DNSClient\DnsPolicyConfig`
	// ruleName has the number of the device and that of the rule, so that what a
	// killed process has left is known by its device being gone.
	ruleName = "{%08x-6e6b-6565-7000-%012x}"
	// maxNames is how many names one rule may have.
	maxNames = 50
	// generic says that the rule names servers.
	generic = 8
)

// rules tells the resolver by its table of policies for names.
type rules struct {
	opt Options

	mu   sync.Mutex
	told []string
	in   int // rules that are there
}

// open removes what a process that was killed has left.
func open(_ context.Context, opt Options) (way, error) {
	r := &rules{opt: opt}
	return r, r.sweep()
}

func (r *rules) String() string { return "name resolution policy table" }

func unset(err error) error {
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		return errors.New("this user may not tell the resolver of names of services: start the tunneler as administrator")
	}
	return fmt.Errorf("the resolver cannot be told of names of services: %w", err)
}

// sweep removes rules of devices that are gone, or of ours already.
func (r *rules) sweep() error {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, ownRules, registry.READ)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unset(err)
	}
	defer key.Close()
	all, err := key.ReadSubKeyNames(-1)
	if err != nil {
		return unset(err)
	}
	for _, name := range all {
		var index, n int
		if _, err := fmt.Sscanf(strings.ToLower(name), ruleName, &index, &n); err != nil {
			continue
		}
		if _, err := net.InterfaceByIndex(index); err == nil && index != r.opt.Link {
			continue // somebody else's, who is there
		}
		if err := r.drop(name); err != nil {
			return err
		}
	}
	return nil
}

func (r *rules) drop(name string) error {
	err := registry.DeleteKey(registry.LOCAL_MACHINE, ownRules+`\`+name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unset(err)
	}
	return nil
}

func (r *rules) name(n int) string { return fmt.Sprintf(ruleName, r.opt.Link, n) }

// tell has rules for the domains of the names, and no others.
func (r *rules) tell(_ context.Context, names []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := domains(names)
	if slices.Equal(all, r.told) {
		return nil
	}
	if len(all) > 0 && foreign() {
		return errors.New("a group policy says which server is asked for which names, and no other rules count: let it name the tunneler's server for the names of services")
	}
	n := 0
	for part := range slices.Chunk(all, maxNames/2) {
		if err := r.put(r.name(n), part); err != nil {
			return err
		}
		n++
		r.in = max(r.in, n)
	}
	for ; r.in > n; r.in-- {
		if err := r.drop(r.name(r.in - 1)); err != nil {
			return err
		}
	}
	r.told = all
	forget()
	return nil
}

// foreign reports whether a group policy has rules.
func foreign() bool {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, policyRules, registry.READ)
	if err != nil {
		return false
	}
	defer key.Close()
	all, err := key.ReadSubKeyNames(1)
	return err == nil && len(all) > 0
}

// put writes one rule: a domain by itself is that name, and with a dot before it
// all below.
func (r *rules) put(name string, domains []string) error {
	key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, ownRules+`\`+name, registry.SET_VALUE)
	if err != nil {
		return unset(err)
	}
	defer key.Close()
	var spaces []string
	for _, d := range domains {
		if d != "." {
			spaces = append(spaces, d)
			d = "." + d
		}
		spaces = append(spaces, d)
	}
	err = errors.Join(
		key.SetStringValue("Comment", "Written by netkeep's tunneler, which removes it when it ends."),
		key.SetDWordValue("Version", 1),
		key.SetStringsValue("Name", spaces),
		key.SetStringValue("GenericDNSServers", r.opt.Server.String()),
		key.SetDWordValue("ConfigOptions", generic),
	)
	if err != nil {
		return unset(err)
	}
	return nil
}

// forget has the resolver forget what it was told by others before.
func forget() {
	if flush := windows.NewLazySystemDLL("dnsapi.dll").NewProc("DnsFlushResolverCache"); flush.Find() == nil {
		_, _, _ = flush.Call()
	}
}

// look does nothing: nobody else writes these rules.
func (r *rules) look() error { return nil }

// servers are those of all other devices that are up.
func (r *rules) servers(string) (all []netip.AddrPort) {
	links, err := winipcfg.GetAdaptersAddresses(windows.AF_UNSPEC, winipcfg.GAAFlagDefault)
	if err != nil {
		return nil
	}
	for _, link := range links {
		if link.OperStatus != winipcfg.IfOperStatusUp || int(link.IfIndex) == r.opt.Link {
			continue
		}
		for dns := link.FirstDNSServerAddress; dns != nil; dns = dns.Next {
			ip, ok := netip.AddrFromSlice(dns.Address.IP())
			if ip = ip.Unmap(); ok && ip != r.opt.Server && !siteLocal.Contains(ip) {
				all = append(all, netip.AddrPortFrom(ip, dnsPort))
			}
		}
	}
	return all
}

// siteLocal is what the system names where there is no server.
var siteLocal = netip.MustParsePrefix("fec0::/10")

func (r *rules) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for ; r.in > 0; r.in-- {
		errs = append(errs, r.drop(r.name(r.in-1)))
	}
	r.told = nil
	forget()
	return errors.Join(errs...)
}
