package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
)

// listen opens the addresses of the APIs, and that of routers.
func (s *Server) listen() (err error) {
	for _, l := range []struct {
		into          *net.Listener
		address, flag string
	}{
		{&s.listener, s.cfg.Listen, "--listen"},
		{&s.management, s.cfg.Management.Listen, "--management-listen"},
		{&s.control, s.cfg.Routers.Listen, "--routers-listen"},
		{&s.reserve, s.cfg.Routers.Reserve, "--routers-reserve"},
		{&s.inner.listener, s.cfg.Router, "--router"},
	} {
		if l.address == "" {
			continue
		}
		if *l.into, err = s.open(l.address, l.flag); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) open(address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; is another controller running? choose another address with %s", address, unwrapOp(err), flag)
	}
	s.onClose(func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return l, nil
}

// Address is where clients reach the controller.
func (s *Server) Address() string {
	if s.cfg.Advertise != "" {
		return s.cfg.Advertise
	}
	return s.listener.Addr().String()
}

// Listening is where the controller listens, whatever it tells clients.
func (s *Server) Listening() net.Addr { return s.listener.Addr() }

// ManagementAddress is where admins reach the Management API.
func (s *Server) ManagementAddress() string {
	return s.addressOf(s.management, s.cfg.Management.Advertise)
}

// RouterAddress is where routers connect.
func (s *Server) RouterAddress() string { return s.addressOf(s.control, s.cfg.Routers.Advertise) }

// ReserveAddress is where routers of another controller connect while this one
// answers in its place; empty if it never does.
func (s *Server) ReserveAddress() string {
	if s.reserve == nil {
		return ""
	}
	return s.addressOf(s.reserve, s.cfg.Routers.ReserveAdvertise)
}

// addressOf is where others reach a listener that may be there beside the first.
func (s *Server) addressOf(l net.Listener, advertised string) string {
	if l == nil {
		return s.Address()
	}
	if advertised != "" {
		return advertised
	}
	at := l.Addr().(*net.TCPAddr)
	// All addresses of the machine are none that a client could dial.
	if host, _, err := net.SplitHostPort(s.cfg.Advertise); err == nil && at.IP.IsUnspecified() {
		return net.JoinHostPort(host, fmt.Sprint(at.Port))
	}
	return at.String()
}

// names are the hosts that the server certificate must be made out to.
func (s *Server) names() (dns []string, ips []net.IP, err error) {
	hosts := slices.Clone(s.cfg.Names)
	for _, address := range []string{s.Address(), s.ManagementAddress(), s.RouterAddress(), s.ReserveAddress()} {
		if address == "" {
			continue
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, nil, fmt.Errorf("advertise address %s: %w", address, err)
		}
		hosts = append(hosts, host)
	}
	for _, host := range hosts {
		switch ip := net.ParseIP(host); {
		case ip == nil && !slices.Contains(dns, host):
			dns = append(dns, host)
		case ip != nil && !slices.ContainsFunc(ips, ip.Equal):
			ips = append(ips, ip)
		}
	}
	return dns, ips, nil
}

// answer starts to serve the APIs: on one listener, or each on its own.
func (s *Server) answer(h *apis) {
	if s.management == nil {
		s.answerOn(s.listener, h)
		return
	}
	s.answerOn(s.listener, h.clientOnly())
	s.answerOn(s.management, h.managementOnly())
}

func (s *Server) answerOn(l net.Listener, h http.Handler) {
	srv := s.newHTTP(s.parting(s.connections.Handler(s.checks().Wrap(s.welcoming(h)))))
	s.takeRouters(srv)
	s.http = append(s.http, srv)
	secured := tls.NewListener(s.connections.Listener(door{l, s.refusing}), s.tlsConfig())
	s.jobs.Go(func() {
		if err := srv.Serve(secured); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve: %w", err))
		}
	})
}

// newHTTP returns an HTTP server that is as patient as the settings say.
func (s *Server) newHTTP(h http.Handler) *http.Server {
	t := s.cfg.Timeouts
	return &http.Server{
		Handler: h, ReadHeaderTimeout: t.Header, ReadTimeout: t.Read, WriteTimeout: t.Write, IdleTimeout: t.Idle,
		MaxHeaderBytes: int(s.cfg.Limits.Headers), ConnContext: s.connections.Context, ConnState: s.connections.Changed,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxStreams, MaxReceiveBufferPerConnection: receiveBuffer, MaxReceiveBufferPerStream: receiveBuffer,
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// drain takes no more requests on any listener and lets the running ones
// finish. It ends those that do not before ctx does.
func (s *Server) drain(ctx context.Context) error {
	s.fabric.Close() // routers have no request that could end by itself
	if s.streams != nil {
		s.streams.Close() // nor do these
	}
	errs := make([]error, len(s.http))
	var all sync.WaitGroup
	for i, srv := range s.http {
		all.Go(func() {
			if err := srv.Shutdown(ctx); err != nil {
				errs[i] = errors.Join(fmt.Errorf("waiting for requests to finish: %w", err), srv.Close())
			}
		})
	}
	all.Wait()
	if s.streams != nil {
		s.streams.Wait(ctx)
	}
	return errors.Join(errs...)
}
