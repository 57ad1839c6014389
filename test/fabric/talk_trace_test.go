package fabric

import (
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// toggle asks for frames to be told of, or not any more.
func (w *talk) toggle(m message.TogglePipes) (said string, ok bool) {
	w.t.Helper()
	w.say(message.TypeTogglePipeTraces, message.Marshal(&m))
	f := w.reply(message.TypeResult)
	return string(f.Body), f.Headers.Bool(message.HeaderSuccess)
}

// trace waits for the next frame that is told of.
func (w *talk) trace() *message.Trace {
	w.t.Helper()
	f := w.hear()
	if f.Type != message.TypeTrace {
		w.t.Fatalf("a frame of type %d comes: %s", f.Type, f.Body)
	}
	m, err := message.Unmarshal[message.Trace](f.Body)
	must(w.t, err)
	return m
}

// TestTalkTraces tells of the frames of this controller and of routers, from when
// somebody asks for it until it is enough.
func TestTalkTraces(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	asked := make(chan *message.TogglePipes, 8)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Pipes = func(m *message.TogglePipes) (string, bool) {
			asked <- m
			return "it tells", m.Pipes != "refuse"
		}
	})
	admin := s.Admin(t)
	w, _ := dialTalk(t, s, admin.Token)
	reading, _ := dialTalk(t, s, admin.Token)
	only := message.StreamTraces{Filtered: true, Only: 1, Types: []int32{message.TypeInterfaces, message.TypeResult, message.TypeFault}}
	reading.say(message.TypeStreamTraces, message.Marshal(&only))
	// Who reads is not told that it is heard, but what it asks next comes after that.
	if said, ok := reading.toggle(message.TogglePipes{Enable: true, Apps: "(", Pipes: ".*"}); ok {
		t.Errorf("what is no expression is answered with %q", said)
	}
	if said, ok := w.toggle(message.TogglePipes{Enable: true, Verbosity: message.TellAll, Apps: ".*", Pipes: "ctrl|" + r.ID}); !ok || !strings.Contains(said, "router "+r.ID+": it tells") || !strings.Contains(said, "controller netkeep-") {
		t.Errorf("the answer is %q, %v", said, ok)
	}
	if m := <-asked; !m.Enable || m.Apps != ".*" || m.Pipes != "ctrl|"+r.ID {
		t.Errorf("the router was asked for %+v", m)
	}
	ping := func() {
		t.Helper()
		_, err := c.Request(t.Context(), &wire.Frame{Type: message.TypeInterfaces, Body: message.Marshal(&message.Interfaces{})})
		must(t, err)
	}
	next := func(typ int32, in bool) *message.Trace {
		t.Helper()
		for {
			m := reading.trace()
			if m.Type == message.TypeResult && typ != message.TypeResult {
				continue // of what was asked of the router
			}
			if m.Type != typ || m.In != in {
				t.Fatalf("told of %+v", m)
			}
			return m
		}
	}
	ping()
	got := next(message.TypeInterfaces, true)
	if !strings.HasPrefix(got.Identity, "netkeep-") || got.Channel != r.ID || string(got.Decoded) != `{"__decoder__":"netkeep","__message__":"Interfaces"}` || got.ReplyFor != -1 || time.Since(time.Unix(0, got.Timestamp)) > soon {
		t.Errorf("told of %+v", got)
	}
	if m := next(message.TypeResult, false); m.ReplyFor != got.Seq || !strings.Contains(string(m.Decoded), `"success":true`) {
		t.Errorf("told of %+v as the answer to %+v", m, got)
	}
	own := message.Trace{Timestamp: 1, Identity: r.ID, Channel: "ctrl", Type: message.TypeFault, Seq: 4, ReplyFor: -1, Length: 9, Decoded: []byte(`{"a":1}`)}
	forged := message.Trace{Identity: "somebody else", Type: message.TypeFault, Decoded: []byte("no object")}
	for _, m := range []message.Trace{own, forged} {
		must(t, c.Send(&wire.Frame{Type: message.TypePipeTraced, Body: message.Marshal(&m)}))
	}
	if m := next(message.TypeFault, false); m.Identity != r.ID || m.Seq != 4 || m.Length != 9 || string(m.Decoded) != `{"a":1}` {
		t.Errorf("told of %+v", m)
	}
	if m := next(message.TypeFault, false); m.Identity != r.ID || m.Decoded != nil {
		t.Errorf("told of %+v", m)
	}
	if said, ok := w.toggle(message.TogglePipes{Apps: ".*", Pipes: ".*"}); !ok || (<-asked).Enable {
		t.Errorf("that it is enough is answered with %q, %v", said, ok)
	}
	ping()
	must(t, c.Send(&wire.Frame{Type: message.TypePipeTraced, Body: message.Marshal(&own)}))
	next(message.TypeFault, false) // and nothing of the ping before it
	if said, ok := w.toggle(message.TogglePipes{Enable: true, Apps: r.ID, Pipes: "refuse"}); ok {
		t.Errorf("what the router refuses is answered with %q", said)
	}
	<-asked
	if said, ok := w.toggle(message.TogglePipes{Enable: true, Verbosity: message.TellMisses, Apps: "nobody", Pipes: ".*"}); !ok || strings.Count(said, "is not meant") != 2 || len(asked) > 0 {
		t.Errorf("nobody is answered with %q, %v", said, ok)
	}
}

// TestTalkTracesForInspectors tells nobody of frames who may not look into routers.
func TestTalkTracesForInspectors(t *testing.T) {
	s := servertest.Start(t)
	u := s.AddUser(t, false)
	s.Admin(t).Patch(management+"identities/"+u.ID, M{"adminRoles": []string{"viewer"}}).Want(200)
	w, _ := dialTalk(t, s, s.Login(t, u.Username, u.Password).Token)
	if said, ok := w.toggle(message.TogglePipes{Enable: true, Apps: ".*", Pipes: ".*"}); ok || !strings.Contains(said, "router:inspect") {
		t.Errorf("a viewer toggles: %q, %v", said, ok)
	}
	w.say(message.TypeToggleCircuitTraces, nil)
	if f := w.reply(message.TypeResult); f.Headers.Bool(message.HeaderSuccess) || len(f.Body) == 0 {
		t.Errorf("traces of circuits are promised: %s", f.Body)
	}
	w.say(message.TypeStreamTraces, nil)
	if m := w.trace(); !strings.Contains(string(m.Decoded), "router:inspect") {
		t.Errorf("a viewer is told of %+v", m)
	}
	_ = w.SetReadDeadline(time.Now().Add(soon))
	if _, _, err := w.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("a stream of traces ends with %v", err)
	}
}
