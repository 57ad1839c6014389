package home

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/ops/config"
)

// Settings are what somebody decides about a router: a file in its directory,
// environment variables over it, flags over those. Package config says what the
// tags mean.
type Settings struct {
	Listen     string        `yaml:"listen" default:"0.0.0.0:3022" form:"address" doc:"Host and port where clients connect, and other routers unless linkListen says otherwise."`
	LinkListen string        `yaml:"linkListen,omitempty" form:"address" eg:"0.0.0.0:3023" doc:"Host and port where other routers connect; where clients do if empty."`
	Advertise  []string      `yaml:"advertise" eg:"router.example.com" doc:"Names and addresses that clients and other routers are told, with a port where it is another than that of listen; the host of listen if empty. For other names, enroll the router again: they are in its certificates."`
	LinkGroups []string      `yaml:"linkGroups,omitempty" form:"words" eg:"inner" doc:"Groups of routers that this one links with: all that have one of them, or, without any, those that have none either."`
	Metrics    string        `yaml:"metricsListen" default:"auto" form:"metrics" doc:"Host and port to serve metrics on, in plain HTTP; auto is 127.0.0.1:1282 if nothing else has it, off is nowhere."`
	Drain      time.Duration `yaml:"drain" default:"10s" range:"0s..1h" doc:"How long a stop waits for circuits to end."`
	Log        LogSettings   `yaml:"log"`
}

// LogSettings are what is logged, and how.
type LogSettings struct {
	Level  string `yaml:"level" default:"info" enum:"debug|info|warn|error" doc:"Least severe lines to log."`
	Format string `yaml:"format,omitempty" enum:"text|json" doc:"Form of the log; text on a terminal and json otherwise if empty."`
}

// What Metrics may be besides an address, and what it is unless told otherwise.
const (
	MetricsAuto    = config.MetricsAuto
	MetricsOff     = config.MetricsOff
	MetricsAddress = "127.0.0.1:1282"
)

// DefaultSettings are those of a router that was told nothing.
func DefaultSettings() Settings {
	var s Settings
	config.SetDefaults(config.Of(&s))
	return s
}

// Fill completes settings with what follows from others.
func (s *Settings) Fill() {
	if host, _, err := net.SplitHostPort(s.Listen); err == nil && len(s.Advertise) == 0 && !everywhere(host) {
		s.Advertise = []string{host}
	}
}

// everywhere reports whether a host stands for all addresses of a machine.
func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// check says what is wrong with the settings.
func (s Settings) check() error {
	if err := config.Check(config.Of(&s)); err != nil {
		return err
	}
	if len(s.Advertise) == 0 {
		return errors.New("advertise is missing: clients must be told a name or an address that leads here, not one that stands for all")
	}
	for _, at := range s.Advertise {
		if _, _, err := s.advertised(at); err != nil {
			return err
		}
	}
	return nil
}

// advertised is one of the names that the router is reached under, with the
// port if it has one of its own.
func (s Settings) advertised(at string) (host, port string, err error) {
	host = strings.Trim(at, "[]")
	if h, p, err := net.SplitHostPort(at); err == nil {
		host, port = h, p
	}
	n, perr := strconv.Atoi(port)
	switch {
	case host == "" || everywhere(host) || strings.ContainsAny(host, " /@") || strings.Contains(host, ":") && net.ParseIP(host) == nil:
		return "", "", fmt.Errorf("advertise is %q, and must be a name or an address that leads here, such as router.example.com or router.example.com:443", at)
	case port != "" && (perr != nil || n < 1 || n > 65535):
		return "", "", fmt.Errorf("advertise is %q, whose port is none", at)
	}
	return host, port, nil
}

// names are those that the router's certificates must be for.
func (s Settings) names() enroll.Names {
	var n enroll.Names
	var seen []string
	for _, at := range s.Advertise {
		if host, _, err := s.advertised(at); err == nil && !slices.Contains(seen, host) {
			seen = append(seen, host)
			n.Add(host)
		}
	}
	return n
}

// addresses are how others are told to come to a listener: at its own port
// where a name has none, or where it is that of the other listener.
func (s Settings) addresses(listener net.Addr, ownPort bool) []string {
	_, usual, _ := net.SplitHostPort(listener.String())
	var all []string
	for _, at := range s.Advertise {
		host, port, _ := s.advertised(at)
		if port == "" || !ownPort {
			port = usual
		}
		if to := "tls:" + net.JoinHostPort(host, port); !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	return all
}
