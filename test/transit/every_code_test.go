package transit

import (
	"net"
	"os"
	"regexp"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/networktest"
)

// unprovoked are the codes that no controller of ours gives a router of ours for a
// client at will, and why. What a client makes of them is in TestRefusedByCode.
var unprovoked = map[string]string{
	"INTERNAL":                 "the controller gives it for its own mistakes alone; those of clients that a router answers with it by itself are in TestRefusedDials",
	"INVALID_SERVICE":          "sessions end with their service, so who has one hears of that; routers that are clients themselves hear it, which test/fabric has",
	"TUNNELING_NOT_ENABLED":    "only routers that are clients themselves hear it, which test/fabric has",
	"ACCESS_DENIED":            "sessions end with the policy, so who has one hears of that; routers that are clients themselves hear it, which test/fabric has",
	"INVALID_COST":             "clients say costs in two bytes, and all of those are allowed",
	"INVALID_API_SESSION_TYPE": "only routers of others say so",
	"POSTURE_FAILED":           "only routers of others say so",
	"HOST_NAME_UNKNOWN":        "it takes a name server that answers",
	"HOST_PORT_NOT_ALLOWED":    "only hosts of others say so",
	"NO_LINK":                  "it takes a link that is lost between the choice of a path and its use",
	"HOST_FULL":                "it takes as many connections as a router holds for one host",
}

// codesOfPage are the codes that the page about them has.
func codesOfPage(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile("../../docs/codes.md")
	must(t, err)
	all := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		all[row[1]] = true
	}
	return all
}

// TestEveryCode has the controller refuse dials and hosts with every code that there
// is, as far as somebody can bring that about: the client hears that code from
// its router.
func TestEveryCode(t *testing.T) {
	n := networktest.New(t, shared)
	one, two := n.AddRouter("one"), n.AddRouter("two")
	policy := n.Admin.Get(networktest.Management + `service-edge-router-policies?filter=name="` + n.Word + `"`).Want(200).List()[0]["id"].(string)
	n.Admin.Patch(networktest.Management+"service-edge-router-policies/"+policy, M{"edgeRouterRoles": []string{"@" + one.ID}}).Want(200)
	me, other := login(t, n, n.AddIdentity("me")), login(t, n, n.AddIdentity("other"))
	at := func(r *raw, router *networktest.Router) *caller {
		conn, err := r.connect(router, r.token)
		must(t, err)
		return &caller{t: t, conn: conn}
	}
	c := at(me, one)
	hosted := n.AddService("hosted", false)
	token, dial := me.session(hosted, "Bind"), me.session(hosted, "Dial")
	heard := map[string]bool{}
	for code, refused := range map[string]func() *wire.Frame{
		"INVALID_API_SESSION": func() *wire.Frame { return c.dial(other.session(hosted, "Dial")) },
		"INVALID_SESSION":     func() *wire.Frame { return c.host("nonsense", nil) },
		"WRONG_SESSION_TYPE":  func() *wire.Frame { return c.host(dial, nil) },
		"ROUTER_NOT_ALLOWED":  func() *wire.Frame { return at(me, two).dial(dial) },
		"INVALID_TERMINATOR":  func() *wire.Frame { return c.dial(me.session(n.AddService("empty", false), "Dial")) },
		"ENCRYPTION_MISSING":  func() *wire.Frame { return c.dial(me.session(n.AddService("sealed", true), "Dial")) },
		"INVALID_PRECEDENCE": func() *wire.Frame {
			return c.host(token, wire.Headers{message.HeaderPrecedence: {9}})
		},
		"INVALID_INSTANCE": func() *wire.Frame {
			name := wire.Headers{message.HeaderInstance: []byte("me")}
			if f := at(other, one).host(other.session(hosted, "Bind"), name); f.Type != message.TypeBound {
				t.Fatalf("hosting was answered with %d %q", f.Type, f.Body)
			}
			return c.host(token, name)
		},
		"BUSY":               func() *wire.Frame { return tooMany(at(me, one), me.session(n.AddService("many", false), "Bind")) },
		"HOST_UNKNOWN":       func() *wire.Frame { return c.dial(me.session(ends(n, one, "unknown", "edge", "nobody"), "Dial")) },
		"HOST_MISCONFIGURED": func() *wire.Frame { return c.dial(me.session(leaves(n, one, "wrong", "gopher:there"), "Dial")) },
		"HOST_UNREACHABLE": func() *wire.Frame {
			return c.dial(me.session(leaves(n, one, "dead", "tcp:127.0.0.1:"+machine.Port(t)), "Dial"))
		},
		"HOST_REJECTED": func() *wire.Frame {
			return dialAnswered(c, me, at(other, one), other, n.AddService("shy", false), &wire.Frame{Type: message.TypeDialFailed, Body: []byte("not you")})
		},
		"HOST_FAILED": func() *wire.Frame {
			return dialAnswered(c, me, at(other, one), other, n.AddService("vague", false), &wire.Frame{Type: message.TypeDialSuccess})
		},
		"HOST_TIMED_OUT": func() *wire.Frame {
			return dialAnswered(c, me, at(other, one), other, n.AddService("mute", false), nil)
		},
	} {
		heard[code] = true
		f := refused()
		if got := message.RefusalIn(f); f.Type != message.TypeClosed || got.Name() != code {
			t.Errorf("%s was to be heard, not %d %s", code, f.Type, got.Named())
		}
	}
	page := codesOfPage(t)
	for code := range page {
		if heard[code] == (unprovoked[code] != "") {
			t.Errorf("%s is neither heard nor said to be out of reach, or both", code)
		}
	}
	if len(page) != len(heard)+len(unprovoked) {
		t.Errorf("the page has %d codes, and this test %d and %d", len(page), len(heard), len(unprovoked))
	}
}

