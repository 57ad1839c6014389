package audit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/test/machine"
)

// record starts a recorder. stop ends it in order.
func record(s *state.State, controller string) (r *audit.Recorder, stop func()) {
	r = audit.NewRecorder(s, time.Now)
	r.At(controller)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	return r, func() {
		cancel()
		running.Wait()
		r.Close()
	}
}

// bad is a login that was refused.
func bad(address, name string) audit.Fact {
	by := state.Nobody
	by.Source, by.Operation, by.Request = address, "authenticate", "r1"
	return audit.Fact{Event: audit.LoginRefused, By: by, Target: audit.Target{Kind: "identity", ID: name, Name: name}, Reason: "wrong password"}
}

// happened are the entries that are of no change, and how many facts they tell of.
func happened(t tester, s *state.State) (some []*model.AuditEntry, facts int64) {
	t.Helper()
	for _, e := range entries(t, s) {
		if e.FirstAt != nil {
			some, facts = append(some, e), facts+e.Count
		}
	}
	return some, facts
}

// unbroken checks the chain.
func unbroken(t tester, s *state.State) {
	t.Helper()
	verdict, err := (&audit.Log{State: s}).Verify(context.Background())
	if err != nil || len(verdict.Flaws) > 0 || verdict.Found != verdict.Last {
		t.Fatalf("%+v, %v", verdict, err)
	}
}

// TestJoined has something happen again and again: the first is in the log a moment
// later, and the others in one entry with their number.
func TestJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory())
		defer s.Close()
		r, stop := record(s, "c1")
		r.Note(bad("192.0.2.1", "ann"))
		time.Sleep(2 * time.Second)
		some, _ := happened(t, s)
		if len(some) != 1 {
			t.Fatalf("there are %d entries", len(some))
		}
		e := some[0]
		if e.Event != "login-refused" || e.Outcome != model.AuditRefused || e.Reason != "wrong password" || e.Count != 1 || e.TargetName != "ann" ||
			e.Address != "192.0.2.1" || e.ActorKind != "anonymous" || e.Operation != "authenticate" || e.RequestID != "r1" || e.ControllerID != "c1" ||
			e.FirstAt == nil || e.LastAt == nil || e.CreatedAt.Time().Before(*e.FirstAt) || e.Before != nil || e.After != nil {
			t.Errorf("it says %+v", e)
		}
		for range 999 {
			r.Note(bad("192.0.2.1", "ann"))
		}
		begun := time.Now()
		time.Sleep(10 * time.Second)
		if some, _ = happened(t, s); len(some) != 1 {
			t.Errorf("there are %d entries within the window", len(some))
		}
		time.Sleep(2 * time.Minute)
		if some, _ = happened(t, s); len(some) != 2 || some[1].Count != 999 || some[1].FirstAt.Sub(begun).Abs() > time.Second {
			t.Errorf("there are %d entries, the last with %d from %s on", len(some), some[len(some)-1].Count, some[len(some)-1].FirstAt)
		}
		r.Note(bad("192.0.2.1", "bob"))
		stop()
		if some, _ = happened(t, s); len(some) != 3 {
			t.Errorf("there are %d entries after an orderly stop", len(some))
		}
		unbroken(t, s)
	})
}

// TestFlood has strangers try as often as they can: that costs few entries, and all
// of them together tell of every attempt.
func TestFlood(t *testing.T) {
	attempts := 100_000
	if machine.Raced {
		attempts = 10_000
	}
	for _, from := range []struct {
		name    string
		address func(i int) string
		most    int
	}{
		{"one address", func(int) string { return "192.0.2.1" }, 10 + 1},
		{"one network", func(i int) string { return fmt.Sprintf("2001:db8::%x", i&0xffff) }, 10 + 1},
		{"many addresses", func(i int) string { return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255) }, 60 + 20 + 1},
	} {
		t.Run(from.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, storetest.NewMemory())
				defer s.Close()
				r, stop := record(s, "c1")
				for i := range attempts {
					r.Note(bad(from.address(i), fmt.Sprintf("name%d", i)))
				}
				if held := r.Held(); held > from.most {
					t.Errorf("it holds %d", held)
				}
				stop()
				some, facts := happened(t, s)
				if len(some) > from.most || facts != int64(attempts) {
					t.Errorf("there are %d entries of %d facts", len(some), facts)
				}
				unbroken(t, s)
			})
		})
	}
}

// TestFloodLasts has a flood go on for a day: others are seen beside it, and it does
// not push out what is in the log.
func TestFloodLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory())
		defer s.Close()
		r, stop := record(s, "c1")
		n := 0
		for range 24 * 60 {
			for range 100 {
				n++
				r.Note(bad(fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), fmt.Sprintf("name%d", n)))
			}
			time.Sleep(time.Minute)
		}
		stop()
		some, facts := happened(t, s)
		if len(some) > 24*60*10 || facts != int64(n) {
			t.Errorf("there are %d entries of %d facts", len(some), facts)
		}
	})
}

