package server

import (
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// listening is a listener that says it is at an address.
type listening struct {
	net.Listener
	at net.TCPAddr
}

func (l listening) Addr() net.Addr { return &l.at }

func at(ip string, port int) net.Listener {
	return listening{at: net.TCPAddr{IP: net.ParseIP(ip), Port: port}}
}

func TestAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		advertise, told           string
		listener, own, routers    net.Listener
		client, management, names string
	}{
		"one listener":   {listener: at("127.0.0.1", 1), client: "127.0.0.1:1", management: "127.0.0.1:1", names: "127.0.0.1"},
		"one advertised": {advertise: "c.example:9", listener: at("0.0.0.0", 1), client: "c.example:9", management: "c.example:9", names: "c.example"},
		"two listeners":  {listener: at("127.0.0.1", 1), own: at("127.0.0.2", 2), client: "127.0.0.1:1", management: "127.0.0.2:2", names: "127.0.0.1 127.0.0.2"},
		"private management": {
			advertise: "c.example:9", listener: at("0.0.0.0", 1), own: at("127.0.0.1", 2),
			client: "c.example:9", management: "127.0.0.1:2", names: "c.example 127.0.0.1",
		},
		"management on all addresses": {
			advertise: "c.example:9", listener: at("0.0.0.0", 1), own: at("::", 2),
			client: "c.example:9", management: "c.example:2", names: "c.example",
		},
		"routers apart": {
			advertise: "c.example:9", listener: at("0.0.0.0", 1), routers: at("127.0.0.9", 3),
			client: "c.example:9", management: "c.example:9", names: "c.example 127.0.0.9",
		},
		"both told": {
			advertise: "c.example:9", told: "m.example:8", listener: at("0.0.0.0", 1), own: at("0.0.0.0", 2),
			client: "c.example:9", management: "m.example:8", names: "c.example m.example",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{listener: test.listener, management: test.own, control: test.routers}
			s.cfg.Advertise, s.cfg.Management.Advertise = test.advertise, test.told
			if got := s.Address(); got != test.client {
				t.Errorf("clients go to %s, want %s", got, test.client)
			}
			if got := s.ManagementAddress(); got != test.management {
				t.Errorf("admins go to %s, want %s", got, test.management)
			}
			dns, ips, err := s.names()
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Clone(dns)
			for _, ip := range ips {
				got = append(got, ip.String())
			}
			if strings.Join(got, " ") != test.names {
				t.Errorf("the certificate is made out to %q, want %s", got, test.names)
			}
		})
	}
}

// TestPatience checks that every timeout and limit reaches what keeps it.
func TestPatience(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := &Server{state: st, log: slog.New(slog.DiscardHandler)}
	s.cfg.Timeouts = config.Timeouts{
		Request: 1 * time.Second, Header: 2 * time.Second, Read: 3 * time.Second, Write: 4 * time.Second, Idle: 5 * time.Second,
		Body: 8 * time.Second,
	}
	s.cfg.Limits.Headers, s.cfg.Limits.Body, s.cfg.Limits.Share = 6, 7, 9
	srv := s.newHTTP(nil)
	got := config.Timeouts{Header: srv.ReadHeaderTimeout, Read: srv.ReadTimeout, Write: srv.WriteTimeout, Idle: srv.IdleTimeout}
	h, err := s.newAPIs(nil, &api.Service{Sessions: new(authn.APISessions), Grants: new(grant.Grants)})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []*rest.API{h.client, h.management} {
		got.Request, got.Body = a.Timeout, a.StrangerPace.First
		if got != s.cfg.Timeouts || srv.MaxHeaderBytes != 6 || a.MaxBody != 7 {
			t.Errorf("%s has %+v, %d bytes of header and %d of body", a.Name, got, srv.MaxHeaderBytes, a.MaxBody)
		}
		if pace := (limit.Pace{First: got.Body, Least: leastRate, Last: got.Read}); a.Pace != pace {
			t.Errorf("%s waits for bodies of those it knows as %+v, want %+v", a.Name, a.Pace, pace)
		}
		if a.Bodies.Share != 9 || a.Requests.Share != 9 {
			t.Errorf("%s gives one party %d percent of bodies and %d of requests", a.Name, a.Bodies.Share, a.Requests.Share)
		}
	}
}
