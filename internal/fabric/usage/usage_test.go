package usage_test

import (
	"testing"
	"time"

	"netkeep.internal/internal/fabric/circuit"
	"netkeep.internal/internal/fabric/usage"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// TestMeter has routers tell what they carried, some of them what they did not.
func TestMeter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	one := wiki("one", "a", "b", "c")
	live := map[string]*circuit.Circuit{"one": one}
	got := map[string][2]uint64{}
	m := usage.New(usage.Options{
		Circuit: func(id string) (*circuit.Circuit, bool) { c, ok := live[id]; return c, ok },
		Carried: func(service string, sent, received uint64) {
			got[service] = [2]uint64{got[service][0] + sent, got[service][1] + received}
		},
		Now: func() time.Time { return now },
	})
	tell := func(router, id string, bytes uint64, want ...uint64) {
		t.Helper()
		m.Heard(router, []message.Usage{{Buckets: map[string]message.CircuitUsage{id: {
			Bytes: map[string]uint64{"ingress.rx": bytes, "ingress.tx": 7, "egress.rx": bytes * 2, "fabric.rx": 7},
			Tags:  map[string]string{"serviceId": "bank"},
		}}}})
		if len(got) > 1 || got["wiki"] != [2]uint64{want[0], want[1]} {
			t.Errorf("after %s said %d of %s: %v, want %v of wiki", router, bytes, id, got, want)
		}
	}
	tell("a", "one", 10, 10, 0)
	tell("c", "one", 10, 10, 20)
	tell("b", "one", 10, 10, 20) // neither of the ends
	tell("x", "one", 10, 10, 20) // not on the path
	tell("a", "two", 10, 10, 20) // there is no such circuit
	tell("a", "one", 1<<63, 10+1<<40, 20)

	// What was carried last is told when the circuit is over.
	delete(live, "one")
	m.Ended(one)
	now = now.Add(2 * time.Minute)
	tell("a", "one", 1, 11+1<<40, 20)
	now = now.Add(2 * time.Minute)
	m.Ended(wiki("three", "a"))
	tell("a", "one", 1, 12+1<<40, 20)
	now = now.Add(4 * time.Minute)
	m.Ended(wiki("four", "a"))
	tell("a", "one", 1, 12+1<<40, 20) // by now nobody remembers
	tell("a", "three", 1, 13+1<<40, 22)
}

// wiki is a circuit of the service wiki over routers.
func wiki(id string, routers ...string) *circuit.Circuit {
	return &circuit.Circuit{Circuit: model.Circuit{Meta: kind.Meta{ID: id}, ServiceID: "wiki", Path: routers}}
}
