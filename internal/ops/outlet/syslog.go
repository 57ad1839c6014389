package outlet

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"netkeep.internal/internal/ops/egress"
)

// Syslog has entries sent to a collector of syslog: RFC 5424 in the frames of RFC 5425,
// over TLS. The collector does not say what it has got: entries count as there when the
// connection has lasted for a while behind them, and are sent again if it has not.
type Syslog struct {
	Address string
	Client  *egress.Client
	Now     func() time.Time

	mu     sync.Mutex
	conn   *tls.Conn
	lost   chan struct{} // closed when the connection is, with entries in doubt
	broken bool          // whether it is closed, and nobody has sent since
	begun  bool
	sure   int64
	doubt  []doubt // that was sent since, in order
}

// doubt is an entry of which it is not known whether it is there.
type doubt struct {
	number int64
	at     time.Time
}

const (
	// settled is how long a connection has to last behind an entry.
	settled = 5 * time.Second
	// writeTime is how long the collector may take to read.
	writeTime = 30 * time.Second
	// priority is that of an informational message (6) of an audit log (13).
	priority = 13*8 + 6
)

// errBroken says that entries have to be sent again.
var errBroken = errors.New("the connection ended, and what was sent last may not be there")

// Send is for Outlet.
func (s *Syslog) Send(ctx context.Context, entries []Entry) error {
	conn, err := s.open(ctx, entries[0].Record.Number-1)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, e := range entries {
		text := message(e)
		out.WriteString(strconv.Itoa(len(text)))
		out.WriteByte(' ')
		out.Write(text)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	if err = conn.SetWriteDeadline(s.Now().Add(writeTime)); err == nil {
		_, err = conn.Write(out.Bytes())
	}
	if err != nil {
		s.drop(conn)
		return fmt.Errorf("sending to %q: %w", s.Address, err)
	}
	s.mu.Lock()
	s.doubt = append(s.doubt, doubt{entries[len(entries)-1].Record.Number, s.Now()})
	s.mu.Unlock()
	return nil
}

// open returns the connection, which may be a new one. before is the number of the
// entry before the next.
func (s *Syslog) open(ctx context.Context, before int64) (*tls.Conn, error) {
	s.mu.Lock()
	conn := s.conn
	if !s.begun {
		s.sure, s.begun = before, true
	}
	broken := s.broken
	if broken {
		s.broken, s.lost = false, nil
	}
	s.mu.Unlock()
	if broken {
		return nil, fmt.Errorf("sending to %q: %w", s.Address, errBroken)
	}
	if conn != nil {
		return conn, nil
	}
	conn, err := s.Client.Connect(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.conn, s.lost = conn, make(chan struct{})
	s.mu.Unlock()
	go func() { // nobody says anything: this ends when the connection does
		_, _ = io.Copy(io.Discard, conn)
		s.drop(conn)
	}()
	return conn, nil
}

// drop gives a connection up.
func (s *Syslog) drop(conn *tls.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		s.settle()
		if s.broken = len(s.doubt) > 0; s.broken {
			close(s.lost)
		}
		s.conn, s.doubt = nil, nil
	}
}

// settle counts what was sent long enough ago.
func (s *Syslog) settle() {
	for len(s.doubt) > 0 && s.Now().Sub(s.doubt[0].at) >= settled {
		s.sure, s.doubt = s.doubt[0].number, s.doubt[1:]
	}
}

// Sure is for doubtful.
func (s *Syslog) Sure() (number int64, lost <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.settle()
	}
	return s.sure, s.lost
}

// Close is for Outlet.
func (s *Syslog) Close() {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		s.drop(conn)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.broken, s.lost = false, false, nil
}

// message is an entry as RFC 5424 has it.
func message(e Entry) []byte {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-"
	}
	return fmt.Appendf(nil, "<%d>1 %s %s netkeep - %s - %s", priority, e.Record.CreatedAt.Time().Format("2006-01-02T15:04:05.000000Z"), visible(host, 255), visible(e.Record.Event, 32), e.JSON)
}

// visible is a text as headers may have it.
func visible(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r > unicode.MaxASCII || r == 0x7f {
			return '-'
		}
		return r
	}, text)
	if text = text[:min(len(text), most)]; text == "" {
		return "-"
	}
	return text
}
