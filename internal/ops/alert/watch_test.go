package alert_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/audit"
)

// scene is two controllers that look at the same routers.
type scene struct {
	now     time.Time
	offline map[string]bool
	gone    map[string]bool
	one     *state.State
	watches []*alert.Watch
}

func newScene(t *testing.T) *scene {
	s := &scene{now: time.Now(), offline: map[string]bool{}, gone: map[string]bool{}}
	memory := storetest.NewMemory()
	now := func() time.Time { return s.now }
	for i, store := range []*storetest.Memory{memory, memory.Another()} {
		st := open(t, store, now)
		if i == 0 {
			s.one = st
		}
		s.watches = append(s.watches, &alert.Watch{State: st, Controller: fmt.Sprint("c", i), Now: now, Log: slog.New(slog.DiscardHandler), Conditions: []alert.Condition{{
			Name: "router", Begun: audit.RouterOffline, Over: audit.RouterOnline, Grace: 30 * time.Second,
			Look: func(*state.Snapshot) (list []alert.Subject) {
				for id, off := range s.offline {
					if off && !s.gone[id] {
						list = append(list, alert.Subject{ID: id, Target: target(id)})
					}
				}
				return list
			},
			Named: func(_ *state.Snapshot, id string) (audit.Target, bool) { return target(id), !s.gone[id] },
		}}})
	}
	return s
}

func target(id string) audit.Target { return audit.Target{Kind: "router", ID: id, Name: id} }

// pass lets time go by, with a look of each every five seconds.
func (s *scene) pass(t *testing.T, d time.Duration) {
	t.Helper()
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(5 * time.Second) {
		for _, w := range s.watches {
			must(t, w.Look(t.Context()))
		}
	}
}

// told is what the log says, in order: the event, the target and after how many seconds.
func (s *scene) told(t *testing.T) (all []string) {
	t.Helper()
	for _, e := range entries(t, s.one) {
		all = append(all, e.Record.Event+" "+e.Record.TargetName)
	}
	return all
}

func (s *scene) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := s.told(t); !slices.Equal(got, want) {
		t.Errorf("%s: told is %q, want %q", what, got, want)
	}
}

// TestWatch has a router go and come back: one of two controllers tells, not before it is
// away for a while, and a new one that starts in between does not tell again.
func TestWatch(t *testing.T) {
	s := newScene(t)
	s.offline["paris"] = true
	s.pass(t, 20*time.Second)
	s.offline["paris"] = false
	s.pass(t, 10*time.Second)
	s.want(t, "a moment")
	s.offline["paris"] = true
	s.pass(t, time.Minute)
	s.want(t, "a minute", "router-offline paris")
	again := *s.watches[0]
	s.watches = []*alert.Watch{{State: again.State, Controller: "c2", Now: again.Now, Log: again.Log, Conditions: again.Conditions}}
	s.pass(t, 20*time.Minute)
	s.offline["paris"] = false
	s.pass(t, time.Minute)
	s.want(t, "back", "router-offline paris", "router-online paris")
	s.offline["oslo"] = true
	s.pass(t, time.Minute)
	s.gone["oslo"] = true
	s.pass(t, time.Minute)
	s.want(t, "one that is deleted", "router-offline paris", "router-online paris", "router-offline oslo")
}

// TestMany has a hundred routers go at once: that is told once, and so is that they are
// back.
func TestMany(t *testing.T) {
	s := newScene(t)
	for i := range 100 {
		s.offline[fmt.Sprintf("r%02d", i)] = true
	}
	s.pass(t, time.Minute)
	clear(s.offline)
	s.pass(t, time.Minute)
	s.want(t, "a hundred", "router-offline r00, r01, r02, r03, r04 and 95 more", "router-online r00, r01, r02, r03, r04 and 95 more")
}

// TestFlapping has routers come and go at random: each is told of in turn, no oftener than
// every ten minutes, and in the end it was told how it is.
func TestFlapping(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newScene(t)
		ids := []string{"a", "b"}
		start := s.now
		for range rapid.IntRange(1, 15).Draw(rt, "changes") {
			id := rapid.SampledFrom(ids).Draw(rt, "router")
			s.offline[id] = !s.offline[id]
			s.pass(t, time.Duration(rapid.IntRange(5, 400).Draw(rt, "seconds"))*time.Second)
		}
		over := s.now.Sub(start)
		s.pass(t, 12*time.Minute)
		for _, id := range ids {
			told := slices.DeleteFunc(s.told(t), func(e string) bool { return !strings.HasSuffix(e, " "+id) })
			for i, e := range told {
				if want := []string{"router-offline ", "router-online "}[i%2] + id; e != want {
					rt.Fatalf("told is %q", told)
				}
			}
			if last := len(told)%2 == 1; last != s.offline[id] {
				rt.Fatalf("%s is offline: %v; told is %q", id, s.offline[id], told)
			}
			if most := int(over/(10*time.Minute)) + 2; (len(told)+1)/2 > most {
				rt.Fatalf("in %s it is told %d times", over, len(told))
			}
		}
	})
}
