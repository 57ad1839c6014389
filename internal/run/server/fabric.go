package server

import (
	"crypto/tls"
	"net/http"
	"slices"
	"time"

	"netkeep/internal/auth/authn"
	"netkeep/internal/fabric"
	"netkeep/internal/fabric/edge"
	"netkeep/internal/fabric/message"
	"netkeep/internal/ops/build"
	"netkeep/internal/policy/session"
)

// openFabric gets ready for routers.
func (s *Server) openFabric(apiSessions *authn.Sessions, sessions *session.Sessions) {
	info := build.Read()
	s.fabric = fabric.New(fabric.Options{
		State: s.state, Root: s.keys.Root(), Bundle: s.keys.TrustBundle(), APISessions: apiSessions, Sessions: sessions, Tokens: sessions.Tokens,
		Build: edge.Version{Revision: info.Revision, BuildDate: info.Date}, Kept: s.connections.Keep, Now: time.Now, Log: s.log,
	})
	s.routers = s.fabric
}

// tlsConfig is that of the APIs, except that who asks for the protocol of
// routers gets it alone, and must show a certificate.
func (s *Server) tlsConfig() *tls.Config {
	web := s.served.TLSConfig()
	if s.fabric == nil {
		return web
	}
	routers := web.Clone()
	routers.NextProtos, routers.ClientAuth = []string{message.ALPN}, tls.RequireAnyClientCert
	web.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, message.ALPN) {
			return routers, nil
		}
		return nil, nil // the one that this is part of
	}
	return web
}

// takeRouters has the HTTP server, which finds connections of routers by their
// protocol, hand them on.
func (s *Server) takeRouters(srv *http.Server) {
	if s.fabric == nil {
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
