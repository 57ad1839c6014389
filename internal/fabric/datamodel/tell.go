package datamodel

import (
	"slices"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// sent is changes that a router was told: it may ask for them again.
type sent struct {
	previous, index uint64
	body            []byte
}

const (
	// maxLog and maxLogged are how many changes are kept for one router, and
	// how many bytes of them.
	maxLog, maxLogged = 32, 256 << 10
	// maxBody is how large a frame may get, and so what a router may know.
	maxBody = 8 << 20
)

// job is one turn of a router: it is told what it does not know.
type job struct {
	told
	timeline string
}

// tell tells the router what it does not know of what it may know as of rev.
func (j *job) tell(is *known, rev store.Rev) {
	j.rev = rev
	if j.ask != nil && !j.resume() || j.knows == nil {
		j.everything(is)
		return
	}
	events := changes(j.knows, is)
	if len(events) == 0 {
		j.knows = is
		return
	}
	next := max(uint64(rev), j.index+1)
	body := message.Marshal(&message.DataChanges{Index: next, Previous: j.index, Changes: events})
	if len(body) > maxBody {
		j.everything(is)
		return
	}
	j.log = trim(append(j.log, sent{j.index, next, body}))
	j.knows, j.index = is, next
	j.send(message.TypeDataChanges, body)
}

// resume sends again what the router did not get before it asked, and reports
// false if that is not at hand.
func (j *job) resume() bool {
	if j.knows == nil || j.ask.Timeline != j.timeline || j.ask.Index == 0 {
		return false
	}
	if j.ask.Index == j.index {
		return true
	}
	at := slices.IndexFunc(j.log, func(s sent) bool { return s.previous == j.ask.Index })
	if at < 0 {
		return false
	}
	for _, s := range j.log[at:] {
		j.send(message.TypeDataChanges, s.body)
	}
	return true
}

// everything tells the router all that it may know.
func (j *job) everything(is *known) {
	index := max(uint64(j.rev), j.index+1)
	body := message.Marshal(&message.DataState{Events: changes(&known{}, is), Index: index, Timeline: j.timeline})
	j.log, j.knows, j.index = nil, is, index
	j.send(message.TypeDataState, body)
}

// send sends a frame. What cannot be sent ends the connection, and the router
// begins anew.
func (j *job) send(typ int32, body []byte) {
	f := &wire.Frame{Type: typ, Headers: wire.Headers{}, Body: body}
	if j.subscription != "" {
		f.Headers.SetText(message.HeaderSubscription, j.subscription)
	}
	if j.peer.Send(f) != nil {
		j.forget()
	}
}

// forget has the router told everything the next time.
func (j *job) forget() { j.knows, j.log = nil, nil }

// trim drops the oldest changes that are too many.
func trim(log []sent) []sent {
	size := 0
	for i := len(log) - 1; i >= 0; i-- {
		if size += len(log[i].body); size > maxLogged || len(log)-i > maxLog {
			return slices.Clone(log[i+1:])
		}
	}
	return log
}

var _ peer = (*control.Router)(nil)
