package main

import (
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

// Bounds of what one invocation may do.
const (
	maxClients  = 1024
	maxDuration = time.Hour
	maxRounds   = 1_000_000
	maxRecords  = 10_000_000
)

// target is the controller to put load on, and how to reach it.
type target struct {
	url, ca      string
	username     string
	passwordFile string
	password     string // from the file, or from the environment
	header       string
	anyHost      bool
	http2        bool
	timeout      time.Duration
	clients      int
	pid          int
}

func (t *target) flags(f *flag.FlagSet, clients int) {
	f.StringVar(&t.url, "url", "https://127.0.0.1:1280", "where the controller serves")
	f.StringVar(&t.ca, "ca", "", "PEM file with the CA of the controller's certificate; the system's if empty")
	f.StringVar(&t.username, "username", "admin", "user name of an admin")
	// A flag would show it to everybody on the machine.
	f.StringVar(&t.passwordFile, "password-file", "", "file with the password of the admin; from NETKEEP_ADMIN_PASSWORD if not given")
	f.StringVar(&t.header, "session-header", "net-session", "name of the header that carries the session token")
	f.BoolVar(&t.anyHost, "any-host", false, "allow a controller on another machine")
	f.IntVar(&t.pid, "server-pid", 0, "process id of the controller, to measure what it uses (Linux)")
	t.connectionFlags(f, clients)
}

// connectionFlags are those that make sense without a controller too.
func (t *target) connectionFlags(f *flag.FlagSet, clients int) {
	f.IntVar(&t.clients, "clients", clients, "how many clients send at the same time, each over a connection of its own")
	f.BoolVar(&t.http2, "http2", false, "speak HTTP/2 instead of HTTP/1.1")
	f.DurationVar(&t.timeout, "timeout", 60*time.Second, "how long one request may take")
}

// check refuses what could hurt somebody by mistake.
func (t *target) check() error {
	u, err := url.Parse(t.url)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	switch {
	case u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("--url must be https://HOST:PORT, not %q", t.url)
	case !t.anyHost && !loopback(u.Hostname()):
		return fmt.Errorf("--url names %s, which is not this machine; give --any-host if it may be put under load", u.Hostname())
	}
	if err := t.readPassword(); err != nil {
		return err
	}
	return t.checkConnection()
}

// readPassword finds the password where nobody else can see it.
func (t *target) readPassword() error {
	t.password = os.Getenv("NETKEEP_ADMIN_PASSWORD")
	if t.passwordFile != "" {
		text, err := os.ReadFile(t.passwordFile)
		if err != nil {
			return fmt.Errorf("--password-file: %w", err)
		}
		t.password = strings.TrimRight(string(text), "\r\n")
	}
	if t.password == "" {
		return errors.New("--password-file or NETKEEP_ADMIN_PASSWORD must be given, and not be empty")
	}
	return nil
}

func (t *target) checkConnection() error {
	if t.clients < 1 || t.clients > maxClients {
		return fmt.Errorf("--clients must be between 1 and %d, not %d", maxClients, t.clients)
	}
	if t.timeout <= 0 || t.timeout > maxDuration {
		return fmt.Errorf("--timeout must be more than 0 and at most %s, not %s", maxDuration, t.timeout)
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// roots returns the CAs to trust, nil for the system's.
func (t *target) roots() (*x509.CertPool, error) {
	if t.ca == "" {
		return nil, nil
	}
	text, err := os.ReadFile(t.ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca: %s holds no certificate", t.ca)
	}
	return pool, nil
}

// bounds end a measurement, whichever is reached first.
type bounds struct {
	duration time.Duration
	rounds   int
}

func (b *bounds) flags(f *flag.FlagSet) {
	f.DurationVar(&b.duration, "duration", 10*time.Second, "how long each scenario runs")
	f.IntVar(&b.rounds, "rounds", maxRounds, "how many rounds each scenario runs at most")
}

func (b *bounds) check() error {
	if b.duration <= 0 || b.duration > maxDuration {
		return fmt.Errorf("--duration must be more than 0 and at most %s, not %s", maxDuration, b.duration)
	}
	if b.rounds < 1 || b.rounds > maxRounds {
		return fmt.Errorf("--rounds must be between 1 and %d, not %d", maxRounds, b.rounds)
	}
	return nil
}

// parse reads the flags of a command that takes no other arguments.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return nil
}
