package model

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/pki"
)

// ControllerName is a name or address under which a controller of this network
// is reached, or was. Whoever has a certificate of our CA for it can pass as
// the controller, so no router gets one unless an admin says so. A controller
// that is gone leaves its names behind: clients may still look for it there.
type ControllerName struct {
	kind.Meta

	Name string `json:"name" kind:"server,unique" doc:"Name or address, in the form that HostName gives it."`
}

// ControllerNames is the kind.
var ControllerNames = kind.Define(kind.Spec[ControllerName]{
	Name: "controller-name",
	Path: "controller-names",
	Doc:  "The names and addresses of controllers, which routers cannot have.",
})

// HostName returns the one form of a name or address in which two that lead to
// the same place are the same text.
func HostName(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(host)
}

// ReserveName keeps a name or address of a controller from routers, and
// reports whether it was not yet. A loopback one leads everybody to a machine
// of their own, where controller and router may well be the same.
func ReserveName(w kind.Writer, host string) (fresh bool, err error) {
	host = HostName(host)
	if ip := net.ParseIP(host); host == "localhost" || ip.IsLoopback() || ip.IsUnspecified() {
		return false, nil
	}
	if _, there := ControllerNames.Find(w, "name", host); there {
		return false, nil
	}
	return true, ControllerNames.Create(w, &ControllerName{Name: host})
}

// hostNames returns a list of names in one form and order.
func hostNames(list []string) []string {
	list = slices.Clone(list) // another record may have the same
	for i, host := range list {
		list[i] = HostName(host)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// checkAllowed refuses what no certificate can be for.
func checkAllowed(names []string) error {
	for _, name := range names {
		if !pki.ValidName(name) {
			return fault.Invalid("allowedNames", "must be DNS names, which may begin with *., or IP addresses", name)
		}
	}
	return nil
}
