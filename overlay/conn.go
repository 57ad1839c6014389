package overlay

import (
	"cmp"
	"net"
	"time"

	"netkeep.internal/internal/client/sdk"
)

// Conn is a connection between somebody who dials a service and somebody who
// hosts it. It is a net.Conn.
type Conn struct{ c *sdk.Conn }

// Identity is one of the network.
type Identity struct{ ID, Name string }

// String is the name, or the id of one whose name is not known.
func (i Identity) String() string { return cmp.Or(i.Name, i.ID) }

// Dialer is who dialled a connection that was accepted, as the controller says
// it, whatever the dialer calls itself. Names can be given to another identity
// one day, ids never are. It is not known on a connection that was dialled from
// here, and with a router that does not pass it on: routers of OpenZiti before
// their second generation.
func (c *Conn) Dialer() (who Identity, known bool) {
	info := c.c.Info()
	return Identity{info.Dialer, info.DialerName}, info.Dialer != ""
}

// DialerOf is [Conn.Dialer] of a connection that may have something around it
// which says what is inside, as a tls.Conn does.
func DialerOf(conn net.Conn) (who Identity, known bool) {
	for conn != nil {
		switch c := conn.(type) {
		case *Conn:
			return c.Dialer()
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return Identity{}, false
		}
	}
	return Identity{}, false
}

// Data is what the dialer gave along, on a connection that was accepted; see
// [WithData].
func (c *Conn) Data() []byte { return c.c.Info().Data }

// Service is the name of the service.
func (c *Conn) Service() string { return c.c.Info().Service }

// Circuit is what the connection is called in the network: routers and the
// controller log it under this name.
func (c *Conn) Circuit() string { return c.c.Info().Circuit }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) { return c.c.Read(p) }

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) { return c.c.Write(p) }

// CloseWrite tells the other end that nothing more is written. What it sends can
// still be read.
func (c *Conn) CloseWrite() error { return c.c.CloseWrite() }

// Close implements net.Conn.
func (c *Conn) Close() error { return c.c.Close() }

// LocalAddr implements net.Conn: it is the name of the service where it was
// accepted, and of the identity where it was dialled.
func (c *Conn) LocalAddr() net.Addr { return c.c.LocalAddr() }

// RemoteAddr implements net.Conn: it is the name of the service where it was
// dialled, and of who dialled where it was accepted, as of Dialer; empty if that
// is not known.
func (c *Conn) RemoteAddr() net.Addr { return c.c.RemoteAddr() }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error { return c.c.SetDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.c.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.c.SetWriteDeadline(t) }

// Listener hosts a service. It is a net.Listener.
type Listener struct{ l *sdk.Listener }

// Accept implements net.Listener: what it returns is a *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.AcceptConn()
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// AcceptConn waits for the next connection.
func (l *Listener) AcceptConn() (*Conn, error) {
	for {
		p, err := l.l.AcceptPending()
		if err != nil {
			return nil, err
		}
		// A dialer that is gone already is no error of the listener.
		if c, err := p.Accept(); err == nil {
			return &Conn{c}, nil
		}
	}
}

// Close implements net.Listener. Connections that were accepted go on.
func (l *Listener) Close() error { return l.l.Close() }

// Addr implements net.Listener: it is the name of the service.
func (l *Listener) Addr() net.Addr { return l.l.Addr() }
