package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// TestCircuits has people dial while routers come and go and crash, links break,
// sessions end and the controller starts anew. When all has come to rest, the
// controller and its routers agree on which circuits there are and where they
// lead, none goes on that is over, and none is lost that had a path all the time.
func TestCircuits(t *testing.T) {
	var c *credentials
	synctest.Test(t, func(t *testing.T) { c = newCredentials(t, 4) })
	rapid.Check(t, func(rt *rapid.T) {
		bubble(t, func() {
			w := newWorld(rt, c)
			defer w.close()
			settle()
			rt.Repeat(map[string]func(*rapid.T){
				"link":    w.link,
				"dial":    w.dial,
				"dial 2":  w.dial,
				"dial 3":  w.dial,
				"late":    w.dialLate,
				"unlink":  w.unlink,
				"away":    w.away,
				"back":    w.back,
				"crash":   w.crash,
				"hang up": w.hangUp,
				"idle":    w.idle,
				"session": w.endSession,
				"restart": w.restart,
				"":        func(*rapid.T) { settle(); w.check() },
			})
		})
	})
}

// bubble runs a check in a bubble of its own, since they pass much time. What it
// panics with, as checks do that fail, comes out of the bubble.
func bubble(t *testing.T, check func()) {
	var failed any
	synctest.Test(t, func(*testing.T) {
		defer func() { failed = recover() }()
		check()
	})
	if failed != nil {
		panic(failed)
	}
}

// pick draws a router that is connected, or not; nil if there is none.
func (w *world) pick(t *rapid.T, connected bool) *node {
	var some []*node
	for _, n := range w.routers {
		if (n.conn != nil) == connected {
			some = append(some, n)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(t, "router")]
}

// link connects two routers.
func (w *world) link(t *rapid.T) {
	a, b := w.pick(t, true), w.pick(t, true)
	if a != b {
		w.join(a, b)
	}
}

// unlink breaks a link. Who is connected says so.
func (w *world) unlink(t *rapid.T) {
	if links := slices.Sorted(maps.Keys(w.links)); len(links) > 0 {
		w.lose(t, rapid.SampledFrom(links).Draw(t, "link"))
	}
}

func (w *world) lose(t *rapid.T, id string) {
	ends := w.links[id]
	delete(w.links, id)
	for _, i := range ends {
		n := w.routers[i]
		if n.conn == nil {
			delete(n.links, id)
			continue
		}
		n.conn.Lose(id)
		must(t, n.conn.Fault(message.Fault{Subject: message.FaultLink, ID: id, Iteration: 1}))
	}
}

// dial asks for a connection, with a session of its own or one that there is.
func (w *world) dial(t *rapid.T) {
	n := w.pick(t, true)
	if n == nil {
		return
	}
	host := rapid.IntRange(0, hosts-1).Draw(t, "service")
	s := w.session(t, host)
	refuses := rapid.IntRange(0, 5).Draw(t, "refuses") == 0
	w.routers[host].refuses.Store(refuses)
	id, _, err := n.conn.Dial(context.Background(), w.grants.Tokens.Of(s), "", nil)
	w.routers[host].refuses.Store(false)
	refused, is := errors.AsType[*message.Refusal](err)
	switch want := w.reaches(n.i, host) && !refuses; {
	case err != nil && !is:
		t.Fatal(err)
	case (err == nil) != want:
		t.Fatalf("a dial from %d to %d over %v ends with %v", n.i, host, w.links, refused)
	case err == nil:
		w.dialled[id] = &dialled{id: id, from: n.i, to: host, session: s.ID}
	}
}

// dialLate has the host take its time, and what it is dialled with or a link go
// meanwhile: it makes the circuit after it has heard that there is none any more,
// or that it leads elsewhere.
func (w *world) dialLate(t *rapid.T) {
	n, host := w.pick(t, true), rapid.IntRange(0, hosts-1).Draw(t, "service")
	if n == nil || !w.reaches(n.i, host) {
		return
	}
	s := w.session(t, host)
	unlinked := len(w.links) > 0 && rapid.Bool().Draw(t, "unlink")
	meanwhile := func() {
		if unlinked {
			w.unlink(t)
		} else {
			w.end(s)
		}
		synctest.Wait()
	}
	w.routers[host].before.Store(&meanwhile)
	id, _, err := n.conn.Dial(context.Background(), w.grants.Tokens.Of(s), "", nil)
	w.routers[host].before.Store(nil)
	switch _, refused := errors.AsType[*message.Refusal](err); {
	case err != nil && !refused:
		t.Fatal(err)
	case err == nil && !unlinked:
		t.Fatalf("a dial from %d to %d succeeds with a session that is over", n.i, host)
	case err != nil && unlinked && w.reaches(n.i, host):
		t.Fatalf("a dial from %d to %d over %v ends with %v", n.i, host, w.links, err)
	case err == nil:
		w.dialled[id] = &dialled{id: id, from: n.i, to: host, session: s.ID}
	}
}

// session returns one to dial a service with.
func (w *world) session(t *rapid.T, host int) *model.Session {
	for _, s := range w.sessions {
		if s.ServiceID == fmt.Sprint("s", host) && rapid.Bool().Draw(t, "again") {
			return s
		}
	}
	w.made++
	s := &model.Session{
		Meta: kind.Meta{ID: fmt.Sprint("dial", w.made)}, APISessionID: "api", IdentityID: "ann", ServiceID: fmt.Sprint("s", host), Type: model.Dial, Key: fmt.Sprint(w.made),
	}
	w.write(func(tx *state.Tx) error {
		again := *s
		return model.Sessions.Create(tx, &again)
	})
	s, _ = model.Sessions.Get(w.st.Snapshot(), s.ID)
	w.sessions = append(w.sessions, s)
	return s
}

// endSession takes a session away, and all that was dialled with it.
func (w *world) endSession(t *rapid.T) {
	if len(w.sessions) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.sessions)-1).Draw(t, "session")
	w.end(w.sessions[i])
}

