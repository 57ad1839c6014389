package uplink

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// traced are the frames that the controller was told of.
func (c *controller) traced(t *testing.T) (all []message.Trace) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.told {
		if f.Type == message.TypePipeTraced {
			m, err := message.Unmarshal[message.Trace](f.Body)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, *m)
		}
	}
	return all
}

// TestTraces tells a controller of the frames of its connection when it asks for that,
// until it has enough or a while is over.
func TestTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := connect(t, &handler{})
		toggle := func(m message.TogglePipes) (said string, ok bool) {
			t.Helper()
			f, err := c.Request(t.Context(), &wire.Frame{Type: message.TypeTogglePipes, Body: message.Marshal(&m)})
			if err != nil {
				t.Fatal(err)
			}
			return string(f.Body), f.Headers.Bool(message.HeaderSuccess)
		}
		asks := func() {
			t.Helper()
			if _, err := c.Request(t.Context(), &wire.Frame{Type: message.TypeInspectRequest, Body: message.Marshal(&message.InspectRequest{})}); err != nil {
				t.Fatal(err)
			}
		}
		count := func(what string, want int) []message.Trace {
			t.Helper()
			all := c.traced(t)
			if len(all) != want {
				t.Fatalf("%s: told of %+v, want %d", what, all, want)
			}
			return all
		}
		for _, m := range []message.TogglePipes{{Enable: true, Apps: "(", Pipes: ".*"}, {Enable: true, Apps: ".*", Pipes: "("}} {
			if said, ok := toggle(m); ok {
				t.Errorf("what is no expression is answered with %q", said)
			}
		}
		for _, m := range []message.TogglePipes{{Enable: true, Apps: "another", Pipes: ".*"}, {Enable: true, Apps: ".*", Pipes: "^l/"}} {
			if said, ok := toggle(m); !ok || !strings.Contains(said, "links") {
				t.Errorf("somebody else is answered with %q, %v", said, ok)
			}
		}
		asks()
		count("somebody else", 0)
		on := message.TogglePipes{Enable: true, Apps: "^router$", Pipes: message.ControlPipe}
		if said, ok := toggle(on); !ok || !strings.Contains(said, "links") {
			t.Errorf("the answer is %q, %v", said, ok)
		}
		asks()
		all := count("after it was asked", 3) // its answer, what came and what it said to that
		if in, out := all[1], all[2]; all[0].Type != message.TypeResult || in.Type != message.TypeInspectRequest || !in.In || out.In || out.ReplyFor != in.Seq ||
			in.Identity != "router" || in.Channel != "ctrl" || in.ReplyFor != -1 || in.Timestamp != time.Now().UnixNano() || !strings.Contains(string(in.Decoded), "Inspect Request") {
			t.Errorf("told of %+v", all)
		}
		if _, ok := toggle(message.TogglePipes{Apps: ".*", Pipes: ".*"}); !ok {
			t.Error("that it is enough is not heeded")
		}
		had := len(c.traced(t))
		asks()
		count("after it was enough", had)
		toggle(on)
		had = len(c.traced(t))
		<-time.After(channel.TraceTime + time.Second) // which passes at once here
		before := len(c.traced(t))
		asks()
		if after := len(c.traced(t)); after != before || before < had {
			t.Errorf("after a while it goes on: told of %d frames, and %d before", after, before)
		}
	})
}
