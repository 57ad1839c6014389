package overlay

import (
	"context"
	"fmt"
	"iter"
	"time"

	"netkeep.internal/internal/client/sdk"
)

// State is how a connection to a router or to the controller stands.
type State int

// The states.
const (
	Connected = State(sdk.Connected)
	Away      = State(sdk.Away) // for now: it is tried again, a router when it is needed
	Over      = State(sdk.Over) // for good: the network was closed
)

func (s State) String() string {
	switch s {
	case Connected:
		return "connected"
	case Away:
		return "away"
	case Over:
		return "over"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Event says that the connection to a router or to the controller stands in
// another way than before.
type Event struct {
	State State
	// Router is the name of the router; empty if it is the controller.
	Router string
	// Address is where the router or the controller is.
	Address string
	// Err is why it is away; nil otherwise.
	Err  error
	Time time.Time
}

func (e Event) String() string {
	text := fmt.Sprintf("the controller at %s is %s", e.Address, e.State)
	if e.Router != "" {
		text = fmt.Sprintf("the router %s at %s is %s", e.Router, e.Address, e.State)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Events tells how each connection stands now and then what becomes of them, in
// order, until ctx ends or the network is closed, when all are over. There may
// be several who ask. Nothing waits for them: who is slow is told only the last
// of several changes of one connection.
func (n *Network) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for e := range n.c.Events(ctx) {
			if !yield(Event{State: State(e.State), Router: e.Router, Address: e.Address, Err: e.Err, Time: e.At}) {
				return
			}
		}
	}
}
