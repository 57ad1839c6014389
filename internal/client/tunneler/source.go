package tunneler

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"netkeep.internal/internal/client/intercept"
)

// firstOpen is the first port that programs of anybody may have: servers take
// what comes from one below for a program of the machine itself.
const firstOpen = 1024

// source returns the address that a dialer wants to be seen under, if the
// configuration allows that. The port is 0 if any will do, and the address is
// none if the dialer says nothing.
func (e *endpoint) source(w wish) (netip.AddrPort, error) {
	if w.Source == "" {
		return netip.AddrPort{}, nil
	}
	from, err := netip.ParseAddrPort(w.Source)
	if err != nil {
		ip, err := netip.ParseAddr(w.Source)
		if err != nil {
			return from, fmt.Errorf("source_addr %q is no address", w.Source)
		}
		from = netip.AddrPortFrom(ip, 0)
	}
	from = netip.AddrPortFrom(from.Addr().Unmap().WithZone(""), from.Port())
	if 0 < from.Port() && from.Port() < firstOpen {
		return from, fmt.Errorf("source_addr %q has a port below %d, which stands for the machine itself", w.Source, firstOpen)
	}
	for _, entry := range e.AllowedSources {
		if holds(entry, from.Addr()) {
			return from, nil
		}
	}
	return from, fmt.Errorf("source_addr %q is not in allowedSourceAddresses", w.Source)
}

// isBlock reports whether an entry of allowedSourceAddresses is an address or a
// block of them.
func isBlock(entry string) bool {
	_, one := netip.ParseAddr(entry)
	_, block := netip.ParsePrefix(entry)
	return one == nil || block == nil
}

// dialer connects from where the dialer wants to be seen.
func (t target) dialer(by net.Dialer) *net.Dialer {
	switch {
	case !t.source.IsValid():
	case t.protocol == "udp":
		by.LocalAddr = net.UDPAddrFromAddrPort(t.source)
	default:
		by.LocalAddr = net.TCPAddrFromAddrPort(t.source)
	}
	return &by
}

// unusable says why a server was not connected to from an address, if it is for
// that; empty if it is not.
func (t target) unusable(err error) string {
	switch {
	case !t.source.IsValid():
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("the host cannot use source_addr %s: its machine has no such address; add it there, or take it out of allowedSourceAddresses", t.source.Addr())
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("the host cannot use source_addr %s: the port is in use there; leave it out of sourceIp", t.source)
	}
	return ""
}

// dialling is what a configuration of type intercept.v1 says of dials.
type dialling struct {
	SourceIP    string `json:"sourceIp"`
	DialOptions struct {
		Identity              string `json:"identity"`
		ConnectTimeoutSeconds int    `json:"connectTimeoutSeconds"`
	} `json:"dialOptions"`
}

// fill puts values in the place of the words that stand for them.
func fill(field, template string, values map[string]string) (string, error) {
	if !strings.Contains(template, "$") {
		return template, nil
	}
	var pairs []string
	for word, value := range values {
		pairs = append(pairs, "$"+word, value)
	}
	text := strings.NewReplacer(pairs...).Replace(template)
	if _, rest, left := strings.Cut(text, "$"); left {
		return "", fmt.Errorf("%s of its configuration of type %s has $%s, which stands for nothing here", field, intercept.Type, rest)
	}
	return text, nil
}
