package rest

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
	"netkeep/internal/ops/limit"
)

// Call is one request on its way through an operation.
type Call struct {
	Request *http.Request
	State   *state.State
	// Snap is the state that this request sees, from begin to end.
	Snap   *state.Snapshot
	Caller Caller // nil for nobody
	Log    *slog.Logger
	ID     string // of the request, also in the log and in errors
	// Memo is for what the handlers of an API compute once a request.
	Memo any

	bodies  *limit.Memory
	release []func() // what the request holds

	w      http.ResponseWriter
	op     *operation
	params []string
	status int
	bytes  int              // of the answer's body
	traced func(status int) // to be called in the end; nil if nobody asked

	retryAfter time.Duration // with a refusal for now; a second if not set
}

// Context ends when the client leaves or the time for the request is over.
func (c *Call) Context() context.Context { return c.Request.Context() }

// Author is who makes the writes of this request, and on what occasion.
func (c *Call) Author() state.Author {
	by := state.Nobody
	if c.Caller != nil {
		by = c.Caller.Author()
	}
	by.Request, by.Source = c.ID, c.Request.RemoteAddr
	if host, _, err := net.SplitHostPort(by.Source); err == nil {
		by.Source = host
	}
	if c.op != nil {
		by.Operation = c.op.Name
	}
	return by
}

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
			return c.params[i]
		}
		i++
	}
	panic("rest: " + c.op.Path + " has no parameter " + name)
}

// Session returns the session token that the request carries. Two header
// names are accepted; a request that gives both must mean one thing.
func (c *Call) Session() (token string, ok bool) {
	values := slices.Concat(c.Request.Header.Values("net-session"), c.Request.Header.Values("zt-session"))
	if len(values) == 0 || len(slices.Compact(values)) != 1 {
		return "", false
	}
	return values[0], values[0] != ""
}

// body reads the request's JSON object.
func (c *Call) body(optional bool) (kind.Body, error) {
	data, err := c.read()
	if err != nil {
		return kind.Body{}, err
	}
	if len(data) == 0 {
		if optional {
			return kind.ReadBody([]byte("{}"))
		}
		return kind.Body{}, fault.Invalid("body", "is required", nil)
	}
	if typ, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type")); typ != "application/json" {
		return kind.Body{}, fault.On(fault.CodeContentType, "Content-Type", "must be application/json", typ)
	}
	if tooDeep(data) {
		return kind.Body{}, fault.New(fault.CodeBody, "the body is nested more than "+strconv.Itoa(maxDepth)+" deep")
	}
	return kind.ReadBody(data)
}

// maxDepth is how deeply a body may be nested. What it holds is nested again
// in the answers that show it, and one record must not make a list too deep
// for a client to read.
const maxDepth = 128

// tooDeep looks at brackets only: whether they are in order is for the parser
// to say.
func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// read takes the whole body, which the cap of the operation bounds.
func (c *Call) read() ([]byte, error) {
	data, release, err := c.bodies.ReadAll(c.Request.Body, c.op.MaxBody)
	c.release = append(c.release, release)
	switch {
	case err == nil:
		return data, nil
	case errors.Is(err, limit.ErrFull):
		return nil, errBusy
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fault.New(fault.CodeBodyTooLarge, "the body is larger than "+strconv.FormatInt(tooLarge.Limit, 10)+" bytes")
	}
	return nil, fault.Wrap(fault.CodeBody, err)
}

// letGo gives back what the request holds.
func (c *Call) letGo() {
	for _, release := range c.release {
		release()
	}
}

// errBusy says that there is more to do than can be done.
var errBusy = fault.New(fault.CodeUnavailable, "the controller is busy; try again")

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
	c.write(status, "application/json", *buf)
	return nil
}

// write sends a whole answer, which nobody on the way may keep: most carry a
// secret or what only this caller may see. A client that left is no error of
// ours.
func (c *Call) write(status int, contentType string, body []byte) {
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.status = status
	c.w.WriteHeader(status)
	if c.Request.Method != http.MethodHead {
		c.bytes, _ = c.w.Write(body)
	}
}
