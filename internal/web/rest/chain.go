package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/fault"
)

// Serve takes a request through the chain: request id, recovery, body
// cap, deadline, caller, permission, handler. path is below the API's root.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, path string) {
	ops, params := a.routes.find(path)
	a.serve(w, r, ops, params)
}

// Missing answers a request for a path that is not of this API.
func (a *API) Missing(w http.ResponseWriter, r *http.Request) { a.serve(w, r, nil, nil) }

func (a *API) serve(w http.ResponseWriter, r *http.Request, ops map[string]*operation, params []string) {
	start := time.Now()
	c := &Call{request: r, State: a.State, ID: state.NewID(), bodies: a.Bodies, w: w, status: http.StatusOK}
	c.Log = a.Log.With("request", c.ID)
	defer c.letGo()
	defer func() {
		if p := recover(); p != nil {
			a.recovered(c, p)
		}
		a.answered(c, time.Since(start))
	}()
	cors(w.Header(), r)
	if r.Method == http.MethodOptions {
		c.write(http.StatusOK, jsonType, nil)
		return
	}
	op := ops[methodOf(r)]
	switch {
	case ops == nil:
		c.fail(fault.New(fault.CodeNotFound, "there is nothing at this path"))
		return
	case op == nil:
		c.fail(fault.New(fault.CodeMethod, fmt.Sprintf("this path does not answer %s", r.Method)))
		return
	}
	c.op, c.path = op, params
	ctx, cancel := context.WithTimeout(r.Context(), a.Timeout)
	defer cancel()
	if a.Trace != nil {
		ctx, c.traced = a.Trace(r.WithContext(ctx), op.Op)
	}
	c.request = r.WithContext(ctx)
	c.request.Body = http.MaxBytesReader(w, r.Body, op.MaxBody)
	if !a.Requests.Take() {
		c.fail(errBusy)
		return
	}
	defer a.Requests.Leave()
	if wait := op.wait(r); wait > 0 {
		c.retryAfter = wait
		c.fail(fault.New(fault.CodeRateLimited, "there were too many attempts from this address; wait and try again"))
		return
	}
	if err := a.call(c); err != nil {
		c.fail(err)
	}
}

// wait is how long a client must wait before it may call the operation.
func (o *operation) wait(r *http.Request) time.Duration {
	if o.Attempts == nil {
		return 0
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		from = netip.AddrPort{} // all that have no address count as one
	}
	return o.Attempts.Take(from.Addr())
}

// answered tells of a request that is over.
func (a *API) answered(c *Call, took time.Duration) {
	name := Unknown
	if c.op != nil {
		name = c.op.Name
	}
	if c.traced != nil {
		c.traced(c.status)
	}
	if a.Answered != nil {
		a.Answered(name, c.status, took)
	}
	a.Log.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("request", c.ID), slog.String("api", a.Name), slog.String("operation", name), slog.String("by", c.Author().String()),
		slog.Int("status", c.status), slog.Int("bytes", c.bytes), slog.Duration("took", took))
}

// call runs the operation for a caller that may use it.
func (a *API) call(c *Call) error {
	if c.request.ContentLength > c.op.MaxBody {
		return fault.New(fault.CodeBodyTooLarge, fmt.Sprintf("the body is larger than %d bytes", c.op.MaxBody))
	}
	c.Snap = a.State.Snapshot()
	caller, err := a.Gate(c)
	if err != nil && c.op.Auth != Anonymous {
		return err
	}
	c.Caller = caller
	if c.op.Auth != Anonymous && (caller == nil || caller.Access() < c.op.Auth) {
		return fault.New(fault.CodeUnauthorized, "")
	}
	if err := c.readParams(); err != nil {
		return err
	}
	return c.op.handle(c)
}

// recovered answers for a handler that panicked.
func (a *API) recovered(c *Call, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	c.Log.Error("handler panicked", "panic", p, "stack", string(debug.Stack()))
	c.fail(fault.New(fault.CodeUnhandled, ""))
}

// cors lets pages of any origin call the API. The session travels in a header
// that only the page itself can set, and browser credentials are not allowed,
// so an origin gains nothing that it was not given.
func cors(h http.Header, r *http.Request) {
	if r.Header.Get("Origin") == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "content-type, accept, authorization, net-session, zt-session, mfa-validation-code")
	h.Set("Access-Control-Expose-Headers", "net-session, zt-session, expires-at, expiration-seconds, "+ignoredHeader)
}