// TestRestless has a router connect and go a thousand times, from another port each
// time: its entries are few, and tell how often it was.
func TestRestless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory())
		defer s.Close()
		r, stop := record(s, "c1")
		for n := range 1000 {
			by := state.Author{Kind: "router", ID: "r1", Source: fmt.Sprint("192.0.2.7:", 1024+n)}
			r.Note(audit.Fact{Event: audit.RouterConnected, By: by})
			r.Note(audit.Fact{Event: audit.RouterLost, By: by, Reason: "it closed the connection"})
			time.Sleep(time.Second)
		}
		stop()
		some, facts := happened(t, s)
		if minutes := 1000/60 + 1; len(some) > 2*2*minutes || facts != 2000 || some[0].Address != "192.0.2.7" {
			t.Errorf("there are %d entries of %d facts, the first from %s", len(some), facts, some[0].Address)
		}
	})
}

// TestCounted has circuits made: they are counted by who dials what, and written when
// an hour is over.
func TestCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory())
		defer s.Close()
		r, stop := record(s, "c1")
		defer stop()
		for n := range 3000 {
			r.Note(audit.Fact{
				Event: audit.CircuitsMade, By: state.Author{Kind: "identity", ID: fmt.Sprint("i", n%3)},
				Target: audit.Target{Kind: "service", ID: fmt.Sprint("s", n%2)},
			})
		}
		time.Sleep(30 * time.Minute)
		if some, _ := happened(t, s); len(some) > 0 {
			t.Errorf("there are %d entries before the hour is over", len(some))
		}
		time.Sleep(31 * time.Minute)
		some, _ := happened(t, s)
		if len(some) != 6 || some[0].Count != 500 {
			t.Errorf("there are %d entries, the first of %d", len(some), some[0].Count)
		}
	})
}

// TestLargeFact has somebody say more than anybody would.
func TestLargeFact(t *testing.T) {
	s := open(t, storetest.NewMemory())
	defer s.Close()
	r, stop := record(s, "c1")
	long := strings.Repeat("x\xff", 1<<19)
	f := bad(long, long)
	f.By = state.Author{Kind: long, ID: long, Name: long, Operation: long, Request: long, Source: long, Session: long, Factors: long}
	f.Reason = long
	r.Note(f)
	stop()
	some, _ := happened(t, s)
	line, err := model.AuditEntries.Encode(some[0])
	if err != nil || len(line) > 3000 {
		t.Errorf("the entry has %d bytes, %v", len(line), err)
	}
}

// TestStoreAway has a store that takes nothing for a while. Nobody waits for it, what
// is held is bounded, and when it is back nothing is missing from the count.
func TestStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := storetest.NewFaulty(storetest.NewMemory())
		s := open(t, faulty)
		defer s.Close()
		r, stop := record(s, "c1")
		for i := range 20 {
			faulty.FailNext(storetest.Put, storetest.ErrInjected)
			for n := range 5000 {
				r.Note(audit.Fact{Event: audit.LoggedIn, By: state.Author{Kind: "identity", ID: fmt.Sprint(i, "-", n)}})
			}
			if held := r.Held(); held > 2100 {
				t.Fatalf("it holds %d", held)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Minute) // until it has failed often enough
		stop()
		if _, facts := happened(t, s); facts != 20*5000 {
			t.Errorf("there are entries of %d facts", facts)
		}
		unbroken(t, s)
	})
}

// TestTogether has two controllers take note of things and change records at once:
// there is one chain.
func TestTogether(t *testing.T) {
	memory := storetest.NewMemory()
	var busy sync.WaitGroup
	states := []*state.State{open(t, memory), open(t, memory.Another())}
	for i, s := range states {
		defer s.Close()
		r, stop := record(s, fmt.Sprint("c", i))
		busy.Go(func() {
			for n := range 50 {
				r.Note(audit.Fact{Event: audit.LoggedIn, By: state.Author{Kind: "identity", ID: fmt.Sprint(n)}})
				id := fmt.Sprint(i, "-", n)
				err := s.Update(context.Background(), ann, func(tx *state.Tx) error {
					return model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: id}, Name: id, TerminatorStrategy: "random"})
				})
				if err != nil {
					t.Error(err)
				}
			}
			stop()
		})
	}
	busy.Wait()
	_, err := states[0].Current(t.Context())
	must(t, err)
	unbroken(t, states[0])
	if _, facts := happened(t, states[0]); facts != 100 {
		t.Errorf("there are entries of %d facts", facts)
	}
	if all := entries(t, states[0]); len(all) < 200 {
		t.Errorf("there are %d entries", len(all))
	}
}

// TestNobody is a controller that takes note of nothing.
func TestNobody(*testing.T) {
	var r *audit.Recorder
	r.Note(bad("192.0.2.1", "ann"))
}
