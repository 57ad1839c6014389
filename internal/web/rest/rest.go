// Package rest is the HTTP machinery: operations and who may call them,
// request bodies, answers, paging, errors, and the specification that follows
// from them. It knows kinds only as descriptors and must not import model or
// authn: who calls is told by the Gate it is given.
package rest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/ops/limit"
)

// Access is what a caller must have shown to use an operation. The zero value
// is none of these: an operation that forgets to say does not start.
type Access uint8

const (
	Anonymous Access = iota + 1
	Partial          // a session, though factors may be missing
	Full             // a session with every factor
	Admin            // a full session of somebody who has the power that the operation needs
)

func (a Access) String() string {
	return [...]string{"unset", "anonymous", "partial", "full", "admin"}[a]
}

// Key is what an operation asks of its caller beyond a session's token, which
// routers may know: to show on the connection that it has a key of the session.
type Key uint8

const (
	// NoKey is for what somebody who knows a token may do.
	NoKey Key = iota
	// KeyOrSecret is for an operation that takes a password or code, which
	// routers never see: callers who have no key to show go by that.
	KeyOrSecret
	// KeyOnly is for all other operations by which somebody else could become
	// the caller, or do harm in its name.
	KeyOnly
)

// Caller is who sent a request, as the Gate found out.
type Caller interface {
	// Access is the most this caller may use.
	Access() Access
	// Author names the caller as one who writes.
	Author() state.Author
	// Over returns the records that the caller may do something to, which is said
	// as the Need of operations is, by what a snapshot says.
	Over(snap *state.Snapshot, need string) Extent
	// Knows reports whether the caller knows a record without a power to read it: because
	// it is them, or says what they may do.
	Knows(snap *state.Snapshot, rec kind.Record) bool
}

// Gate finds out who sent a request. It returns nil for nobody, and an error
// where the request claims somebody it cannot show to be.
type Gate func(c *Call) (Caller, error)

// Op declares an operation. Everything but Path parameters, Doc and the
// handler's types follows from it.
type Op struct {
	Method string
	Path   string // below the API's root, with {name} for parameters
	Name   string // operation id in the specification
	Tag    string // group in the specification
	Doc    string
	Auth   Access
	// Need is the power that callers of an operation for Admin must have: what it is
	// about and what it does to it, such as "service:read". The first word of its
	// path leads to a record of that kind, if it is one.
	Need string
	// Key is what the caller must have beside a token, unless its API asks for
	// more.
	Key Key
	// Params are what requests may carry beside the path and the body.
	Params []Parameter
	// MaxBody is the largest body in bytes; that of the API if 0.
	MaxBody int64
	// Bodies bounds the memory that the bodies of this operation take, if they
	// may be larger than those of others; they count among all others if nil.
	Bodies *limit.Bodies
	// BodyOptional lets a request leave the body out.
	BodyOptional bool
	// Entries describes those of a List.
	Entries kind.Schema
	// Answer describes what the answer's type does not say well enough.
	Answer kind.Schema
	// Types are the content types of an answer without an envelope.
	Types []string
	// Status of success, if not the one that the answer has by nature.
	Status int
	// Attempts, if set, bounds how often an address may call an operation that
	// is open to strangers who may guess.
	Attempts *limit.Rate[limit.Party]
	// Consumes are the content types of a body that is a text.
	Consumes []string
	// Polled says that clients ask again and again: the log tells of an answer
	// only if it is asked for everything.
	Polled bool
	// Long says that the work is in proportion to what there is to read: it may take
	// longest, where others may take the API's Timeout.
	Long bool
}

// API is the operations under one root path.
type API struct {
	Name    string // "edge-management"
	Title   string
	Doc     string // what it is for, in a sentence
	Version string
	Root    string // "/edge/management/v1"
	// Groups say in a sentence what the operations of each tag are about.
	Groups map[string]string
	// Nulls says that a list for which a body said null is answered as null. Those who
	// cannot bear that get an empty one.
	Nulls bool

	State *state.State
	// Timely, if set, is a snapshot as it is now by the clock, for requests to see.
	Timely func(*state.Snapshot) *state.Snapshot
	// Shared is for a state that other controllers write to; nil if none do.
	Shared *Shared
	Gate   Gate
	// Past, if set, returns the network as it was at a moment, for operations that
	// declare AtParam. All others refuse to be asked for it.
	Past func(ctx context.Context, at string) (*state.Snapshot, error)
	// Override, if set, says whether a caller may have a change made that breaks an
	// assertion. If nobody may, no operation can be asked to.
	Override func(c *Call) error
	// Key is what callers of any operation must have beside a token.
	Key Key
	Log *slog.Logger
	// Timeout bounds the work on one request, and Sending how long the answer
	// to one that may have changed something may take; as long as it likes if 0.
	Timeout, Sending time.Duration
	// MaxBody is the largest body in bytes of operations that do not say.
	MaxBody int64
	// Bodies bounds the memory that the bodies of all requests take, and
	// Requests how many are worked on.
	Bodies   *limit.Bodies
	Requests *limit.Slots
	// Answers bounds the memory that answers take while they are sent.
	Answers *limit.Bodies
	// Streams are the answers that go on for as long as their callers like.
	Streams *Streams
	// StrangerPace is how fast the bodies of strangers must arrive, and Pace
	// those of all others.
	StrangerPace, Pace limit.Pace
	// Answered, if set, is told of every request: the name of its operation,
	// Unknown if it has none, and how it ended.
	Answered func(operation string, status int, took time.Duration)
	// Trace, if set, is told of every request that has an operation before it
	// is worked on. It returns the context to work in and what to call with the
	// status in the end.
	Trace func(r *http.Request, op Op) (context.Context, func(status int))

	ops     []*operation
	routes  node
	schemas map[string]kind.Schema
}

