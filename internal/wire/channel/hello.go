package channel

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Hello is the first frame of whoever dialled.
type Hello struct {
	ID      string // who it says it is
	Headers wire.Headers
	seq     int32 // its number
}

// helloSeq is the number of hellos, of most programs, and of the answers to them.
const helloSeq = -1

// helloBounds are small: nothing is known of the peer yet.
var helloBounds = wire.Bounds{Headers: 16384, Body: 4192}

// ErrRefused says that the peer does not want the connection.
var ErrRefused = errors.New("channel: refused")

// Refused is ErrRefused with what the peer says to people.
type Refused struct{ Words string }

func (r *Refused) Error() string { return ErrRefused.Error() + ": " + r.Words }
func (r *Refused) Unwrap() error { return ErrRefused }

// Grouped reports whether the socket is one of several of a channel.
func (h *Hello) Grouped() bool { return h.Headers.Bool(message.HeaderGrouped) }

// First reports whether the socket begins a channel.
func (h *Hello) First() bool { return !h.Grouped() || h.Headers.Bool(message.HeaderGroupFirst) }

// ConnectionID is the channel that the socket belongs to, if the peer says.
func (h *Hello) ConnectionID() string { return h.Headers.Text(message.HeaderConnectionID) }

// Secret is what shows that a further socket belongs to its channel.
func (h *Hello) Secret() []byte {
	if !h.Grouped() {
		return nil
	}
	return h.Headers[message.HeaderGroupSecret]
}

// NewSecret is what shows that sockets belong to a new group: nobody guesses it.
func NewSecret() []byte { return []byte(rand.Text()) }

// NewID is a name that nothing else has, for a channel or what is said over it.
func NewID() string { return rand.Text()[:22] }

// ReadHello takes a hello from a socket, which must arrive before the deadline.
func ReadHello(conn net.Conn, deadline time.Time) (*Hello, error) {
	f, err := exchange(conn, deadline, nil)
	switch {
	case err != nil:
		return nil, err
	case f.Type != message.TypeHello:
		return nil, fmt.Errorf("hello: %w: it begins with a frame of type %d", wire.ErrMagic, f.Type)
	}
	return &Hello{ID: string(f.Body), Headers: f.Headers, seq: f.Seq}, nil
}

// Welcome answers a hello.
func (h *Hello) Welcome(conn net.Conn, deadline time.Time, headers wire.Headers) error {
	f := resultFrame(true, "")
	for key, value := range headers {
		f.Headers[key] = value
	}
	return answer(conn, deadline, h.seq, f)
}

// Refuse says, in answer to the hello of a router, why the connection is not
// wanted. It need not have been read.
func Refuse(conn net.Conn, deadline time.Time, reason string) error {
	return answer(conn, deadline, helloSeq, resultFrame(false, reason))
}

// answer answers the hello with a number: not everybody's is the usual one, and
// whoever waits for an answer to its own would not know this one.
func answer(conn net.Conn, deadline time.Time, to int32, f *wire.Frame) error {
	f.Seq = helloSeq
	f.Headers.SetUint32(message.HeaderReplyFor, uint32(to))
	return within(conn, deadline, func() error {
		_, err := conn.Write(f.Append(nil))
		return err
	})
}

// Greet sends a hello and returns the headers of the answer.
func Greet(conn net.Conn, deadline time.Time, h Hello) (wire.Headers, error) {
	f, err := exchange(conn, deadline, &wire.Frame{Type: message.TypeHello, Seq: helloSeq, Headers: h.Headers, Body: []byte(h.ID)})
	switch {
	case err != nil:
		return nil, err
	case f.Type != message.TypeResult || !f.Headers.Bool(message.HeaderSuccess):
		return nil, &Refused{string(f.Body)}
	}
	return f.Headers, nil
}

// exchange writes a frame, if there is one, and reads one.
func exchange(conn net.Conn, deadline time.Time, send *wire.Frame) (f *wire.Frame, err error) {
	err = within(conn, deadline, func() error {
		if send != nil {
			if _, err := conn.Write(send.Append(nil)); err != nil {
				return err
			}
		}
		// Without a buffer: what comes behind belongs to the channel.
		f, err = wire.Read(conn, helloBounds)
		return err
	})
	return f, err
}

// within does what a socket must do before the deadline.
func within(conn net.Conn, deadline time.Time, do func() error) error {
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if err := do(); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	return conn.SetDeadline(time.Time{})
}
