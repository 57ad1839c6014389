package names

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Options of a server.
type Options struct {
	Pool *Pool
	// Covers reports whether a name is ours. It is asked for every question, so
	// that services come and go without a word to the server.
	Covers func(name string) bool
	// Servers are who is asked for a name that is not ours; without any, there is
	// no such name. It may be nil: then nothing is ever passed on. It may take its
	// time, which holds up nobody who asks for names of ours.
	Servers func(name string) []netip.AddrPort
	// Dial reaches those servers, if not as usual.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Log  *slog.Logger
	Now  func() time.Time
}

const (
	// maxStreams is how many connections there are at once.
	maxStreams = 128
	// streamIdle is how long a connection may be silent, and how long one
	// question may take to come.
	streamIdle = 10 * time.Second
	// maxQuery is longer than any question.
	maxQuery = 4096
	// maxFailures is how often in a row nothing can be read before a socket is
	// given up.
	maxFailures = 100
	// again is how often the same complaint is worth a line.
	again = time.Minute
)

// Server answers questions about names of services, over UDP and TCP.
type Server struct {
	opt     Options
	passing chan struct{} // a place for each question that others are asked
	streams chan struct{} // and for each connection

	mu   sync.Mutex
	said time.Time
}

// NewServer makes a server, which answers as soon as Serve is called.
func NewServer(opt Options) *Server {
	if opt.Dial == nil {
		opt.Dial = (&net.Dialer{}).DialContext
	}
	return &Server{opt: opt, passing: make(chan struct{}, maxPassing), streams: make(chan struct{}, maxStreams)}
}

// complain says once a while what keeps names from being answered.
func (s *Server) complain(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.opt.Now(); s.said.IsZero() || now.Sub(s.said) >= again {
		s.said = now
		s.opt.Log.Warn("a name gets no address", "error", err)
	}
}

// Serve answers what comes in over either, until ctx ends, and closes both. It
// returns an error if one of them fails before.
func (s *Server) Serve(ctx context.Context, packets net.PacketConn, streams net.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	closed := context.AfterFunc(ctx, func() {
		_ = packets.Close()
		_ = streams.Close()
	})
	defer closed()
	var all sync.WaitGroup
	all.Go(func() { cancel(s.packets(ctx, packets, &all)) })
	all.Go(func() { cancel(s.accept(ctx, streams, &all)) })
	all.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// packets answers what comes over UDP, one after the other: only what others
// are asked takes longer than to wake somebody for it.
func (s *Server) packets(ctx context.Context, conn net.PacketConn, all *sync.WaitGroup) error {
	buffer := make([]byte, maxQuery)
	for failures := 0; ; {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			if failures++; ctx.Err() != nil || errors.Is(err, net.ErrClosed) || failures >= maxFailures {
				return err
			}
			continue
		}
		failures = 0
		v := s.judge(buffer[:n])
		if s.mayPass(v, from) {
			query := append([]byte(nil), buffer[:n]...)
			select {
			case s.passing <- struct{}{}:
				all.Go(func() {
					defer func() { <-s.passing }()
					_, _ = conn.WriteTo(s.pass(ctx, "udp", v, query), from)
				})
				continue
			default:
				v.reply = failed(query)
			}
		}
		if v.reply != nil {
			_, _ = conn.WriteTo(v.reply, from) // who gets nothing asks again
		}
	}
}

func (s *Server) accept(ctx context.Context, streams net.Listener, all *sync.WaitGroup) error {
	for failures := 0; ; {
		conn, err := streams.Accept()
		if err != nil {
			if failures++; ctx.Err() != nil || errors.Is(err, net.ErrClosed) || failures >= maxFailures {
				return err
			}
			continue
		}
		failures = 0
		select {
		case s.streams <- struct{}{}:
			all.Go(func() {
				defer func() { <-s.streams }()
				s.stream(ctx, conn)
			})
		default:
			_ = conn.Close()
		}
	}
}

// stream answers what comes over one connection.
func (s *Server) stream(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	silent := time.AfterFunc(streamIdle, cancel)
	defer silent.Stop()
	buffer := make([]byte, 2+maxQuery)
	for {
		query, err := readQuery(conn, buffer)
		if err != nil {
			return
		}
		v := s.judge(query)
		if s.mayPass(v, conn.RemoteAddr()) {
			select {
			case s.passing <- struct{}{}:
				v.reply = s.pass(ctx, "tcp", v, query)
				<-s.passing
			default:
				v.reply = failed(query)
			}
		}
		if v.reply == nil || write(conn, v.reply) != nil {
			return
		}
		silent.Reset(streamIdle)
	}
}

// write sends a message over a stream, in one piece.
func write(conn net.Conn, message []byte) error {
	framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(message)), uint16(len(message)))
	_, err := conn.Write(append(framed, message...))
	return err
}
