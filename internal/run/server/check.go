package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
)

// Check says everything for which Start would refuse settings that are right
// by themselves. It opens nothing but the files that they name, and leaves
// them as they are.
func Check(cfg config.Config) error {
	errs := []error{checkListeners(cfg), checkReachable(cfg), checkData(cfg.Data)}
	quiet := slog.New(slog.DiscardHandler)
	if cfg.TLS.Cert != "" {
		_, err := pki.Serve(cfg.TLS.Cert, cfg.TLS.Key, time.Now, quiet)
		errs = append(errs, err)
	}
	if cfg.Store.Secured() {
		_, err := clusterTLS(cfg.Store, quiet)
		errs = append(errs, err)
	}
	_, err := outletClients(cfg, quiet)
	_, bad := receivers(cfg)
	return errors.Join(append(errs, err, bad)...)
}

// CheckCertificate says why clients would not believe the certificate that
// settings name. A controller runs with it all the same, if it has to.
func CheckCertificate(cfg config.Config) error {
	if cfg.TLS.Cert == "" {
		return nil
	}
	served, err := pki.Serve(cfg.TLS.Cert, cfg.TLS.Key, time.Now, slog.New(slog.DiscardHandler))
	if err == nil {
		err = certificateFlaw(served.Current().Leaf, cfg.Advertise, cfg.Management.Advertise, cfg.Routers.Advertise, cfg.Routers.ReserveAdvertise)
	}
	if err != nil {
		return fmt.Errorf("tls.cert %s: %w; clients would refuse it", cfg.TLS.Cert, err)
	}
	return nil
}

// listener is an address that settings ask for.
type listener struct {
	key, text string
	at        *net.TCPAddr
}

// checkListeners refuses addresses that cannot be listened on together, and
// profiles for others than those on this machine.
func checkListeners(cfg config.Config) error {
	var errs []error
	var all []listener
	for _, l := range []listener{{key: "listen", text: cfg.Listen}, {key: "management.listen", text: cfg.Management.Listen}, {key: "routers.listen", text: cfg.Routers.Listen}, {key: "routers.reserve", text: cfg.Routers.Reserve}, {key: "router", text: cfg.Router}, {key: "cluster.listen", text: cfg.Cluster.Listen}, {key: "metrics.listen", text: metricsAddress(cfg)}} {
		if l.text == "" {
			continue
		}
		var err error
		if l.at, err = net.ResolveTCPAddr("tcp", l.text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", l.key, err))
			continue
		}
		for _, other := range all {
			if l.clashes(other) && !(l.key == "metrics.listen" && cfg.Metrics.Listen == config.MetricsAuto) {
				errs = append(errs, fmt.Errorf("%s and %s need addresses of their own, not %s and %s", other.key, l.key, other.text, l.text))
			}
		}
		all = append(all, l)
		// What a profile shows of memory is for those on this machine only.
		if l.key == "metrics.listen" && cfg.Metrics.Pprof && !l.at.IP.IsLoopback() {
			errs = append(errs, fmt.Errorf("metrics.pprof needs metrics.listen to be a loopback address, not %s", l.text))
		}
	}
	return errors.Join(errs...)
}

// metricsAddress is where metrics are to be served; empty for nowhere.
func metricsAddress(cfg config.Config) string {
	switch cfg.Metrics.Listen {
	case config.MetricsOff:
		return ""
	case config.MetricsAuto:
		return config.MetricsAddress
	}
	return cfg.Metrics.Listen
}

// clashes reports whether two addresses cannot both be listened on. Port 0 is
// any that is free.
func (l listener) clashes(other listener) bool {
	return l.at.Port != 0 && l.at.Port == other.at.Port &&
		(l.at.IP.Equal(other.at.IP) || everywhere(l.at.IP) || everywhere(other.at.IP))
}

// everywhere reports whether an address stands for all of the machine's.
func everywhere(ip net.IP) bool { return ip == nil || ip.IsUnspecified() }

// checkReachable refuses to tell clients an address that none can dial, in
// invitations and certificates that are hard to take back.
func checkReachable(cfg config.Config) error {
	for _, l := range []struct{ key, text, flag, advertise string }{
		{"listen", cfg.Listen, "advertise", cfg.Advertise},
		{"management.listen", cfg.Management.Listen, "management-advertise", cfg.Management.Advertise + cfg.Advertise},
		{"routers.listen", cfg.Routers.Listen, "routers-advertise", cfg.Routers.Advertise + cfg.Advertise},
		{"router", cfg.Router, "router-advertise", cfg.RouterAdvertise + cfg.Advertise},
		{"cluster.listen", cfg.Cluster.Listen, "cluster-advertise", cfg.Cluster.Advertise + cfg.Advertise},
	} {
		host, port, err := net.SplitHostPort(l.text)
		if err != nil || l.advertise != "" || host != "" && !(net.ParseIP(host) != nil && everywhere(net.ParseIP(host))) {
			continue
		}
		return fmt.Errorf("%s is %s, which stands for all addresses of this machine and is none that clients can dial: say which they are to use with --%s, such as %s, or listen on one of them",
			l.key, l.text, l.flag, strings.Join(choices(port), " or "))
	}
	return nil
}

// choices are names and addresses under which others may reach this machine.
func choices(port string) (list []string) {
	const most = 4
	if name, err := os.Hostname(); err == nil && name != "" {
		list = append(list, net.JoinHostPort(name, port))
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && len(list) < most {
			list = append(list, net.JoinHostPort(n.IP.String(), port))
		}
	}
	if len(list) == 0 {
		list = append(list, net.JoinHostPort("controller.example.org", port))
	}
	return list
}

// checkData refuses what can be no data directory.
func checkData(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("data: %s is a file and no directory", path)
	}
	return nil
}
