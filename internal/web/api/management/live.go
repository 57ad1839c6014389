package management

import (
	"slices"
	"strconv"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// liveKinds are those whose records are in no store: what happens to them is told while
// somebody looks, and not again.
var liveKinds = []*kind.Def{model.Presences.Def, model.Links.Def, model.Circuits.Def}

func isLive(d *kind.Def) bool { return slices.Contains(liveKinds, d) }

// liveNames are what events of these kinds are called.
var liveNames = map[*kind.Def]string{model.Presences.Def: "router", model.Links.Def: "link", model.Circuits.Def: "circuit"}

// listen begins to look for what is asked for of these kinds.
func (f *follower) listen() {
	var some []*kind.Def
	for _, d := range f.kinds {
		if isLive(d) {
			some = append(some, d)
		}
	}
	if len(some) > 0 {
		f.live = f.herald.Listen(f.wake, some...)
	}
}

// takeLive appends the next event of these kinds; more is false if there is none. It
// has no id: who comes back goes on after the last that has one. Nothing is told before
// the stream has begun.
func (f *follower) takeLive(dst []byte) (_ []byte, more bool) {
	if f.live == nil || f.fresh {
		return dst, false
	}
	e, missed, ok := f.live.Take()
	if missed > 0 {
		dst = rest.AppendEvent(dst, "missed", "", func(dst []byte) []byte {
			dst = strconv.AppendUint(append(dst, `{"count":`...), missed, 10)
			return append(kind.AppendText(append(dst, `,"message":`...), "so many events of routers, links and circuits came faster than they were read"), '}')
		})
	}
	if !ok {
		return dst, false
	}
	h := &happening{at: e.At, author: e.By, Change: state.Change{Ref: e.Ref, After: e.Record}, live: &e}
	if !f.where.Match(h) {
		return dst, true
	}
	return rest.AppendEvent(dst, liveNames[e.Ref.Def], "", h.appendLive), true
}

// appendLive adds one as JSON.
func (h *happening) appendLive(dst []byte) []byte {
	dst = h.appendHead(dst)
	if h.live.Reason != "" {
		dst = kind.AppendText(append(dst, `,"reason":`...), h.live.Reason)
	}
	dst = h.appendAuthor(dst)
	return append(h.Def.AppendOpen(append(dst, `,"record":`...), h.After), '}')
}
