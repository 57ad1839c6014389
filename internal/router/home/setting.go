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
)

// Settings are what somebody decides about a router.
type Settings struct {
	// Listen is where clients connect, and other routers too unless LinkListen
	// says otherwise: host and port.
	Listen     string `yaml:"listen"`
	LinkListen string `yaml:"linkListen,omitempty"`
	// Advertise is what clients and other routers are told: hosts, with a port
	// where it is another than that of Listen.
	Advertise []string `yaml:"advertise"`
	// LinkGroups are those of the routers that this one links with: all that have
	// one of them, or all that have none either.
	LinkGroups []string `yaml:"linkGroups,omitempty"`
	// Metrics is where monitoring may look: host and port, auto or off.
	Metrics string `yaml:"metricsListen"`
	// Drain is how long a stop waits for circuits to end.
	Drain time.Duration `yaml:"drain"`
	Log   LogSettings   `yaml:"log"`
}

// LogSettings are what is logged, and how.
type LogSettings struct {
	Level  string `yaml:"level"`
	Format string `yaml:"format,omitempty"`
}

// What Metrics may be besides an address, and what it is unless told otherwise.
const (
	MetricsAuto    = "auto"
	MetricsOff     = "off"
	MetricsAddress = "127.0.0.1:1282"
)

// DefaultDrain is how long a stop waits unless told otherwise.
const DefaultDrain = 10 * time.Second

// maxGroup is how long the name of a group of links may be.
const maxGroup = 64

// maxDrain is how long it may wait: who stops a machine does not wait longer.
const maxDrain = time.Hour

// Fill completes settings with what is usual.
func (s *Settings) Fill() {
	if s.Metrics == "" {
		s.Metrics = MetricsAuto
	}
	if s.Log.Level == "" {
		s.Log.Level = "info"
	}
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
	if err := address("listen", s.Listen); err != nil {
		return err
	}
	if s.LinkListen != "" {
		if err := address("linkListen", s.LinkListen); err != nil {
			return err
		}
	}
	if len(s.Advertise) == 0 {
		return errors.New("advertise is missing: clients must be told a name or an address that leads here, not one that stands for all")
	}
	for _, at := range s.Advertise {
		if _, _, err := s.advertised(at); err != nil {
			return err
		}
	}
	for _, group := range s.LinkGroups {
		if group == "" || len(group) > maxGroup || strings.ContainsAny(group, " ,\t\n") {
			return fmt.Errorf("linkGroups has %q, and must be words", group)
		}
	}
	switch {
	case s.Metrics != MetricsAuto && s.Metrics != MetricsOff:
		if err := address("metricsListen", s.Metrics); err != nil {
			return err
		}
	case s.Drain < 0 || s.Drain > maxDrain:
		return fmt.Errorf("drain is %s, and may be from 0s to %s", s.Drain, maxDrain)
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, s.Log.Level):
		return fmt.Errorf("log.level is %q, and may be debug, info, warn or error", s.Log.Level)
	case !slices.Contains([]string{"", "text", "json"}, s.Log.Format):
		return fmt.Errorf("log.format is %q, and may be text or json", s.Log.Format)
	}
	return nil
}

func address(name, text string) error {
	_, port, err := net.SplitHostPort(text)
	if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%s is %q, and must be a host and a port such as 0.0.0.0:3022", name, text)
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
