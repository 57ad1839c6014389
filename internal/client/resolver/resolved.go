package resolver

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	busName    = "org.freedesktop.resolve1"
	busPath    = "/org/freedesktop/resolve1"
	busManager = "org.freedesktop.resolve1.Manager."
	// patience is how long systemd-resolved may take to answer.
	patience = 5 * time.Second
)

// resolved tells systemd-resolved. What it is told is about a link, and goes with
// it: nothing is left when a process is killed.
type resolved struct {
	opt Options

	mu   sync.Mutex
	conn *dbus.Conn
	told bool
	last []string // domains, of which it was told
	said bool     // that it does not ask for some

	names  []string // that it is to know, and whether it could not be told
	missed bool
}

func (d *resolved) String() string { return "systemd-resolved" }

// connect returns a connection to the system's bus.
func (d *resolved) connect() (*dbus.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil && d.conn.Connected() {
		return d.conn, nil
	}
	life, cancel := context.WithCancel(context.Background())
	late := time.AfterFunc(patience, cancel)
	var err error
	if d.opt.Bus == "" {
		d.conn, err = dbus.ConnectSystemBus(dbus.WithContext(life))
	} else {
		d.conn, err = dbus.Connect(d.opt.Bus, dbus.WithContext(life))
	}
	if err == nil && !late.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		d.conn = nil
		return nil, fmt.Errorf("the system's bus cannot be reached: %w", err)
	}
	return d.conn, nil
}

// runs reports whether there is one on the bus.
func (d *resolved) runs(ctx context.Context) (has bool) {
	conn, err := d.connect()
	if err != nil {
		d.opt.Log.Warn("resolv.conf leads to systemd-resolved, which cannot be asked: look whether D-Bus runs, and knows the user that the tunneler runs as", "path", d.opt.Path, "error", err)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, busName).Store(&has)
	if err != nil || !has {
		_ = conn.Close()
	}
	return err == nil && has
}

// call asks systemd-resolved for something.
func (d *resolved) call(ctx context.Context, method string, args ...any) error {
	conn, err := d.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// It is not to be started for us: then nobody would ask it.
	return explain(conn.Object(busName, busPath).CallWithContext(ctx, busManager+method, dbus.FlagNoAutoStart, args...).Err)
}

// explain says what to do about an error of the bus.
func explain(err error) error {
	const none = "so that names of services are not found"
	var named dbus.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("systemd-resolved does not answer within %s, %s: see systemctl status systemd-resolved", patience, none)
	case !errors.As(err, &named):
		return fmt.Errorf("systemd-resolved cannot be asked, %s: %w", none, err)
	}
	switch named.Name {
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "org.freedesktop.DBus.Error.AuthFailed":
		return fmt.Errorf("systemd-resolved takes nothing from this user, %s: run the tunneler as root, or let polkit allow its user org.freedesktop.resolve1.*: %w", none, err)
	case "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Timeout":
		return fmt.Errorf("systemd-resolved does not answer, %s: see systemctl status systemd-resolved", none)
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner":
		return fmt.Errorf("systemd-resolved no longer runs, %s: start it, or start the tunneler again", none)
	}
	return fmt.Errorf("systemd-resolved refuses what the tunneler tells it, %s: %w", none, err)
}

// Types of the bus: a server, a domain and whether it only leads to a link.
type (
	busServer struct {
		Family  int32
		Address []byte
	}
	busDomain struct {
		Name  string
		Route bool
	}
)

func family(ip netip.Addr) int32 {
	if ip.Is4() {
		return 2 // AF_INET
	}
	return 10 // AF_INET6
}

// tell leads questions for names to our link, and nothing else: what no domain
// is given for is asked elsewhere, and names get nothing appended.
func (d *resolved) tell(ctx context.Context, names []string) error {
	err := d.set(ctx, names)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names, d.missed = names, err != nil
	return err
}

