package fabric

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// mountTalk offers what public tools ask for over a websocket: events as they happen,
// and checks of what routers say against what is known here.
func mountTalk(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/ws-api", Name: "talk", Tag: "events", Status: http.StatusSwitchingProtocols, Types: []string{"application/octet-stream"},
		Doc: "Become a websocket on which tools ask for events and checks, in the frames that routers talk in. Checks and traces need the power router:inspect too.", Auth: rest.Admin, Need: "event:read",
	}, func(c *rest.Call, _ rest.None) (rest.Socket, error) {
		t := newTalk(c, s)
		return rest.Socket{Wake: t.wake, Take: t.take, Hear: t.hear, Over: t.close}, nil
	})
}

// Bounds of one talk.
const (
	maxQueued = 4 << 20 // bytes that wait for the client to read them
	maxAsked  = 16      // checks and subscriptions of one talk
)

// talk is a websocket of somebody.
type talk struct {
	s     *api.Service
	state *state.State
	ctx   context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup
	asked int

	wake  chan struct{}
	mu    sync.Mutex
	queue [][]byte
	size  int
	seq   int32
	ended error
}

func newTalk(c *rest.Call, s *api.Service) *talk {
	ctx, stop := context.WithCancel(context.WithoutCancel(c.Context()))
	return &talk{s: s, state: c.State, ctx: ctx, stop: stop, wake: make(chan struct{}, 1)}
}

func (t *talk) close() {
	t.stop()
	t.work.Wait()
}

// take is the next message to the client.
func (t *talk) take() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		return nil, t.ended
	}
	next := t.queue[0]
	t.queue[0] = nil
	t.queue, t.size = t.queue[1:], t.size-len(next)
	return next, nil
}

// send queues a frame. Who does not read is given up: nobody waits for a reader.
func (t *talk) send(f *wire.Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return
	}
	t.seq++
	f.Seq = t.seq
	text := f.Append(nil)
	if t.size += len(text); t.size > maxQueued {
		t.queue, t.size, t.ended = nil, 0, rest.ErrSlow
	} else {
		t.queue = append(t.queue, text)
	}
	t.nudge()
}

// end has the talk end when all is sent.
func (t *talk) end(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended == nil {
		t.ended = why
	}
	t.nudge()
}

func (t *talk) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// reply answers a frame.
func (t *talk) reply(to, f *wire.Frame) {
	if f.Headers == nil {
		f.Headers = wire.Headers{}
	}
	f.Headers.SetUint32(message.HeaderReplyFor, uint32(to.Seq))
	t.send(f)
}

// result answers a frame that asks for nothing but whether it was heeded.
func (t *talk) result(to *wire.Frame, success bool, text string) {
	f := &wire.Frame{Type: message.TypeResult, Headers: wire.Headers{}, Body: []byte(text)}
	f.Headers.SetBool(message.HeaderSuccess, success)
	t.reply(to, f)
}

var errManyAsked = fault.New(fault.CodeRateLimited, fmt.Sprintf("one websocket is for %d requests; open another", maxAsked))

// hear takes a frame of the client.
func (t *talk) hear(c *rest.Call, text []byte) error {
	r := bytes.NewReader(text)
	f, err := wire.Read(r, wire.Bounds{Headers: len(text), Body: len(text)})
	if err != nil {
		return fault.Wrap(fault.CodeBody, err)
	}
	switch f.Type {
	case message.TypeHello, message.TypeResult, message.TypeHeartbeat, message.TypeProbe, message.TypeLatencyResponse:
		return nil
	case message.TypePing, message.TypeLatency:
		t.result(f, true, "")
		return nil
	}
	if t.asked++; t.asked > maxAsked {
		return errManyAsked
	}
	switch f.Type {
	case message.TypeStreamEvents:
		t.events(f)
	case message.TypeTogglePipeTraces:
		t.toggle(c, f)
	case message.TypeToggleCircuitTraces:
		t.result(f, false, "frames are told of by connection, and not by circuit: toggle those of routers and controllers")
	case message.TypeStreamTraces:
		t.traces(c, f)
	default:
		if !t.check(c, f) {
			t.result(f, false, fmt.Sprintf("this controller does not know requests of type %d", f.Type))
		}
	}
	return nil
}
