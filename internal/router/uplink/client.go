package uplink

import (
	"maps"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Client is a client that is connected to the router.
type Client struct {
	Token       string // of its API session, as it showed it
	IdentityID  string
	Source      string // the address that it comes from
	Destination string // and the one that it came to
}

// clients are those that are connected, and who is told of them.
type clients struct {
	mu         sync.Mutex
	byIdentity map[string]map[*present]struct{}
	feeds      map[*feed]struct{}
}

// feed is what a controller has not been told yet.
type feed struct {
	news    chan struct{}       // has an element while there is something to tell
	changed map[string]struct{} // identities; under the mutex of clients
}

type present struct {
	Client
	at time.Time
}

func newClients() *clients {
	return &clients{byIdentity: map[string]map[*present]struct{}{}, feeds: map[*feed]struct{}{}}
}

// follow returns a feed of what changes from now on.
func (c *clients) follow() (f *feed, done func()) {
	f = &feed{news: make(chan struct{}, 1), changed: map[string]struct{}{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.feeds[f] = struct{}{}
	return f, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.feeds, f)
	}
}

// Arrived takes note of a client that was let in: controllers count its API
// session as used, and its identity as connected, until gone is called.
// From renewed on it shows another token of the same session.
func (u *Uplink) Arrived(c Client) (renewed func(token string), gone func()) {
	p := &present{c, u.opt.Now()}
	u.clients.change(c.IdentityID, func(all map[*present]struct{}) { all[p] = struct{}{} })
	renewed = func(token string) {
		u.clients.mu.Lock()
		defer u.clients.mu.Unlock()
		p.Token = token
	}
	return renewed, func() {
		u.clients.change(c.IdentityID, func(all map[*present]struct{}) { delete(all, p) })
	}
}

func (c *clients) change(identity string, do func(map[*present]struct{})) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.byIdentity[identity]
	if all == nil {
		all = map[*present]struct{}{}
		c.byIdentity[identity] = all
	}
	if do(all); len(all) == 0 {
		delete(c.byIdentity, identity)
	}
	for f := range c.feeds {
		f.changed[identity] = struct{}{}
		select {
		case f.news <- struct{}{}:
		default: // it is known already
		}
	}
}

// How often controllers are told of clients, and of how many in one frame.
const (
	beatEvery  = time.Minute
	newsWait   = 3 * time.Second // arrivals and departures are gathered so long
	maxBeat    = 2000
	maxEvents  = 2000
	fullEvents = 5 * time.Minute
)

// listWait is how long a controller has to say which controllers there are
// before it is asked.
const listWait = 5 * time.Second

// keep tells a controller of clients and of what it missed, until the connection
// is over.
func (u *Uplink) keep(l *line) {
	beat, full := time.NewTicker(beatEvery), time.NewTicker(fullEvents)
	defer beat.Stop()
	defer full.Stop()
	list := time.NewTimer(listWait)
	defer list.Stop()
	changes, done := u.clients.follow()
	defer done()
	again, settle := u.settle(l)
	u.tellClients(l, changes, true)
	var gathered <-chan time.Time
	for {
		select {
		case <-l.Done():
			return
		case <-list.C:
			if _, told := u.List(); !told {
				_ = l.Send(&wire.Frame{Type: message.TypeMembersRequest})
			}
		case <-again:
			settle()
		case <-beat.C:
			for part := range slices.Chunk(u.clients.tokens(), maxBeat) {
				_ = l.Send(frame(message.TypeAPISessionHeartbeat, &message.APISessionHeartbeat{Tokens: part}))
			}
		case <-full.C:
			u.tellClients(l, changes, true)
		case <-changes.news:
			if gathered == nil {
				gathered = time.After(newsWait)
			}
		case <-gathered:
			gathered = nil
			u.tellClients(l, changes, false)
		}
	}
}

// tokens are those of the API sessions of connected clients.
func (c *clients) tokens() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]struct{}{}
	for _, those := range c.byIdentity {
		for p := range those {
			all[p.Token] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// tellClients says which identities are connected: all of them, or those for
// whom that changed.
func (u *Uplink) tellClients(l *line, to *feed, all bool) {
	events := u.clients.events(to, all)
	for first := true; first && all || len(events) > 0; first = false {
		part := events[:min(len(events), maxEvents)]
		events = events[len(part):]
		_ = l.Send(frame(message.TypeConnectEvents, &message.ConnectEvents{Events: part, Full: all && first}))
	}
}

// events are what is to be said of identities.
func (c *clients) events(to *feed, all bool) []message.ConnectEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var events []message.ConnectEvent
	tell := func(identity string) {
		e := message.ConnectEvent{IdentityID: identity}
		for p := range c.byIdentity[identity] {
			e.Connected = true
			e.Times = append(e.Times, message.ConnectTime{At: p.at.UnixMilli(), Source: p.Source, Destination: p.Destination})
		}
		events = append(events, e)
	}
	if all {
		for identity := range c.byIdentity {
			tell(identity)
		}
	} else {
		for identity := range to.changed {
			tell(identity)
		}
	}
	clear(to.changed)
	return events
}
