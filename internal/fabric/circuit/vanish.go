package circuit

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// Routers of others say once that an end of a circuit is gone, to the controller that
// has made it. If that one is away nobody hears of it, and they carry the circuit until
// they are told otherwise. So they are asked, when they are back and when a circuit has
// been idle for long. Routers of ours say it until they are heard.
const (
	// idleFor is when a circuit has been idle for long.
	idleFor = 10 * time.Minute
	// seekWait is how long a router has to say whether it has an end.
	seekWait = 10 * time.Second
)

// seek asks a router about its ends of circuits, one after the other, and ends those
// circuits that have lost one.
func (c *Circuits) seek(ctx context.Context, r *control.Router, ids []string) {
	var rest []*Circuit
	for _, id := range ids {
		circuit, known := c.table.get(id)
		if !known || !circuit.whole() {
			continue
		}
		forwards := circuit.inward(r.ID)
		if len(forwards) == 0 {
			continue
		}
		gone, err := c.lacks(ctx, r, circuit, forwards)
		switch {
		case err != nil:
			return // it is away again, or has too much to do
		case gone:
			c.vanished(r, circuit)
		case circuit.last() == r.ID:
			rest = append(rest, circuit)
		}
	}
	if len(rest) == 0 {
		return
	}
	held, err := c.held(ctx, r)
	if err != nil {
		c.Log.Debug("a router does not say which ends clients hold", "router", r.ID, "error", err)
		return
	}
	for _, circuit := range rest {
		if !held(circuit) {
			c.vanished(r, circuit)
		}
	}
}

func (c *Circuits) vanished(r *control.Router, circuit *Circuit) {
	if c.end(circuit.ID, false) {
		c.Log.Info("a circuit had lost an end while nobody heard of it", "circuit", circuit.ID, "router", r.ID)
	}
}

// held asks a router which ends clients hold, and returns what reports whether it has
// that of a host. Some releases go on with one that a client has let go of; so where a
// client that hosts holds the flow of its circuits, and those are not among the ones
// that it holds, they have none.
func (c *Circuits) held(ctx context.Context, r *control.Router) (func(*Circuit) bool, error) {
	ctx, cancel := context.WithTimeout(ctx, learnWait)
	defer cancel()
	var hosts struct {
		Entries []struct {
			ID    string `json:"id"`
			Flows bool   `json:"useSdkXgress"`
		} `json:"entries"`
	}
	if err := about(ctx, r, "sdk-terminators", &hosts); err != nil {
		return nil, err
	}
	flows := map[string]bool{}
	for _, host := range hosts.Entries {
		flows[host.ID] = host.Flows
	}
	var ends struct {
		Circuits map[string]struct {
			ID      string `json:"circuitId"`
			Address string `json:"address"`
		} `json:"circuits"`
	}
	if err := about(ctx, r, "router-edge-circuits", &ends); err != nil {
		return nil, err
	}
	type end struct{ circuit, address string }
	has := map[end]bool{}
	for _, one := range ends.Circuits {
		has[end{one.ID, one.Address}] = true
	}
	return func(circuit *Circuit) bool {
		return has[end{circuit.ID, circuit.Egress}] || !c.flows(circuit, r.ID, flows)
	}, nil
}

// flows reports whether who hosts a circuit holds the flow of all that is dialled there.
func (c *Circuits) flows(circuit *Circuit, routerID string, flows map[string]bool) (all bool) {
	if circuit.HostSessionID == "" {
		return false
	}
	for t := range model.Terminators.Select(c.State.Snapshot(), "sessionId", circuit.HostSessionID) {
		if t.RouterID != routerID {
			continue
		}
		if all = flows[t.ID]; !all {
			return false
		}
	}
	return all
}

// about asks a router for something and reads it.
func about(ctx context.Context, r *control.Router, name string, into any) error {
	text, err := r.Inspect(ctx, name)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// lacks reports whether a router says that it cannot lead a circuit to an end. It is
// told nothing but what it does already: routers look whether there is what a circuit
// is to go to.
func (c *Circuits) lacks(ctx context.Context, r *control.Router, circuit *Circuit, forwards []message.Forward) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, seekWait)
	defer cancel()
	result := c.told(ctx, r, &message.Route{
		CircuitID: circuit.ID, Attempt: moveAttempt, Timeout: uint64(seekWait), Tags: circuit.Marks(), Forwards: forwards,
	})
	if failed, ok := errors.AsType[*failure](result.err); ok && failed.said != nil {
		return true, nil
	}
	return false, result.err
}

// inward is how a router leads a circuit to the ends that it has of it. Where the end
// is a dialer's, routers are to look for it as they do for that of a host. What leads
// outward is left out, since the circuit may be led elsewhere at this moment.
func (c *Circuit) inward(routerID string) (all []message.Forward) {
	if c.first() == routerID {
		from := c.Egress
		if len(c.Links) > 0 {
			from = c.Links[0]
		}
		all = append(all, message.Forward{From: from, To: c.Ingress, Type: message.ToEnd})
	}
	if c.last() == routerID {
		from := c.Ingress
		if len(c.Links) > 0 {
			from = c.Links[len(c.Links)-1]
		}
		all = append(all, message.Forward{From: from, To: c.Egress, Type: message.ToEnd})
	}
	return all
}

// missed are the circuits of which a router may have lost an end before it connected,
// for all that is known: those that were made before that and have been idle since. That
// one was led elsewhere is no sign of life, and routers take it for one.
func (c *Circuits) missed(said map[string]inspected, since time.Time) (ids []string) {
	quiet := c.Now().Sub(since)
	for id, one := range said {
		circuit, known := c.table.get(id)
		if !known || circuit.Ready.IsZero() || !circuit.older && !circuit.Ready.Before(since) {
			continue
		}
		if idle, err := time.ParseDuration(one.Idle); err != nil || idle >= quiet || circuit.Moved.After(since) {
			ids = append(ids, id)
		}
	}
	return ids
}
