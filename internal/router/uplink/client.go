package uplink

import (
	"maps"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Client is a client that is connected to the router.
type Client struct {
	Token       string // of its API session, as it showed it
	IdentityID  string
	Source      string // the address that it comes from
	Destination string // and the one that it came to
}

// clients are those that are connected, and of whom the controller has not been
// told yet.
type clients struct {
	news chan struct{} // has an element while there is something to tell

	mu         sync.Mutex
	byIdentity map[string]map[*present]struct{}
	changed    map[string]struct{} // identities
}

type present struct {
	Client
	at time.Time
}

func newClients() *clients {
	return &clients{news: make(chan struct{}, 1), byIdentity: map[string]map[*present]struct{}{}, changed: map[string]struct{}{}}
}

// Arrived takes note of a client that was let in: the controller counts its API
// session as used, and its identity as connected, until gone is called.
func (u *Uplink) Arrived(c Client) (gone func()) {
	p := &present{c, u.opt.Now()}
	u.clients.change(c.IdentityID, func(all map[*present]struct{}) { all[p] = struct{}{} })
	return func() {
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
	c.changed[identity] = struct{}{}
	select {
	case c.news <- struct{}{}:
	default: // it is known already
	}
}

// How often the controller is told of clients, and of how many in one frame.
const (
	beatEvery  = time.Minute
	newsWait   = 3 * time.Second // arrivals and departures are gathered so long
	maxBeat    = 2000
	maxEvents  = 2000
	fullEvents = 5 * time.Minute
)

// keep tells the controller of clients, until the channel is over.
func (u *Uplink) keep(ch *channel.Channel) {
	beat, full := time.NewTicker(beatEvery), time.NewTicker(fullEvents)
	defer beat.Stop()
	defer full.Stop()
	u.tellClients(ch, true)
	var gathered <-chan time.Time
	for {
		select {
		case <-ch.Done():
			return
		case <-beat.C:
			for part := range slices.Chunk(u.clients.tokens(), maxBeat) {
				_ = ch.Send(frame(message.TypeAPISessionHeartbeat, &message.APISessionHeartbeat{Tokens: part}))
			}
		case <-full.C:
			u.tellClients(ch, true)
		case <-u.clients.news:
			gathered = time.After(newsWait)
			select {
			case <-gathered:
			case <-ch.Done():
				return
			}
			u.tellClients(ch, false)
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
func (u *Uplink) tellClients(ch *channel.Channel, all bool) {
	events := u.clients.events(all)
	for first := true; first && all || len(events) > 0; first = false {
		part := events[:min(len(events), maxEvents)]
		events = events[len(part):]
		_ = ch.Send(frame(message.TypeConnectEvents, &message.ConnectEvents{Events: part, Full: all && first}))
	}
}

// events are what is to be said of identities.
func (c *clients) events(all bool) []message.ConnectEvent {
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
		for identity := range c.changed {
			tell(identity)
		}
	}
	clear(c.changed)
	return events
}
