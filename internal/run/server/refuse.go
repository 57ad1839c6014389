package server

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"netkeep.internal/internal/fabric/roster"
)

// refusing reports whether this controller has been without the store for so long
// that clients should go to others. Many do that only when a connection fails,
// whatever it is that they are answered over it.
func (s *Server) refusing() bool {
	if !s.cfg.Shared() || time.Since(*s.heard.Load()) <= max(s.cfg.Store.Refuse, s.cfg.Store.Grace) {
		return false
	}
	list, _ := roster.List(s.state.Snapshot())
	return len(list) > 1
}

// noteRefusing logs when connections are refused, and when they are no more.
func (s *Server) noteRefusing() {
	now := s.refusing()
	switch was := s.refused.Swap(now); {
	case now && !was:
		s.log.Error("this controller has lost its store and takes no more connections, so that clients go to other controllers; it takes them again when the store answers", "lost", s.heard.Load().UTC().Format(time.RFC3339), "wants", s.wants(), "data", s.cfg.Data)
	case was && !now:
		s.log.Warn("this controller has its store again, and takes connections")
	}
}

// wants is what a controller without its store waits for, and what to do about it, if
// it keeps the store with others.
func (s *Server) wants() string {
	votes := s.votes.Load()
	if votes < 2 {
		return ""
	}
	return fmt.Sprintf("of the %d controllers that keep it together, %d must run and reach each other. Start the others, and see that each reaches the cluster.listen of the others; only if they are lost for good, stop this one and run netkeep cluster recover with its data directory", votes, votes/2+1)
}

// door is a listener that turns everybody away while refusing.
type door struct {
	net.Listener
	refusing func() bool
}

// Accept is for [net.Listener].
func (d door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil || !d.refusing() {
			return c, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a failure, not an end
		}
		_ = c.Close()
	}
}

// parting has connections that are open end with their next answer while refusing.
func (s *Server) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.refusing() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