func (d *resolved) set(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return d.revert(ctx)
	}
	link, wanted := int32(d.opt.Link), domains(names)
	if d.knows(names, wanted) {
		return nil
	}
	all := []busDomain{}
	for _, name := range wanted {
		all = append(all, busDomain{name, true})
	}
	for _, step := range []struct {
		method string
		arg    any
	}{
		{"SetLinkDefaultRoute", false}, // first: from then on nothing is asked here that should not be
		{"SetLinkDNSSEC", "no"},        // nobody signs our answers
		{"SetLinkDNSOverTLS", "no"},
		{"SetLinkLLMNR", "no"},
		{"SetLinkMulticastDNS", "no"},
		{"SetLinkDomains", all},
		{"SetLinkDNS", []busServer{{family(d.opt.Server), d.opt.Server.AsSlice()}}},
	} {
		if err := d.call(ctx, step.method, link, step.arg); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = wanted
	return nil
}

// knows reports whether it was told of these domains already, and says which
// names it does not ask for whatever it is told.
func (d *resolved) knows(names, wanted []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(names, func(name string) bool { return !strings.Contains(name, ".") }); i >= 0 && !d.said {
		d.said = true
		d.opt.Log.Warn("systemd-resolved asks no server for names without a dot, unless ResolveUnicastSingleLabel=yes is in resolved.conf", "name", names[i])
	}
	if d.told && slices.Equal(d.last, wanted) {
		return true
	}
	d.told, d.last = true, nil // until all of it is said
	return false
}

func (d *resolved) revert(ctx context.Context) error {
	d.mu.Lock()
	told := d.told
	d.last = nil
	d.mu.Unlock()
	if !told {
		return nil
	}
	if err := d.call(ctx, "RevertLink", int32(d.opt.Link)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = false
	return nil
}

// look tells what could not be told. What a link was told outlives a restart of
// systemd-resolved.
func (d *resolved) look() error {
	d.mu.Lock()
	names, missed := d.names, d.missed
	d.mu.Unlock()
	if !missed {
		return nil
	}
	if err := d.tell(context.Background(), names); err != nil {
		return err
	}
	d.opt.Log.Info("systemd-resolved answers again, and knows which names are of services")
	return nil
}

// Properties of the bus, each with the number of its link, 0 if it is of none.
type (
	linkServer struct {
		Link    int32
		Family  int32
		Address []byte
	}
	linkDomain struct {
		Link  int32
		Name  string
		Route bool
	}
)

// servers are those of the links whose domain is the longest that a name is in,
// or else those for all names, as systemd-resolved itself would choose.
func (d *resolved) servers(name string) []netip.AddrPort {
	var servers []linkServer
	var domains []linkDomain
	if d.property("DNS", &servers) != nil || d.property("Domains", &domains) != nil {
		return nil
	}
	return choose(name, servers, domains, int32(d.opt.Link), d.opt.Server)
}

func (d *resolved) property(name string, into any) error {
	conn, err := d.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var value dbus.Variant
	err = conn.Object(busName, busPath).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", dbus.FlagNoAutoStart,
		"org.freedesktop.resolve1.Manager", name).Store(&value)
	if err != nil {
		return err
	}
	return value.Store(into)
}

// choose is servers for what the bus says.
func choose(name string, servers []linkServer, domains []linkDomain, own int32, ours netip.Addr) (all []netip.AddrPort) {
	best, links, narrow := -1, []int32{}, map[int32]bool{}
	for _, d := range domains {
		if d.Link == own {
			continue
		}
		if d.Route && d.Name != "." {
			narrow[d.Link] = true
		}
		match := below(name, d.Name)
		if match < 0 {
			continue
		}
		if match > best {
			best, links = match, nil
		}
		if match == best {
			links = append(links, d.Link)
		}
	}
	for _, s := range servers {
		ip, ok := netip.AddrFromSlice(s.Address)
		wanted := slices.Contains(links, s.Link) || best < 0 && !narrow[s.Link]
		if !ok || !wanted || s.Link == own || ip == ours {
			continue
		}
		if ip.Is6() && ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(strconv.Itoa(int(s.Link)))
		}
		if at := netip.AddrPortFrom(ip.Unmap(), dnsPort); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// close has systemd-resolved forget what it was told. If the link is gone, it has.
func (d *resolved) close() error {
	err := d.revert(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close()
		d.conn = nil
	}
	var named dbus.Error
	if errors.As(err, &named) && named.Name == "org.freedesktop.resolve1.NoSuchLink" {
		return nil
	}
	return err
}
