package link

import (
	"crypto/tls"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"netkeep.internal/internal/wire/channel"
)

// TestTune looks what the system was told of a socket below TLS.
func TestTune(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	newNetwork(t).node("r", "").tune(tls.Client(channel.NewBulk(conn), &tls.Config{}))
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if got, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); got != unsent || err != nil {
			t.Errorf("the system takes %d bytes, %v", got, err)
		}
	}); err != nil {
		t.Error(err)
	}
}