// operation is a declared Op with what its types add.
type operation struct {
	Op
	handle func(c *Call) error
	body   input
	status int
	data   kind.Schema // schema of the answer's data; nil for a bare body
	list   bool
	stream bool      // whether the answer is one
	of     *kind.Def // that {id} in the path names a record of; nil if it does not
	some   bool      // whether it can be about some records alone
}

// Unknown stands for the operation of a request that has none.
const Unknown = "unknown"

// Handle adds an operation with a typed handler. In is None or a struct with
// kind tags; Out is one of this package's answers or such a struct.
func Handle[In, Out any](a *API, op Op, fn func(c *Call, in In) (Out, error)) {
	read, body := inputOf[In](op.BodyOptional)
	write, o := outputOf[Out]()
	op.Params = slices.Concat(o.Params, op.Params) // those of the answer's kind first
	o.Op, o.body = op, body
	if op.Entries != nil {
		o.data = kind.ListOf(op.Entries)
	}
	if op.Answer != nil {
		o.data = op.Answer
	}
	o.handle = func(c *Call) error {
		in, err := read(c)
		if err != nil {
			return err
		}
		out, err := fn(c, in)
		if err != nil {
			return err
		}
		return write(c, out)
	}
	a.add(o)
}

func (a *API) add(o *operation) {
	if o.Auth == 0 || o.Auth > Admin {
		panic(fmt.Sprintf("rest: %s %s does not say who may call it", o.Method, o.Path))
	}
	if (o.Auth == Admin) != (o.Need != "") {
		panic(fmt.Sprintf("rest: %s %s does not say which power it needs, or needs none", o.Method, o.Path))
	}
	a.place(o)
	if o.Name == "" || o.Doc == "" || o.Tag == "" {
		panic(fmt.Sprintf("rest: %s %s needs a name, a tag and a sentence", o.Method, o.Path))
	}
	if o.stream {
		o.Types = []string{eventType}
	}
	if o.data == nil && len(o.Types) == 0 {
		panic(fmt.Sprintf("rest: %s %s does not say what type its answer has", o.Method, o.Path))
	}
	a.overridable(o)
	o.checkParams()
	if o.MaxBody == 0 {
		o.MaxBody = a.MaxBody
	}
	if o.Status != 0 {
		o.status = o.Status
	}
	a.ops = append(a.ops, o)
	a.routes.add(o)
}

// Operations lists what the API offers, for tests that walk all of it.
func (a *API) Operations() []Op {
	ops := make([]Op, len(a.ops))
	for i, o := range a.ops {
		ops[i] = o.Op
	}
	return ops
}

// Fields lists what the body of an operation may hold, for those who make forms of
// it; ok is false if there is no such operation. The path is that of its
// declaration: /identities/{id}.
func (a *API) Fields(method, path string) (fields []*kind.Field, ok bool) {
	for _, o := range a.ops {
		if o.Method == method && o.Path == path {
			return o.body.fields, true
		}
	}
	return nil, false
}

// outputOf returns how to answer with an Out, and what the specification says
// of it.
func outputOf[Out any]() (func(*Call, Out) error, *operation) {
	o := &operation{status: http.StatusOK}
	if a, ok := any(*new(Out)).(answer); ok {
		a.describe(o)
		return func(c *Call, out Out) error { return any(out).(answer).send(c) }, o
	}
	output := kind.NewOutput[Out]()
	o.data = says("What was asked for.", output.Schema())
	return func(c *Call, out Out) error {
		return c.send(c.op.status, func(dst []byte) []byte { return output.Append(dst, &out) })
	}, o
}
