package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric"
	"netkeep.internal/internal/fabric/asclient"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
	"netkeep.internal/internal/wire/message"
)

// openFabric gets ready for routers.
func (s *Server) openFabric(apiSessions *authn.APISessions, sessions *grant.Grants, desk *enroll.Desk, shared *rest.Shared) {
	info := build.Read()
	var look func(context.Context) (*state.Snapshot, error)
	if shared != nil {
		look = shared.Looks.Current
	}
	s.herald = new(herald.Herald)
	bearing := authn.BearerTime
	if !s.cfg.OIDC.Enabled.Maybe() {
		bearing = 0
	}
	s.fabric = fabric.New(fabric.Options{
		Bearing: bearing,
		Herald:  s.herald,
		State:   s.state, ID: s.roster.ID(), By: s.roster.ID(), Alone: s.roster.Alone(), Mine: s.roster.Mine, Tells: s.roster.Tells, Book: s.book, Lease: s.roster.Lease, Look: look, Ask: s.roster.Ask, Authorities: s.keys.Authorities, APISessions: apiSessions, Sessions: sessions, Tokens: sessions.Tokens,
		Build: model.RouterVersion{Revision: info.Revision, BuildDate: info.Date}, Renewal: renewal{desk}, Kept: s.connections.Keep, Dialled: s.figures.Dialled, Carried: s.figures.Carried, Misbehaved: s.figures.Misbehaved, Recorder: s.recorder, Each: s.cfg.Audit.Circuits, Now: time.Now, Log: s.log,
		Devices: sessions, Clients: clients{apiSessions, sessions, s.recorder}, Changed: sessions.Changes.Of,
	})
	if s.roster.Behind() {
		s.fabric.Suspend()
	}
	sessions.Plain = s.fabric.Plain
	s.figures.WatchFabric(metrics.Fabric{
		State: s.state, Online: func() int { return len(s.fabric.All()) }, Counts: func() (links, circuits int) { return s.fabric.Links.Len(), s.fabric.View().Len(model.Circuits.Def) },
		Latencies: s.fabric.Links.Latencies, Moved: s.fabric.Circuits.Moved, Offences: control.Reasons(),
	})
}

// measured is what monitoring sees, for those who are told of it as events.
func (s *Server) measured() (all []herald.Figure) {
	for _, f := range s.figures.Figures() {
		typ := "floatValue"
		if f.Spread {
			typ = "histogram"
		}
		all = append(all, herald.Figure{Name: f.Name, Type: typ, Tags: f.Labels, Values: f.Values})
	}
	return all
}

// renewal is the desk as routers come to it that are connected.
type renewal struct{ desk *enroll.Desk }

// Offer is for [fabric.Renewal].
func (n renewal) Offer(ctx context.Context, by state.Author, router, present string, ask *message.Extend) (*fabric.Offered, error) {
	certs, err := n.desk.Offer(ctx, by, enroll.Renewal{Router: router, Present: present, Client: []byte(ask.ClientCSR), Server: []byte(ask.ServerCSR)})
	if err != nil {
		return nil, err
	}
	text := func(chain []*x509.Certificate) string { return string(pki.EncodeCertificates(chain...)) }
	return &fabric.Offered{
		Certificates: message.Certificates{Client: text(certs.Client), Server: text(certs.Server), CAs: text(n.desk.Bundle())},
		Fingerprint:  pki.Fingerprint(certs.Client[0]),
	}, nil
}

// Use is for [fabric.Renewal].
func (n renewal) Use(ctx context.Context, by state.Author, router, present, fingerprint string) error {
	return n.desk.Accept(ctx, by, router, present, fingerprint)
}

// clients is where routers become clients.
type clients struct {
	apiSessions *authn.APISessions
	sessions    *grant.Grants
	recorder    *audit.Recorder
}

// Enter is for [tunnel.Clients].
func (c clients) Enter(ctx context.Context, by state.Author, routerID string, said asclient.Said) (asclient.Client, error) {
	who, err := c.apiSessions.OfRouter(ctx, by, routerID, authn.Request{ConfigTypes: said.ConfigTypes, EnvInfo: said.Env, SDKInfo: said.SDK})
	if err != nil {
		return nil, err
	}
	return routerClient{who, c.sessions, c.recorder}, nil
}

