package link

import "net"

// unsent is how many bytes the system takes for a socket before they are on
// their way: enough to keep it busy, and little to wait for.
const unsent = 256 << 10

// tune prepares the socket below a connection for a link. Without it the link
// works too.
func (l *Links) tune(conn net.Conn) {
	for {
		over, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = over.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err == nil {
		err = holdLittle(raw)
	}
	if err != nil {
		l.opt.Log.Debug("a socket stays as it was", "error", err)
	}
}
