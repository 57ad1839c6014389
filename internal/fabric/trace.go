package fabric

import (
	"context"
	"fmt"
	"slices"
	"strings"
	gosync "sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Bounds of traces.
const (
	toggleWait = 5 * time.Second // for a router to heed
	togglers   = 16              // routers that are asked at a time
	maxDecoded = 4 << 10
)

// traced is the routers that were asked to tell of frames. They are asked to stop after
// a while.
type traced struct {
	mu      gosync.Mutex
	routers map[string]struct{}
	end     *time.Timer // nil if there are none
}

// toggled is what there is to say of a request to tell of frames.
type toggled struct {
	seam.Pipes
	mu     gosync.Mutex
	lines  []string
	failed bool
}

// says takes note of whether something is meant, as far as that is asked for.
func (t *toggled) says(what string, meant bool) {
	word, bit := "is meant", message.TellMatches
	if !meant {
		word, bit = "is not meant", message.TellMisses
	}
	if t.Verbosity&bit != 0 {
		t.add(what + " " + word)
	}
}

func (t *toggled) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
}

// TogglePipes is for [seam.Fabric].
func (v view) TogglePipes(ctx context.Context, asked seam.Pipes) (said string, ok bool) {
	t := &toggled{Pipes: asked}
	for _, f := range v.fabric.both() {
		f.togglePipes(ctx, t)
	}
	slices.Sort(t.lines)
	return strings.Join(t.lines, "\n"), !t.failed
}

func (f *Fabric) togglePipes(ctx context.Context, t *toggled) {
	here := t.Apps.MatchString(f.ID())
	t.says("controller "+f.ID(), here)
	slots := make(chan struct{}, togglers)
	var asked gosync.WaitGroup
	for _, r := range f.All() {
		if here {
			f.toggleHere(r, t)
		}
		meant := t.Apps.MatchString(r.ID)
		t.says("router "+r.ID, meant)
		if !meant {
			continue
		}
		slots <- struct{}{}
		asked.Go(func() {
			defer func() { <-slots }()
			f.toggleThere(ctx, r, t)
		})
	}
	asked.Wait()
}

// toggleHere begins to tell of the frames of a router's connection here, or stops.
func (f *Fabric) toggleHere(r *control.Router, t *toggled) {
	meant := t.Pipes.Pipes.MatchString(r.ID) // which is what its connection is called here
	t.says("its connection to router "+r.ID, meant)
	switch {
	case !meant:
	case !t.Enable:
		r.Tap(nil)
	default:
		until := f.opt.Now().Add(channel.TraceTime)
		r.Tap(func(frame *wire.Frame, in bool) {
			now := f.opt.Now()
			if now.After(until) {
				r.Tap(nil)
			} else if frame.Type != message.TypePipeTraced && f.opt.Herald.Wanted(herald.Traces) {
				f.tellTrace(channel.TraceOf(f.ID(), r.ID, now, frame, in))
			}
		})
	}
}

// toggleThere asks a router to do so.
func (f *Fabric) toggleThere(ctx context.Context, r *control.Router, t *toggled) {
	ctx, cancel := context.WithTimeout(ctx, toggleWait)
	defer cancel()
	if t.Enable {
		f.traced.add(r.ID, f.untrace)
	}
	answer, err := r.Request(ctx, control.Message(message.TypeTogglePipes, &t.TogglePipes))
	heeds := err == nil && answer.Type == message.TypeResult && answer.Headers.Bool(message.HeaderSuccess)
	said := "it does not answer"
	if err == nil {
		said = strings.ToValidUTF8(string(answer.Body[:min(len(answer.Body), maxDecoded)]), "")
	}
	if said = strings.TrimSpace(said); said != "" {
		t.add("router " + r.ID + ": " + said)
	}
	t.mu.Lock()
	t.failed = t.failed || !heeds
	t.mu.Unlock()
}

// add takes note of a router that tells of frames, and has them all stop after a while.
func (t *traced) add(id string, stop func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.routers == nil {
		t.routers = map[string]struct{}{}
	}
	t.routers[id] = struct{}{}
	if t.end != nil {
		t.end.Stop()
	}
	t.end = time.AfterFunc(channel.TraceTime, stop)
}

// take returns them, and forgets them.
func (t *traced) take() map[string]struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	some := t.routers
	t.routers, t.end = nil, nil
	return some
}

// untrace has routers stop to tell of frames.
func (f *Fabric) untrace() {
	for id := range f.traced.take() {
		if r, there := f.Get(id); there {
			_ = r.Send(control.Message(message.TypeTogglePipes, &message.TogglePipes{Apps: ".*", Pipes: ".*"}))
		}
	}
}

// onTraced hears of a frame from a router: of its own, or of one of its links.
func (f *Fabric) onTraced(r *control.Router, _ *wire.Frame, m *message.Trace) {
	if !f.opt.Herald.Wanted(herald.Traces) {
		return
	}
	if m.Identity != r.ID && !f.ends(r.ID, m.Identity) {
		m.Identity = r.ID
	}
	if len(m.Channel) > maxFigureName {
		m.Channel = fmt.Sprintf("%.32s…", m.Channel)
	}
	if decoded := jsontext.Value(m.Decoded); len(decoded) > maxDecoded || decoded.Kind() != '{' || !decoded.IsValid() {
		m.Decoded = nil // who reads it takes it for an object
	}
	f.tellTrace(*m)
}

// ends reports whether a router is an end of a link.
func (f *Fabric) ends(routerID, linkID string) bool {
	rec, known := f.Links.Lookup(linkID)
	if !known {
		return false
	}
	_, is := rec.(*model.Link).Other(routerID)
	return is
}

func (f *Fabric) tellTrace(m message.Trace) {
	f.opt.Herald.Tell(herald.Event{Ref: state.Ref{Def: herald.Traces, ID: m.Identity}, Verb: "traced", At: f.opt.Now(), Detail: m})
}