// routerClient is a router as a client.
type routerClient struct {
	*authn.Caller
	sessions *grant.Grants
	recorder *audit.Recorder
}

// Grant is for [tunnel.Client].
func (c routerClient) Grant(ctx context.Context, by state.Author, serviceID, typ string) (*model.Session, error) {
	made, err := c.sessions.Create(ctx, by, c.Caller, grant.Request{ServiceID: serviceID, Type: typ})
	api.NoteSession(c.recorder, c.sessions.State.Snapshot(), by, serviceID, typ, err)
	return made, err
}

// tlsConfig is that of the APIs, except that who asks for the protocol of
// routers gets it alone, and must show a certificate. Who knows the root CA of the
// network alone may ask for the certificate that the controller has of it, where
// another is served.
func (s *Server) tlsConfig() *tls.Config {
	web, routers := s.served.TLSConfig(), s.routerTLS()
	var own *tls.Config
	if s.own != nil {
		own = s.own.TLSConfig()
		own.NextProtos = []string{"http/1.1"}
	}
	web.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		switch {
		case s.control == nil && slices.Contains(hello.SupportedProtos, message.ALPN):
			return routers, s.handshake(hello)
		case slices.Contains(hello.SupportedProtos, remote.OwnProtocol):
			return own, nil
		}
		return nil, nil // the one that this is part of
	}
	return web
}

// maxHandshakes is how many routers may wait for their turn to connect. The rest
// try again.
const maxHandshakes = 4096

// handshakeTurn is how long a router may keep others waiting that want to
// connect, if it does not go on with its handshake.
const handshakeTurn = 50 * time.Millisecond

// handshake waits for a router's turn. After an outage all come back at the same
// moment, and others must not wait until everybody's certificate is checked.
func (s *Server) handshake(hello *tls.ClientHelloInfo) error {
	at, err := netip.ParseAddrPort(hello.Conn.RemoteAddr().String())
	if err != nil {
		return err
	}
	done, err := s.handshakes.Wait(hello.Context(), limit.At(at.Addr()))
	if err != nil {
		return err
	}
	time.AfterFunc(handshakeTurn, done)
	context.AfterFunc(hello.Context(), done) // when the handshake is over
	return nil
}

// takeRouters has the HTTP server, which finds connections of routers by their
// protocol, hand them on.
func (s *Server) takeRouters(srv *http.Server) {
	if s.control != nil {
		return
	}
	// Said in full: a server that is told of other protocols would leave out
	// HTTP/2.
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(true)
	srv.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		message.ALPN: func(_ *http.Server, conn *tls.Conn, _ http.Handler) { s.fabric.Take(conn) },
	}
}

// serveReserve takes routers of another controller while this one answers in its
// place, until ctx ends.
func (s *Server) serveReserve(ctx context.Context) {
	if s.reserve == nil {
		return
	}
	context.AfterFunc(ctx, func() { _ = s.reserve.Close() })
	s.jobs.Go(func() {
		config, listener := s.routerOnlyTLS(), s.connections.Listener(s.reserve)
		for {
			conn, err := listener.Accept()
			if err != nil {
				if ctx.Err() == nil {
					s.fail(fmt.Errorf("serve routers of another controller: %w", err))
				}
				return
			}
			go s.fabric.TakeAside(tls.Server(conn, config))
		}
	})
}

// routerTLS is that of connections of routers alone.
func (s *Server) routerTLS() *tls.Config {
	config := s.served.TLSConfig()
	config.NextProtos, config.ClientAuth = []string{message.ALPN}, tls.RequireAnyClientCert
	return config
}

// serveRouters takes routers on a listener of their own, if there is one, until
// ctx ends.
func (s *Server) serveRouters(ctx context.Context) {
	if s.control == nil {
		return
	}
	context.AfterFunc(ctx, func() { _ = s.control.Close() })
	s.jobs.Go(func() {
		config := s.routerOnlyTLS()
		if err := s.fabric.Serve(s.connections.Listener(door{s.control, s.refusing}), config); ctx.Err() == nil {
			s.fail(fmt.Errorf("serve routers: %w", err))
		}
	})
}

// routerOnlyTLS is that of a listener to which nobody but routers connects.
func (s *Server) routerOnlyTLS() *tls.Config {
	config := s.routerTLS()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, s.handshake(hello) }
	return config
}
