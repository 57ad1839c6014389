package names

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"
)

const (
	// maxPassing is how many questions others are asked at once: each takes a
	// socket.
	maxPassing = 256
	// maxServers is how many are asked for one name, as resolvers have it.
	maxServers = 3
	// passTime is how long all of them may take together: after that, who asked
	// has asked somebody else.
	passTime = 4500 * time.Millisecond
)

// mayPass reports whether a question may go to others: it is not ours, and who
// asks has to be this machine, or it would resolve names for anybody.
func (s *Server) mayPass(v verdict, from net.Addr) bool {
	return v.pass != "" && s.opt.Servers != nil && s.near(from)
}

// near reports whether an address is of this machine.
func (s *Server) near(from net.Addr) bool {
	at, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return false
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.IsLoopback() || s.opt.Pool.Prefix().Contains(ip) {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		block, err := netip.ParsePrefix(a.String())
		return err == nil && block.Addr().Unmap() == ip
	})
}

// pass asks others what is not ours, as it was asked, and returns what they
// answer as it is.
func (s *Server) pass(ctx context.Context, network string, v verdict, query []byte) []byte {
	servers := s.opt.Servers(v.pass)
	if len(servers) == 0 {
		return v.reply
	}
	return s.askAll(ctx, network, servers, query)
}

// askAll asks servers one after the other until one knows.
func (s *Server) askAll(ctx context.Context, network string, servers []netip.AddrPort, query []byte) []byte {
	servers = servers[:min(len(servers), maxServers)]
	reply := failed(query)
	for _, server := range servers {
		got, err := s.ask(ctx, network, server, query, passTime/time.Duration(len(servers)))
		if err != nil {
			continue
		}
		reply = got
		if code := got[3] & 0xf; code != dns.RcodeServerFailure && code != dns.RcodeRefused && code != dns.RcodeNotImplemented {
			break
		}
	}
	return reply
}

// failed says that no one answered, which has who asks try somebody else.
func failed(query []byte) []byte { return refuse(query, dns.RcodeServerFailure).reply }

// ask asks one server.
func (s *Server) ask(ctx context.Context, network string, server netip.AddrPort, query []byte, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := s.opt.Dial(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if network == "tcp" {
		return askStream(conn, query)
	}
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	buffer := buffers.Get().(*[65535]byte)
	defer buffers.Put(buffer)
	for {
		n, err := conn.Read(buffer[:])
		if err != nil {
			return nil, err
		}
		if answers(buffer[:n], query) {
			return append([]byte(nil), buffer[:n]...), nil
		}
	}
}

// buffers are for answers of any size, of which hardly one is large.
var buffers = sync.Pool{New: func() any { return new([65535]byte) }}

func askStream(conn net.Conn, query []byte) ([]byte, error) {
	if err := write(conn, query); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	reply := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, reply); err != nil {
		return nil, err
	}
	if !answers(reply, query) {
		return nil, errors.New("it answers something else")
	}
	return reply, nil
}

// answers reports whether a message is the answer to a question: others on the
// way could send some too. A refusal need not repeat what was asked.
func answers(reply, query []byte) bool {
	if len(reply) < headerSize || reply[2]&0x80 == 0 || reply[0] != query[0] || reply[1] != query[1] {
		return false
	}
	if code := reply[3] & 0xf; binary.BigEndian.Uint16(reply[4:]) == 0 {
		return code != dns.RcodeSuccess && code != dns.RcodeNameError
	}
	end := questionEnd(query)
	return end > 0 && len(reply) >= end && bytes.EqualFold(reply[headerSize:end], query[headerSize:end])
}

// questionEnd is where the question of a message ends, or 0 if that cannot be
// told. The first name of a message has nothing that it could point to.
func questionEnd(message []byte) int {
	at := headerSize
	for at < len(message) && message[at] != 0 {
		if message[at] >= 64 {
			return 0
		}
		at += 1 + int(message[at])
	}
	if at += 1 + 4; at > len(message) {
		return 0
	}
	return at
}
