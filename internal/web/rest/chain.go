package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/ops/limit"
)

// Serve takes a request through the chain: request id, recovery, rate of
// attempts, what the client has seen, caller, permission, parameters, body, a slot to work in, handler.
// path is below the API's root.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, path string) {
	ops, params := a.routes.find(path)
	a.serve(w, r, ops, params)
}

// Missing answers a request for a path that is not of this API.
func (a *API) Missing(w http.ResponseWriter, r *http.Request) { a.serve(w, r, nil, nil) }

func (a *API) serve(w http.ResponseWriter, r *http.Request, ops map[string]*operation, params []string) {
	c := &Call{request: r, start: time.Now(), State: a.State, ID: state.NewID(), api: a, w: w, status: http.StatusOK}
	defer c.letGo()
	defer func() {
		if p := recover(); p != nil {
			a.recovered(c, p)
		}
		a.answered(c, time.Since(c.start))
	}()
	c.hurry()
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
	if a.Trace != nil {
		var ctx context.Context
		ctx, c.traced = a.Trace(r, op.Op)
		c.request = r.WithContext(ctx)
	}
	if err := a.call(c); err != nil {
		c.fail(err)
	}
}

// Log is for what there is to say of the request.
func (c *Call) Log() *slog.Logger { return c.api.Log.With("request", c.ID) }

// wait is how long a client must wait before it may call the operation.
func (c *Call) wait() time.Duration {
	if c.op.Attempts == nil {
		return 0
	}
	return c.op.Attempts.Take(limit.At(c.From()))
}

// answered tells of a request that is over, or whose answer has begun and goes on
// for as long as the client likes.
func (a *API) answered(c *Call, took time.Duration) {
	if c.told {
		return
	}
	c.told = true
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
	level := slog.LevelInfo
	if c.op != nil && c.op.Polled && c.status < http.StatusBadRequest {
		level = slog.LevelDebug
	}
	if a.Log.Enabled(context.Background(), level) {
		a.Log.LogAttrs(context.Background(), level, "request", c.line(name, took)...)
	}
}

// line is what the log says of a request.
func (c *Call) line(operation string, took time.Duration) []slog.Attr {
	by := c.Author()
	if c.Caller == nil && c.became.Kind != "" {
		by = c.became
	}
	line := append(make([]slog.Attr, 0, 12),
		slog.String("request", c.ID), slog.String("from", c.RemoteIP()), slog.String("api", c.api.Name), slog.String("operation", operation),
		slog.String("by", by.String()))
	if by.Name != "" {
		line = append(line, slog.String("name", by.Name))
	}
	if c.tried != "" {
		line = append(line, slog.String("tried", c.tried))
	}
	target := c.target
	if target == "" && len(c.path) > 0 {
		target = shorten(c.path[0])
	}
	if target != "" {
		line = append(line, slog.String("target", target))
	}
	return append(line, slog.Int("status", c.status), slog.Int("bytes", c.bytes), slog.Float64("ms", float64(took.Microseconds())/1000))
}

// promptly is how long a body takes to come, unless it is made to take longer.
const promptly = 100 * time.Millisecond

// call runs the operation for a caller that may use it. Who that is and
// whether it may comes first, so that nobody's body is read in vain; then the
// body, so that nobody keeps others from being served by sending it slowly.
func (a *API) call(c *Call) error {
	if c.request.ContentLength > c.op.MaxBody {
		return c.tooLarge()
	}
	if wait := c.wait(); wait > 0 {
		return fault.Later("there were too many attempts from this address; wait and try again", wait)
	}
	if err := a.catchUp(c); err != nil {
		return err
	}
	if err := a.recognise(c); err != nil {
		return err
	}
	if err := c.refusePast(); err != nil {
		return err
	}
	if err := c.readParams(); err != nil {
		return err
	}
	since := time.Now()
	if err := c.receive(); err != nil {
		return err
	}
	if time.Since(since) > promptly { // nor may anybody outlast a session by sending slowly
		if err := a.recognise(c); err != nil {
			return err
		}
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.bound(c.most())()
	if err := c.override(); err != nil {
		return err
	}
	if err := c.lookBack(); err != nil {
		return err
	}
	if err := c.reach(); err != nil {
		return err
	}
	return c.op.handle(c)
}

// recognise finds out who calls, and whether it may. All that it may wait for is
// keys of an issuer, for which nobody waits long.
func (a *API) recognise(c *Call) error {
	c.Snap = c.Latest()
	c.present = c.Snap
	caller, err := a.Gate(c)
	if err != nil && c.op.Auth != Anonymous {
		return err
	}
	c.Caller = caller
	if c.op.Auth != Anonymous && !c.permitted() {
		return fault.New(fault.CodeUnauthorized, c.missing())
	}
	return nil
}

// decision is how long a write may take beyond the time of its request, from when
// it may be stored to when that is certain. Whoever asked for it is told: an answer
// of before would say of what is stored that it was refused.
const decision = 2 * time.Minute

// looks reports whether a request changes nothing.
func (c *Call) looks() bool {
	return c.request.Method == http.MethodGet || c.request.Method == http.MethodHead
}

// longest is how long an operation may take that reads as much as there is: what its
// caller waits for an answer, less what it takes to send it.
const longest = 110 * time.Second

// most is how long the work on the request may take.
func (c *Call) most() time.Duration {
	if c.op.Long {
		return longest
	}
	return c.api.Timeout
}

// bound bounds the time of what follows, until it is told that it is over.
func (c *Call) bound(most time.Duration) (over func()) {
	whole := c.request
	c.whole = whole
	ctx, cancel := context.WithTimeout(whole.Context(), most)
	c.request = whole.WithContext(state.Deciding(ctx))
	if c.op.Long { // nor is the request over when it might have been read for too long
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	}
	if !c.looks() || c.op.Long {
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(most + decision))
	}
	return func() {
		cancel()
		c.request = whole
	}
}

// recovered answers for a handler that panicked.
func (a *API) recovered(c *Call, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	c.Log().Error("handler panicked", "panic", p, "stack", string(debug.Stack()))
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
	h.Set("Access-Control-Allow-Headers", "content-type, accept, authorization, net-session, zt-session, mfa-validation-code, "+revisionHeader)
	h.Set("Access-Control-Expose-Headers", "net-session, zt-session, expires-at, expiration-seconds, "+ignoredHeader+", "+revisionHeader)
}