func (w *world) end(gone *model.Session) {
	w.sessions = slices.DeleteFunc(w.sessions, func(s *model.Session) bool { return s.ID == gone.ID })
	w.write(func(tx *state.Tx) error { return model.Sessions.Delete(tx, gone.ID) })
	for _, d := range w.dialled {
		d.over = d.over || d.session == gone.ID
	}
}

// hangUp ends a connection at one of its ends.
func (w *world) hangUp(t *rapid.T) {
	ids := w.known()
	if len(ids) == 0 {
		return
	}
	d := w.dialled[rapid.SampledFrom(ids).Draw(t, "circuit")]
	subject, end, at := message.FaultIngress, "in.", w.routers[d.from]
	if rapid.Bool().Draw(t, "by the host") {
		subject, end, at = message.FaultEgress, "out.", w.routers[d.to]
	}
	if at.conn == nil {
		w.hangUpUnheard(d, at, end)
		return
	}
	if has, _ := at.conn.Has(); has[d.id] == nil {
		return // it has ended
	}
	at.conn.Drop(d.id)
	must(t, at.conn.Fault(message.Fault{Subject: subject, ID: d.id}))
	d.over = true
}

// hangUpUnheard ends a connection at a router that is away, which says so to nobody
// when it is back, and carries the circuit on.
func (w *world) hangUpUnheard(d *dialled, at *node, end string) {
	for _, address := range endsOf(at.circuits[d.id], end) {
		at.gone[address] = true
		d.over, d.unheard = true, at
	}
}

// endsOf are the addresses of ends of a kind of a circuit, of which there may be none.
func endsOf(route *message.Route, kind string) (all []string) {
	if route == nil {
		return nil
	}
	for _, f := range route.Forwards {
		if strings.HasPrefix(f.From, kind) {
			all = append(all, f.From)
		}
	}
	return all
}

// idle has a router ask whether all of its circuits are still wanted, of which one may
// have lost an end that it has not told of.
func (w *world) idle(t *rapid.T) {
	n := w.pick(t, true)
	if n == nil {
		return
	}
	ask := &message.CircuitConfirmation{Idle: map[string]int64{}}
	has, _ := n.conn.Has()
	ends := rapid.Bool().Draw(t, "one ends")
	for _, id := range slices.Sorted(maps.Keys(has)) {
		d := w.dialled[id]
		kind := "in."
		if d != nil && d.to == n.i {
			kind = "out."
		}
		if at := endsOf(has[id], kind); ends && d != nil && !d.over && len(at) > 0 {
			n.conn.End(at[0])
			n.gone[at[0]] = true
			d.over, d.unheard, ends = true, n, false
		}
		ask.CircuitIDs = append(ask.CircuitIDs, id)
		ask.Idle[id] = int64(time.Hour)
	}
	must(t, n.conn.Send(&wire.Frame{Type: message.TypeCircuitConfirmation, Body: message.Marshal(ask)}))
}

// away takes a router from its controller, and back brings it back: it has gone
// on meanwhile.
func (w *world) away(t *rapid.T) {
	if n := w.pick(t, true); n != nil {
		w.leave(n)
	}
}

func (w *world) back(t *rapid.T) {
	if n := w.pick(t, false); n != nil {
		w.connect(n)
	}
}

// crash has a router begin anew: nothing of what it had is left, and its
// neighbours notice.
func (w *world) crash(t *rapid.T) {
	n := w.pick(t, true)
	if n == nil {
		return
	}
	w.leave(n)
	for id, ends := range w.links {
		if slices.Contains(ends[:], n.i) {
			w.lose(t, id)
		}
	}
	n.circuits, n.links, n.gone = map[string]*message.Route{}, map[string]message.Link{}, map[string]bool{}
	for _, d := range w.dialled {
		d.over = d.over || d.from == n.i || d.to == n.i
	}
	if rapid.Bool().Draw(t, "after a while") {
		settle()
	}
	w.connect(n)
}

// restart has another controller take the place of the one that there is.
func (w *world) restart(*rapid.T) {
	var connected []*node
	for _, n := range w.routers {
		if n.conn != nil {
			connected = append(connected, n)
			w.leave(n)
		}
	}
	w.stop()
	w.start()
	for _, n := range connected {
		w.connect(n)
	}
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