// caller is a client that asks a router for one thing after the other.
type caller struct {
	t    *testing.T
	conn net.Conn
	last int32
}

// dial returns what a dial is answered with.
func (c *caller) dial(token string) *wire.Frame {
	c.t.Helper()
	c.last++
	return ask(c.t, c.conn, &wire.Frame{Type: message.TypeConnect, Seq: c.last, Headers: numbered(uint32(c.last)), Body: []byte(token)})
}

// host returns what becomes of hosting.
func (c *caller) host(token string, more wire.Headers) *wire.Frame {
	c.t.Helper()
	c.last++
	h := numbered(uint32(c.last))
	h.SetBool(message.HeaderTellsBound, true)
	for key, value := range more {
		h[key] = value
	}
	if answer := ask(c.t, c.conn, &wire.Frame{Type: message.TypeBind, Seq: c.last, Headers: h, Body: []byte(token)}); answer.Type != message.TypeConnected {
		return answer
	}
	return next(c.t, c.conn)
}

// tooMany hosts until somebody has enough.
func tooMany(c *caller, token string) *wire.Frame {
	c.t.Helper()
	for range 1000 {
		if f := c.host(token, nil); f.Type != message.TypeBound {
			return f
		}
	}
	c.t.Fatal("there is no bound")
	return nil
}

// ends makes a service that has a terminator which the admin wrote.
func ends(n *networktest.Network, at *networktest.Router, name, binding, address string) string {
	n.T.Helper()
	service := n.AddService(name, false)
	id := n.Admin.Get(networktest.Management + `services?filter=name="` + service + `"`).Want(200).List()[0]["id"]
	n.Admin.Post(networktest.Management+"terminators", M{"service": id, "router": at.ID, "binding": binding, "address": address}).Want(201)
	return service
}

// dialAnswered has one client host a service and another dial it, and returns what
// the dial comes to when the host answers so, or not at all.
func dialAnswered(c *caller, who *raw, host *caller, hosting *raw, service string, answer *wire.Frame) *wire.Frame {
	c.t.Helper()
	if f := host.host(hosting.session(service, "Bind"), nil); f.Type != message.TypeBound {
		c.t.Fatalf("hosting was answered with %d %q", f.Type, f.Body)
	}
	if answer != nil {
		go func() {
			for {
				f, err := wire.Read(host.conn, wire.Bounds{Headers: 1 << 16, Body: 1 << 20})
				if err != nil {
					return
				}
				if f.Type == message.TypeDial {
					said := *answer
					said.Seq, said.Headers = 1000, wire.Headers{}
					said.Headers.SetUint32(message.HeaderReplyFor, uint32(f.Seq))
					_, _ = host.conn.Write(said.Append(nil))
				}
			}
		}()
	}
	return c.dial(who.session(service, "Dial"))
}
