package rest

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/ops/limit"
)

// Call is one request on its way through an operation.
type Call struct {
	State *state.State
	// Snap is the state that this request sees, from begin to end.
	Snap   *state.Snapshot
	Caller Caller // nil for nobody
	ID     string // of the request, also in the log and in errors

	api     *API
	sent    []byte     // the request's body
	input   *kind.Body // the same, if it was read as JSON
	parts   []part     // bodies in it that are read by themselves
	release []func()   // what the request holds

	w       http.ResponseWriter
	request *http.Request
	whole   *http.Request // without the bound on the time of the operation
	op      *operation
	path    []string // the path's parameters
	values  []any    // of the operation's Params
	status  int
	bytes   int              // of the answer's body
	target  string           // id of what was made
	became  state.Author     // whom the request turned out to be of
	tried   string           // name of whom it was not, for all we know
	traced  func(status int) // to be called in the end; nil if nobody asked
	start   time.Time
	told    bool // that it was answered

	memos map[any]any // by Memo
	past  bool        // whether Snap is of the past
	// present is the state by which the caller is judged, also if it looks at the past.
	present *state.Snapshot
	names   kind.Reader // by Shown, once it was asked for
}

// Context ends when the client leaves or the time for the request is over.
func (c *Call) Context() context.Context { return c.request.Context() }

// Author is who makes the writes of this request, and on what occasion.
func (c *Call) Author() state.Author {
	by := state.Nobody
	if c.Caller != nil {
		by = c.Caller.Author()
	}
	by.Request, by.Source = c.ID, c.RemoteIP()
	if c.op != nil {
		by.Operation = c.op.Name
	}
	return by
}

// Became notes whom a request turned out to be of that came from nobody, for
// the log.
func (c *Call) Became(who state.Author) { c.became = who }

// Tried notes under which name somebody failed to get in, for the log.
func (c *Call) Tried(name string) { c.tried = shorten(name) }

// Header is the header of the answer.
func (c *Call) Header() http.Header { return c.w.Header() }

// Param returns a path parameter of the operation.
func (c *Call) Param(name string) string {
	i := 0
	for part := range strings.SplitSeq(c.op.Path, "/") {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		if part == "{"+name+"}" {
			return c.path[i]
		}
		i++
	}
	panic("rest: " + c.op.Path + " has no parameter " + name)
}

// Certificates is the chain that the client presented in the handshake, its
// own certificate first.
func (c *Call) Certificates() []*x509.Certificate {
	if c.request.TLS == nil {
		return nil
	}
	return c.request.TLS.PeerCertificates
}

// Key is what the operation asks of its caller beyond a token. What is open to
// who has yet to show a factor is about the session itself and says so alone.
func (c *Call) Key() Key {
	if c.op.Auth == Partial {
		return c.op.Key
	}
	return max(c.op.Key, c.api.Key)
}

// RemoteIP is where the request came from, without the port.
func (c *Call) RemoteIP() string {
	host, _, err := net.SplitHostPort(c.request.RemoteAddr)
	if err != nil {
		return c.request.RemoteAddr
	}
	return host
}

// Ends are where the request came from, with the port, and what the client calls this
// controller.
func (c *Call) Ends() (from, to string) { return c.request.RemoteAddr, c.request.Host }

// From is the same as an address; the zero address if it is none.
func (c *Call) From() netip.Addr {
	from, err := netip.ParseAddrPort(c.request.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr()
}

// Party is on whose account the request is.
func (c *Call) Party() limit.Party {
	switch {
	case c.Caller == nil:
		return limit.At(c.From())
	case c.Caller.Access() == Admin:
		return limit.Party{Rank: limit.Admin, ID: c.Caller.Author().ID}
	}
	return limit.Party{Rank: limit.Member, ID: c.Caller.Author().ID}
}

// Accepts reports whether the client asks for an answer of a content type.
func (c *Call) Accepts(contentType string) bool {
	return strings.Contains(c.request.Header.Get("Accept"), contentType)
}

// Bearer returns the JWT that the request carries; none if there is more than
// one. The contract calls the header by two names.
func (c *Call) Bearer() string {
	values := c.Authorizations()
	if len(values) != 1 {
		return ""
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	if !ok {
		return ""
	}
	return token
}

// Authorizations are all that the request carries in the headers that a JWT may be in.
func (c *Call) Authorizations() []string {
	return slices.Concat(c.request.Header.Values("Authorization"), c.request.Header.Values("Authentication"))
}

// ShowsSession reports whether the request carries anything that is meant to be the
// token of a session.
func (c *Call) ShowsSession() bool {
	return len(c.request.Header.Values(sessionHeader))+len(c.request.Header.Values(otherSessionHeader)) > 0
}

// OfPower reports whether the operation is for those with a power, and not about the
// session or identity of whoever asks.
func (c *Call) OfPower() bool { return c.op.Auth == Admin }

// Root is the root of the API that the request is for.
func (c *Call) Root() string { return c.api.Root }

// The headers that carry a session's token.
const (
	sessionHeader      = "net-session"
	otherSessionHeader = "zt-session"
)

// Session returns the session token that the request carries. Two header
// names are accepted; a request that gives both must mean one thing.
func (c *Call) Session() (token string, ok bool) {
	values := slices.Concat(c.request.Header.Values(sessionHeader), c.request.Header.Values(otherSessionHeader))
	if len(values) == 0 || len(slices.Compact(values)) != 1 {
		return "", false
	}
	return values[0], values[0] != ""
}

// buffers holds answers while they are built.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// send answers with an envelope around what data adds.
func (c *Call) send(status int, data func(dst []byte) []byte) error {
	return c.build(status, func(dst []byte) []byte {
		dst = append(dst, `{"data":`...)
		dst = data(dst)
		return append(dst, `,"meta":{}}`...)
	})
}

// build answers with the JSON body that fill adds.
func (c *Call) build(status int, fill func(dst []byte) []byte) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	*buf = fill((*buf)[:0])
	c.write(status, jsonType, *buf)
	return nil
}

// write sends a whole answer, which nobody on the way may keep: most carry a
// secret or what only this caller may see. A client that left is no error of
// ours.
func (c *Call) write(status int, contentType string, body []byte) {
	c.nameIgnored()
	c.tellRevision(status)
	if !c.looks() && c.api.Sending > 0 { // which may have taken longer than that
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.api.Sending))
	}
	sent, err := c.leave(len(body))
	if err != nil {
		c.fail(errBusy)
		return
	}
	defer sent()
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.status = status
	c.w.WriteHeader(status)
	if c.request.Method != http.MethodHead {
		c.bytes, _ = c.w.Write(body)
	}
}
