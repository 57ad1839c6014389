package cluster_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"syscall"
	"testing"
	"time"
)

var (
	faultTime = flag.Duration("faults", 0, "how long the leader is killed again and again, and each other fault for a fifth of that; 0 is once")
	faultWait = flag.Duration("fault-every", 0, "how long apart")
)

// TestFaults has three controllers in processes of their own lose their leader, be
// cut off and paused, have a full disk and clocks that are apart, while everybody
// writes and reads at all of them. Nothing
// that was acknowledged is lost or doubled, names stay unique, what was written and
// read at each record has an order that explains it, and no controller shows what
// is older than it may be.
func TestFaults(t *testing.T) {
	atOnce(t)
	c := newTeam(t)
	by := c.once(t)
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		t.Run(name, func(t *testing.T) { c.again(t, name, faults[name]) })
	}
	t.Run("duties", func(t *testing.T) { c.takenOver(t, by) })
}

// takenOver has the controller be gone that does what one has to do.
func (c *team) takenOver(t *testing.T, by *node) {
	by.kill()
	c.eventually(t, "another to take snapshots", func() bool {
		return slices.ContainsFunc(c.others(by), func(n *node) bool { return n.scheduled() > 0 })
	})
	by.start(t)
	if by.scheduled() != 1 {
		t.Errorf("it has taken %d snapshots in a day", by.scheduled())
	}
}

// again brings a fault about as often as there is time for, and says how long there
// were no writes.
func (c *team) again(t *testing.T, name string, f fault) {
	var gaps []time.Duration
	lasts := *faultTime
	if name != "killed" {
		lasts /= 5
	}
	for end, round := time.Now().Add(lasts), 0; ; round++ {
		began := time.Now()
		gaps = append(gaps, c.suffer(t, fmt.Sprintf("%s-%d", name, round), f))
		if t.Failed() || time.Now().After(end) {
			break
		}
		<-time.After(time.Until(began.Add(*faultWait)))
	}
	slices.Sort(gaps)
	at := func(share int) time.Duration { return gaps[(len(gaps)-1)*share/100].Round(time.Millisecond) }
	t.Logf("%d times; gap in writes p50 %v, p99 %v, max %v", len(gaps), at(50), at(99), at(100))
}

// others are all controllers but one.
func (c *team) others(of *node) []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n == of })
}

// figures says what became of the load.
func (l *load) figures(t *testing.T, gap time.Duration) {
	t.Helper()
	reads, failed, unknown := []int64{}, []int64{}, []int64{}
	for i := range l.nodes {
		reads, failed, unknown = append(reads, l.reads[i].Load()), append(failed, l.failed[i].Load()), append(unknown, l.unknown[i].Load())
	}
	t.Logf("%s: gap in writes %v; acknowledged %d; by controller: reads %v, not answered %v; writes not known %v",
		l.name, gap.Round(time.Millisecond), len(l.acks), reads, failed, unknown)
}

// few is how many writes have to be acknowledged before it goes on.
const few = 10

// fault is something that happens to the leader: how it begins, what is to be seen
// while it lasts, and how it ends.
type fault struct {
	begin, lasts, end func(t *testing.T, c *team, leader *node)
}

func nothing(*testing.T, *team, *node) {}

func restart(t *testing.T, _ *team, leader *node) { leader.start(t) }

// faults are all of them.
var faults = map[string]fault{
	"killed": {func(_ *testing.T, _ *team, leader *node) { leader.kill() }, nothing, restart},
	"stopped": {func(_ *testing.T, _ *team, leader *node) {
		leader.signal(syscall.SIGTERM)
		<-leader.ended
	}, nothing, restart},
	"cut": {
		func(_ *testing.T, c *team, leader *node) { c.wires.Isolate(leader.n, true) },
		func(t *testing.T, c *team, leader *node) {
			c.eventually(t, "one that is cut off to send everybody away", func() bool {
				return leader.ask(http.MethodGet, "services?limit=1", nil, nil) == 0
			})
			leader.says(t, "takes no more connections")
		},
		func(_ *testing.T, c *team, leader *node) { c.wires.Isolate(leader.n, false) },
	},
	"full": full,
	"paused": {
		func(_ *testing.T, _ *team, leader *node) { leader.signal(syscall.SIGSTOP) },
		// For longer than its lease, and than it may go on without the store.
		func(*testing.T, *team, *node) { <-time.After(grace + time.Second) },
		func(_ *testing.T, _ *team, leader *node) { leader.signal(syscall.SIGCONT) },
	},
}

// suffer has something happen to the leader while everybody writes, and returns how
// long there was no write.
func (c *team) suffer(t *testing.T, name string, f fault) time.Duration {
	l := c.begin(t, name)
	l.await(t, few, c.nodes...)
	leader := c.leader(t)
	others := c.others(leader)
	var leases [3]int
	for _, n := range others {
		leases[n.n] = n.leases()
	}
	at := time.Now()
	f.begin(t, c, leader)
	l.await(t, few, others...)
	gap := l.gap(at)
	f.lasts(t, c, leader)
	l.await(t, few, others...)
	f.end(t, c, leader)
	l.await(t, few, leader)
	l.end(t, others...)
	l.figures(t, gap)
	for _, n := range others {
		if why := l.doubts[n.n]; why != "" {
			t.Logf("controller %d, which was well, could not say what became of a write: %.300s", n.n, why)
		}
		if n.leases() > leases[n.n] {
			t.Logf("controller %d, which was well, gave its id up", n.n)
		}
	}
	return gap
}

// once looks for snapshots that are taken by the clock: one controller takes them.
// It returns which.
func (c *team) once(t *testing.T) (by *node) {
	t.Helper()
	c.eventually(t, "a snapshot", func() bool {
		for _, n := range c.nodes {
			if n.scheduled() > 0 {
				by = n
			}
		}
		return by != nil
	})
	for _, n := range c.others(by) {
		if n.scheduled() > 0 {
			t.Errorf("both controller %d and controller %d take snapshots", by.n, n.n)
		}
	}
	return by
}
