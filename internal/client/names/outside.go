package names

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

// Outside asks who would be asked if no name were ours. It is the Dial of a
// net.Resolver, for what carries connections of services and for servers that
// services lead to: those may have names that are a service's too, and to take its
// address would lead them around in a circle.
func (s *Server) Outside(_ context.Context, _, address string) (net.Conn, error) {
	near, far := net.Pipe()
	usual, _ := netip.ParseAddrPort(address)
	go func() {
		defer far.Close()
		silent := time.AfterFunc(streamIdle, func() { _ = far.Close() })
		defer silent.Stop()
		buffer := make([]byte, 2+maxQuery)
		query, err := readQuery(far, buffer)
		if err != nil {
			return
		}
		_ = write(far, s.outside(query, usual))
	}()
	return near, nil
}

// outside passes a question on, whosever name it has: to usual, if nobody knows who
// else would be asked.
func (s *Server) outside(query []byte, usual netip.AddrPort) []byte {
	var q dns.Msg
	if err := q.Unpack(query); err != nil || len(q.Question) != 1 {
		return refuse(query, dns.RcodeFormatError).reply
	}
	servers := []netip.AddrPort(nil)
	if s.opt.Servers != nil {
		servers = s.opt.Servers(q.Question[0].Name)
	}
	if len(servers) == 0 && usual.IsValid() && !s.opt.Pool.Prefix().Contains(usual.Addr()) {
		servers = []netip.AddrPort{usual}
	}
	if len(servers) == 0 {
		return failed(query)
	}
	ctx, cancel := context.WithTimeout(context.Background(), passTime)
	defer cancel()
	reply := s.askAll(ctx, "udp", servers, query)
	if reply[2]&truncated != 0 {
		reply = s.askAll(ctx, "tcp", servers, query)
	}
	return reply
}

// truncated is the bit of an answer that did not fit.
const truncated = 0x02

// readQuery reads a message from a stream into a buffer that has room for it.
func readQuery(conn net.Conn, buffer []byte) ([]byte, error) {
	if _, err := io.ReadFull(conn, buffer[:2]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(buffer))
	if n > len(buffer)-2 {
		return nil, io.ErrShortBuffer
	}
	query := buffer[2 : 2+n]
	_, err := io.ReadFull(conn, query)
	return query, err
}
