// Package datamodel tells routers that go by the data model what they must know
// of the network beforehand: the keys that they check with, and, to a router
// that may act as a client itself, its own identity with the services that it
// may use. Of others it learns who may show it an access token, and which services
// that is good for. What each was told is kept,
// so that it is told of differences alone. It must not import rest or api, and
// decides nothing: who may dial and host is asked again when somebody does.
package datamodel

import (
	"crypto/rand"
	"log/slog"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Options of Models.
type Options struct {
	State *state.State
	// Timely is a snapshot in which nothing counts whose time is over by the clock.
	Timely  func(*state.Snapshot) *state.Snapshot
	Routers *control.Routers
	// Keys are what routers check tokens and certificates with.
	Keys func(snap *state.Snapshot) []message.PublicKey
	// Bearing is how long the access tokens are good that clients show in place of the
	// token of their API session; 0 if there are none.
	Bearing time.Duration
	// Asked is told of every router that asks for the model.
	Asked func(*control.Router)
	Now   func() time.Time
	Log   *slog.Logger
}

// Models is what routers were told.
type Models struct {
	Options
	// timeline is another one after every start: what was told before is not
	// remembered, and what a store that was restored holds may differ from it.
	timeline string

	mu      sync.Mutex
	routers map[string]*told // by id
	queue   []*told          // for whom there may be something to say
	// shares is what identities may use whose tokens routers judge, as of the last
	// change that could make it something else.
	shares  map[string]share
	working bool // somebody sees to the queue
}

// told is what one router was told and wants to be told.
type told struct {
	id   string
	peer peer // nil while it is away
	// judges is whether it judges the devices of those who bear tokens.
	judges bool
	left   time.Time

	subscription string // what it calls what it asked for
	until        time.Time
	ask          *message.SubscribeToDataModel // not answered yet

	queued bool
	busy   bool // what it may know is being looked at
	stale  bool // something that concerns it may have changed since
	// whole is whether that may be anything; else it is what sessions some identities have.
	whole bool
	whose map[string]bool

	turn *time.Timer // when what it knows turns wrong by itself; nil for never

	knows *known    // nil if it was told nothing
	rev   store.Rev // at which everything was looked at
	index uint64
	log   []sent // what it was told last
}

// peer is somebody who can be told something.
type peer interface {
	Send(f *wire.Frame) error
	// Judges reports whether it judges devices by posture checks.
	Judges() bool
}

const (
	// A router asks again when its time is up, which takes a moment.
	usualTime, mostTime, grace = 5 * time.Minute, time.Hour, time.Minute
	// keepAway is how long it is remembered what a router knows that is away.
	keepAway = 10 * time.Minute
	// maxSubscription is how long a router's name for what it asked for may be.
	maxSubscription = 128
)

// New returns models that no router knows of.
func New(opt Options) *Models {
	return &Models{Options: opt, timeline: rand.Text(), routers: map[string]*told{}, shares: map[string]share{}}
}

// Register has routers ask for what they must know.
func (m *Models) Register() {
	m.Routers.Left(func(r *control.Router) { m.leave(r.ID, r) })
	control.On(m.Routers, message.TypeSubscribeToDataModel, func(r *control.Router, _ *wire.Frame, ask *message.SubscribeToDataModel) {
		r.Model()
		m.Asked(r)
		m.subscribe(r.ID, r, ask)
	})
}

// subscribe has a router told what it does not know, now and for some time.
// One that is up to date is told nothing.
func (m *Models) subscribe(id string, p peer, ask *message.SubscribeToDataModel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.routers[id]
	if t == nil {
		m.sweep()
		t = &told{id: id}
		m.routers[id] = t
	}
	t.peer, t.judges, t.subscription, t.until = p, p.Judges(), "", m.Now().Add(lasting(ask.Seconds)+grace)
	if len(ask.Subscription) <= maxSubscription {
		t.subscription = ask.Subscription
	}
	current := t.knows != nil && ask.Timeline == m.timeline && ask.Index == t.index
	if current && !t.stale && !t.busy && t.ask == nil {
		return
	}
	t.ask = ask
	m.enqueue(t)
}

func lasting(seconds uint32) time.Duration {
	if seconds == 0 {
		return usualTime
	}
	return min(time.Duration(seconds)*time.Second, mostTime)
}

// leave takes note of a connection that is over.
func (m *Models) leave(id string, p peer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.routers[id]; t != nil && t.peer == p {
		t.peer, t.left, t.ask = nil, m.Now(), nil
	}
	m.sweep()
}

// sweep forgets those who have been away for long.
func (m *Models) sweep() {
	now := m.Now()
	for id, t := range m.routers {
		if t.peer == nil && !t.busy && now.Sub(t.left) > keepAway {
			t.stop()
			delete(m.routers, id)
		}
	}
}

// Applied takes note of those whom a change may concern. One that concerns
// nobody costs the same however many routers and services there are.
func (m *Models) Applied(before, after *state.Snapshot, changed []state.Ref) {
	var forAll, forClients bool
	var own []string
	for _, c := range changed {
		switch c.Def {
		case model.CAs.Def:
			forAll = true
		case model.EdgeRouters.Def, model.Identities.Def:
			own, forClients = append(own, c.ID), true
		case model.ServicePolicies.Def, model.Services.Def, model.PostureChecks.Def, model.Configs.Def, model.ConfigTypes.Def, model.ServiceConfigs.Def:
			forClients = true
		}
	}
	switch {
	case forAll:
		m.Restart()
	case forClients:
		m.move()
		identities := new(cow.Bitmap)
		if m.resting() {
			identities = access.Affected(before, after, changed)
		}
		m.note(own, after.Rev, identities)
	}
	if !forAll {
		m.noteBearers(before, after, changed)
	}
}

// move notes that identities may use other services now.
func (m *Models) move() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares = map[string]share{}
}

