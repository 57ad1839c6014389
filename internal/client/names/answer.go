package names

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

const (
	// ttl is how long an answer counts, in seconds: a service that is gone is
	// soon asked for in vain. The address stays the name's for longer.
	ttl = 30
	// ttlNone is how long it counts that there is nothing: a service that
	// appears should be found at once.
	ttlNone = 1
	// maxReply is what we take over UDP, as it is said to who asks: it passes
	// through any network in one piece. Our own answers have one record, and are
	// shorter than what anybody takes.
	maxReply = 1232
	// headerSize is that of any message.
	headerSize = 12
)

// verdict is what becomes of a question.
type verdict struct {
	reply []byte // nil if there is none
	// pass has the name if the question is not ours to answer and may go to
	// others; reply is what is answered if it does not.
	pass string
}

// judge answers a question as it came. It is all that is done for a name of
// ours, and takes microseconds.
func (s *Server) judge(query []byte) verdict {
	if len(query) < headerSize || query[2]&0x80 != 0 { // no question, and an answer to it might never end
		return verdict{}
	}
	var q dns.Msg
	if err := q.Unpack(query); err != nil || len(q.Question) != 1 {
		if q.Opcode != dns.OpcodeQuery && err == nil {
			return refuse(query, dns.RcodeNotImplemented)
		}
		return refuse(query, dns.RcodeFormatError)
	}
	if q.Opcode != dns.OpcodeQuery {
		return refuse(query, dns.RcodeNotImplemented)
	}
	r := new(dns.Msg)
	r.SetReply(&q)
	r.Compress = true
	r.RecursionAvailable = true // or programs say that something is wrong
	opts := 0
	for _, rr := range q.Extra {
		if opt, ok := rr.(*dns.OPT); ok {
			if opts++; opts > 1 || opt.Hdr.Name != "." {
				return refuse(query, dns.RcodeFormatError)
			}
			r.SetEdns0(maxReply, opt.Do())
			if opt.Version() != 0 {
				r.Rcode = dns.RcodeBadVers
			}
		}
	}
	var pass string
	if r.Rcode == dns.RcodeSuccess {
		pass = s.fill(r, q.Question[0])
	}
	reply, err := r.Pack()
	if err != nil {
		return refuse(query, dns.RcodeServerFailure)
	}
	return verdict{reply, pass}
}

// refuse answers with a header alone: what came after it is not repeated.
func refuse(query []byte, code int) verdict {
	reply := make([]byte, headerSize)
	copy(reply, query[:2])
	reply[2] = 0x80 | query[2]&0x79 // an answer; its operation and whether others were to be asked
	reply[3] = byte(code)
	return verdict{reply: reply}
}

// fill answers one question, or returns the name if it is none of ours.
func (s *Server) fill(r *dns.Msg, q dns.Question) (pass string) {
	if q.Qclass != dns.ClassINET || q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR || q.Qtype == dns.TypeOPT {
		r.Rcode = dns.RcodeRefused
		return ""
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name, "."))
	if s.opt.Covers(name) {
		r.Authoritative = true
		if q.Qtype != dns.TypeA && q.Qtype != dns.TypeANY {
			none(r, q.Name)
			return ""
		}
		ip, err := s.opt.Pool.Addr(name)
		if err != nil {
			s.complain(err)
			r.Rcode = dns.RcodeServerFailure
			return ""
		}
		four := ip.As4()
		r.Answer = []dns.RR{&dns.A{Hdr: header(q.Name, dns.TypeA, ttl), A: four[:]}}
		return ""
	}
	if ip, ok := reversed(name); ok && s.opt.Pool.Prefix().Contains(ip) {
		r.Authoritative = true
		has, ok := s.opt.Pool.Name(ip)
		switch {
		case !ok || !s.opt.Covers(has):
			r.Rcode = dns.RcodeNameError
			none(r, q.Name)
		case q.Qtype == dns.TypePTR || q.Qtype == dns.TypeANY:
			r.Answer = []dns.RR{&dns.PTR{Hdr: header(q.Name, dns.TypePTR, ttl), Ptr: has + "."}}
		default:
			none(r, q.Name)
		}
		return ""
	}
	r.Rcode = dns.RcodeNameError
	none(r, ".")
	return name
}

func header(name string, typ uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET, Ttl: ttl}
}

// none says how long it counts that there is no such thing.
func none(r *dns.Msg, zone string) {
	r.Ns = []dns.RR{&dns.SOA{
		Hdr: header(zone, dns.TypeSOA, ttlNone), Ns: ".", Mbox: ".",
		Serial: 1, Refresh: ttlNone, Retry: ttlNone, Expire: ttlNone, Minttl: ttlNone,
	}}
}

// reversed is the address that a name is the reverse of, of IPv4.
func reversed(name string) (netip.Addr, bool) {
	digits, ok := strings.CutSuffix(name, ".in-addr.arpa")
	if !ok {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(digits)
	if err != nil || !ip.Is4() {
		return netip.Addr{}, false
	}
	four := ip.As4()
	return netip.AddrFrom4([4]byte{four[3], four[2], four[1], four[0]}), true
}
