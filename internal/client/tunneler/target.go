package tunneler

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// wish is what a dialer says it wants to be connected to, in its data.
type wish struct {
	Protocol string `json:"dst_protocol"`
	Hostname string `json:"dst_hostname"`
	IP       string `json:"dst_ip"`
	Port     string `json:"dst_port"`
	Source   string `json:"source_addr"`
	Kind     string `json:"connType"`
}

// maxWish is more than a dialer has to say.
const maxWish = 16 << 10

// readWish understands a dialer's data. Who says nothing wishes for nothing;
// what is no object is for somebody else.
func readWish(data []byte) (w wish) {
	if len(data) > 0 && len(data) <= maxWish {
		_ = json.Unmarshal(data, &w)
	}
	return w
}

// target is where a connection leads to.
type target struct {
	protocol string // tcp or udp
	address  string // host and port
	source   netip.AddrPort
}

// target returns where a dialer is connected to, if that is allowed. Every part
// is the configuration's, or one that the configuration lists.
func (e *endpoint) target(w wish) (target, error) {
	if w.Kind != "" {
		return target{}, fmt.Errorf("connections of type %q are not offered", w.Kind)
	}
	protocol, err := e.protocol(w)
	if err != nil {
		return target{}, err
	}
	host, err := e.host(w)
	if err != nil {
		return target{}, err
	}
	port, err := e.port(w)
	if err != nil {
		return target{}, err
	}
	source, err := e.source(w)
	if err != nil {
		return target{}, err
	}
	return target{protocol, net.JoinHostPort(host, strconv.Itoa(port)), source}, nil
}

func (e *endpoint) protocol(w wish) (string, error) {
	if !e.ForwardProtocol {
		return e.Protocol, known(e.Protocol)
	}
	if !slices.Contains(e.AllowedProtocols, w.Protocol) {
		return "", fmt.Errorf("the protocol %q is not among allowedProtocols", w.Protocol)
	}
	return w.Protocol, known(w.Protocol)
}

// known refuses protocols that are not of sockets, such as files.
func known(protocol string) error {
	if protocol != "tcp" && protocol != "udp" {
		return fmt.Errorf("the protocol %q is neither tcp nor udp", protocol)
	}
	return nil
}

func (e *endpoint) port(w wish) (int, error) {
	if !e.ForwardPort {
		return e.Port, nil
	}
	port, err := strconv.ParseUint(w.Port, 10, 16)
	if err != nil || port == 0 {
		return 0, fmt.Errorf("%q is no port", w.Port)
	}
	for _, r := range e.AllowedPortRanges {
		if r.Low <= int(port) && int(port) <= r.High {
			return int(port), nil
		}
	}
	return 0, fmt.Errorf("the port %d is not in allowedPortRanges", port)
}

// host returns the name or address that is dialled. A name is compared as a
// name, and an address as an address: a name that is written as an address is
// one.
func (e *endpoint) host(w wish) (string, error) {
	if !e.ForwardAddress {
		return e.Address, nil
	}
	wanted := w.Hostname
	if wanted == "" {
		wanted = w.IP
	}
	if wanted == "" {
		return "", errors.New("the dialer does not say which address it wants")
	}
	if ip, err := netip.ParseAddr(wanted); err == nil {
		ip = ip.Unmap().WithZone("")
		for _, entry := range e.AllowedAddresses {
			if holds(entry, ip) {
				return ip.String(), nil
			}
		}
	} else if isName(wanted) {
		for _, entry := range e.AllowedAddresses {
			if called(entry, wanted) {
				return wanted, nil
			}
		}
	}
	return "", fmt.Errorf("the address %q is not in allowedAddresses", wanted)
}

// isName reports whether a text is the name of a host, and nothing that means
// more to who resolves it.
func isName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return r <= ' ' || strings.ContainsRune(`:/\[]%@?#*,;"'`, r)
		}) {
			return false
		}
	}
	// The last label of a name is no number: resolvers take 127.1, 0x7f.1 and
	// the like for addresses.
	last := s[strings.LastIndexByte(strings.TrimSuffix(s, "."), '.')+1:]
	return !strings.ContainsAny(last[:1], "0123456789")
}

// holds reports whether an entry of allowedAddresses is an address, or a block
// with it in it.
func holds(entry string, ip netip.Addr) bool {
	if block, err := netip.ParsePrefix(entry); err == nil {
		if block.Addr().Is4In6() && block.Bits() >= 96 {
			block = netip.PrefixFrom(block.Addr().Unmap(), block.Bits()-96)
		}
		return block.Contains(ip)
	}
	one, err := netip.ParseAddr(entry)
	return err == nil && one.Unmap().WithZone("") == ip
}

// called reports whether an entry of allowedAddresses is a name, or a domain
// with it below: *.example.com also stands for example.com, as other tunnelers
// have it.
func called(entry, name string) bool {
	entry, name = plainName(entry), plainName(name)
	if domain, ok := strings.CutPrefix(entry, "*."); ok {
		return name == domain || strings.HasSuffix(name, "."+domain)
	}
	return entry == name
}

func plainName(s string) string { return strings.ToLower(strings.TrimSuffix(s, ".")) }

// instance is the name that a host has alone in its service. It may say that it
// is the identity's.
func instance(template, identity string) string {
	return strings.ReplaceAll(template, "$tunneler_id.name", identity)
}
