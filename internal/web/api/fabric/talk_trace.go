package fabric

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/web/rest"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// noInspector is who may not look into routers.
const noInspector = "this needs the power router:inspect, and none of your admin roles has it"

// toggle has frames of routers and of this controller told of, or not any more.
func (t *talk) toggle(c *rest.Call, f *wire.Frame) {
	if !c.May("router:inspect") {
		t.result(f, false, noInspector)
		return
	}
	m, err := message.Unmarshal[message.TogglePipes](f.Body)
	if err != nil {
		t.result(f, false, err.Error())
		return
	}
	asked := seam.Pipes{TogglePipes: *m}
	for _, one := range []struct {
		text string
		into **regexp.Regexp
	}{{m.Apps, &asked.Apps}, {m.Pipes, &asked.Pipes}} {
		if *one.into, err = regexp.Compile(one.text); err != nil {
			t.result(f, false, fmt.Sprintf("%.100q is no regular expression: %v", one.text, err))
			return
		}
	}
	t.work.Go(func() {
		said, ok := t.s.Fabric.TogglePipes(t.ctx, asked)
		t.result(f, ok, said)
	})
}

// traces begins to tell of frames. No answer is expected: why there are none is told as
// if it were one.
func (t *talk) traces(c *rest.Call, f *wire.Frame) {
	m, err := message.Unmarshal[message.StreamTraces](f.Body)
	switch {
	case !c.May("router:inspect"):
		t.sayTrace(noInspector)
		t.end(fault.New(fault.CodeUnauthorized, noInspector))
		return
	case err != nil:
		t.sayTrace(err.Error())
		t.end(fault.Wrap(fault.CodeBody, err))
		return
	}
	wake := make(chan struct{}, 1)
	listener := t.s.Herald.Listen(wake, herald.Traces)
	t.work.Go(func() {
		defer listener.Close()
		for {
			select {
			case <-t.ctx.Done():
				return
			case <-wake:
				t.takeTraces(listener, m)
			}
		}
	})
}

func (t *talk) takeTraces(from *herald.Listener, want *message.StreamTraces) {
	for {
		e, missed, ok := from.Take()
		if missed > 0 {
			t.sayTrace(fmt.Sprintf("%d frames were too many to be told of", missed))
		}
		if !ok {
			return
		}
		one, is := e.Detail.(message.Trace)
		if is && (!want.Filtered || slices.Contains(want.Types, one.Type) == (want.Only == 1)) {
			t.send(&wire.Frame{Type: message.TypeTrace, Body: message.Marshal(&one)})
		}
	}
}

// sayTrace says something in the place of a frame.
func (t *talk) sayTrace(text string) {
	said, err := json.Marshal(map[string]string{"__decoder__": "netkeep", "__message__": text})
	if err == nil {
		one := &message.Trace{Timestamp: t.s.Sessions.Now().UnixNano(), Identity: t.s.ControllerID, Channel: "talk", ReplyFor: -1, Decoded: said}
		t.send(&wire.Frame{Type: message.TypeTrace, Body: message.Marshal(one)})
	}
}