// resting reports whether policies have a part in what any router knows. Who
// asks after this sees what has changed.
func (m *Models) resting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.routers {
		if t.unsure() || t.knows.rests() {
			return true
		}
	}
	return false
}

// unsure reports whether what a router knows may be something else by now.
func (t *told) unsure() bool { return t.busy || t.knows == nil }

// note has those looked at who may have to be told something: who are named,
// for whose identities policies may give something else, and of whom nothing is
// known for sure.
func (m *Models) note(own []string, rev store.Rev, identities *cow.Bitmap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range own {
		if t := m.routers[id]; t != nil && rev > t.rev {
			m.suspect(t)
		}
	}
	if identities.IsEmpty() {
		return
	}
	for _, t := range m.routers {
		// An identity keeps its number, unless everything is loaded again and
		// everybody looked at.
		if rev > t.rev && (t.unsure() || t.knows.rests() && slices.ContainsFunc(t.knows.ords, identities.Contains)) {
			m.suspect(t)
		}
	}
}

// Restart looks at everybody: anything may have changed.
func (m *Models) Restart() {
	m.move()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.routers {
		m.suspect(t)
	}
}

// suspect notes that what a router knows may be wrong. Who is away is told when
// it asks.
func (m *Models) suspect(t *told) {
	t.whole, t.whose = true, nil
	m.look(t)
}

// maxWhose is for how many identities it is remembered that they have other sessions.
const maxWhose = 1000

// suspectOf notes that what a router knows of the sessions of some identities may be wrong,
// and nothing else.
func (m *Models) suspectOf(t *told, identities []string) {
	if len(identities) == 0 {
		return
	}
	if len(t.whose)+len(identities) > maxWhose {
		m.suspect(t)
		return
	}
	if t.whose == nil {
		t.whose = map[string]bool{}
	}
	for _, id := range identities {
		t.whose[id] = true
	}
	m.look(t)
}

// afresh reports whether everything must be looked at.
func (t *told) afresh() bool { return t.whole || t.knows == nil || t.knows.tooMuch }

// look has a router seen to about which something may be wrong.
func (m *Models) look(t *told) {
	t.stale = true
	if t.peer != nil && m.Now().Before(t.until) {
		m.enqueue(t)
	}
}

// enqueue has a router seen to. There is one who does that, so that however
// many are to be told something the program has time for others.
func (m *Models) enqueue(t *told) {
	if !t.queued {
		t.queued = true
		m.queue = append(m.queue, t)
	}
	if !m.working {
		m.working = true
		go m.work()
	}
}

// work sees to the queue until it is empty.
func (m *Models) work() {
	for {
		m.mu.Lock()
		if len(m.queue) == 0 {
			m.queue, m.working = nil, false
			m.mu.Unlock()
			return
		}
		t := m.queue[0]
		m.queue = m.queue[1:]
		t.queued = false
		if t.peer == nil { // it asks when it is back
			m.mu.Unlock()
			continue
		}
		t.busy, t.stale = true, false
		job := job{told: *t, timeline: m.timeline}
		t.ask, t.whole, t.whose = nil, false, nil
		shares := m.shares // nobody else writes to it: what moves gets another
		m.mu.Unlock()
		snap := m.Timely(m.State.Snapshot())
		afresh := job.afresh()
		job.tell(m.see(snap, &job.told, shares), snap.Rev)
		m.mu.Lock()
		t.busy = false
		if t.knows, t.index, t.log = job.knows, job.index, job.log; afresh {
			t.rev = job.rev
		}
		m.awaitTurn(t)
		m.mu.Unlock()
	}
}

// awaitTurn has a router looked at when what it knows turns wrong by itself.
func (m *Models) awaitTurn(t *told) {
	t.stop()
	if t.knows == nil || t.knows.turns.IsZero() {
		return
	}
	t.turn = time.AfterFunc(t.knows.turns.Sub(m.Now()), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.look(t) // time has passed, and nothing else
	})
}

// stop ends waiting for that.
func (t *told) stop() {
	if t.turn != nil {
		t.turn.Stop()
		t.turn = nil
	}
}
