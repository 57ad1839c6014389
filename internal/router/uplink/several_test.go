package uplink

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// last is the last frame of a type that the controller was told; nil if there is
// none.
func (c *controller) last(typ int32) *wire.Frame {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range slices.Backward(c.told) {
		if f.Type == typ {
			return f
		}
	}
	return nil
}

// made answers a request for a circuit.
func (c *controller) made(t *testing.T, to *wire.Frame, id string) {
	t.Helper()
	f := &wire.Frame{Type: message.TypeCircuitCreated, Headers: wire.Headers{}}
	f.Headers.SetText(message.HeaderCircuitID, id)
	f.Headers.SetText(message.HeaderCircuitAddress, "address")
	if err := c.Reply(to, f); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// dialled is how a dial went.
type dialled struct {
	*message.CircuitCreated
	err error
}

func dial(ctx context.Context, u *Uplink) chan dialled {
	done := make(chan dialled, 1)
	go func() {
		made, err := u.Dial(ctx, &message.CreateCircuit{SessionToken: "x"})
		done <- dialled{made, err}
	}()
	synctest.Wait()
	return done
}

// asked is the fault that a controller was told last.
func (c *controller) fault(t *testing.T) message.Fault {
	t.Helper()
	f := c.last(message.TypeFault)
	if f == nil {
		return message.Fault{}
	}
	m, err := message.Unmarshal[message.Fault](f.Body)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

// measure has a controller look as quick as that.
func (c *controller) measure(took time.Duration) { c.line.took.Store(int64(took)) }

// TestQuickest asks the quickest controller, and another when that is gone.
func TestQuickest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUplink(t, &handler{})
		fresh, far, near := attach(t, u, "fresh"), attach(t, u, "far"), attach(t, u, "near")
		far.measure(90 * time.Millisecond)
		near.measure(3 * time.Millisecond)
		done := dial(t.Context(), u)
		if near.last(message.TypeCreateCircuit) == nil || far.last(message.TypeCreateCircuit) != nil {
			t.Fatal("it is not the quickest that is asked")
		}
		near.Close(nil)
		asked := far.last(message.TypeCreateCircuit)
		if asked == nil || fresh.last(message.TypeCreateCircuit) != nil {
			t.Fatal("when the quickest is gone, the next is not asked")
		}
		far.made(t, asked, "circuit")
		if d := <-done; d.err != nil || d.CircuitID != "circuit" {
			t.Errorf("%+v, %v", d.CircuitCreated, d.err)
		}
		done = dial(t.Context(), u)
		far.Close(nil)
		synctest.Wait()
		fresh.Close(nil)
		if d := <-done; !errors.Is(d.err, ErrAway) {
			t.Errorf("with nobody left: %v", d.err)
		}
	})
}

// refused answers a request with a refusal.
func (c *controller) refused(t *testing.T, to *wire.Frame, why *message.Refusal) {
	t.Helper()
	if err := c.Reply(to, why.Answer()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// TestNotNow asks another controller when one cannot answer at present, and no other
// when it has answered.
func TestNotNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUplink(t, &handler{})
		near, far := attach(t, u, "near"), attach(t, u, "far")
		near.measure(time.Millisecond)
		far.measure(time.Second)
		done := dial(t.Context(), u)
		near.refused(t, near.last(message.TypeCreateCircuit), message.Busy("it has yet to hear of a router"))
		asked := far.last(message.TypeCreateCircuit)
		if asked == nil {
			t.Fatal("nobody else is asked")
		}
		far.made(t, asked, "circuit")
		if d := <-done; d.err != nil || d.CircuitID != "circuit" {
			t.Errorf("%+v, %v", d.CircuitCreated, d.err)
		}
		done = dial(t.Context(), u)
		near.refused(t, near.last(message.TypeCreateCircuit), message.Busy("first"))
		far.refused(t, far.last(message.TypeCreateCircuit), message.Busy("second"))
		if d := <-done; d.err == nil || d.err.Error() != "second" {
			t.Errorf("when nobody can: %v", d.err)
		}
		before := far.last(message.TypeCreateCircuit)
		for _, why := range []*message.Refusal{message.Refuse(message.CodeInvalidTerminator, "nobody hosts"), message.Unreached(message.RouteNoRoom, "full")} {
			done = dial(t.Context(), u)
			near.refused(t, near.last(message.TypeCreateCircuit), why)
			if d := <-done; d.err == nil || d.err.Error() != why.Error() || far.last(message.TypeCreateCircuit) != before {
				t.Errorf("%v: %v, or another is asked too", why, d.err)
			}
		}
	})
}

// TestSilent asks another controller when the first falls silent, but not when
// it only takes its time; the circuit that nobody waits for is ended where it was
// made.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUplink(t, &handler{})
		slow, other := attach(t, u, "slow"), attach(t, u, "other")
		slow.measure(time.Millisecond)
		other.measure(2 * time.Millisecond)
		done := dial(t.Context(), u)
		<-time.After(20 * time.Second)
		if other.last(message.TypeCreateCircuit) != nil {
			t.Fatal("another is asked although the first lives")
		}
		slow.made(t, slow.last(message.TypeCreateCircuit), "one")
		if d := <-done; d.err != nil || d.CircuitID != "one" {
			t.Fatalf("%+v, %v", d.CircuitCreated, d.err)
		}
		// It falls silent, as a process that is stopped does.
		resume := slow.socket.hold()
		done = dial(t.Context(), u)
		if other.last(message.TypeCreateCircuit) != nil {
			t.Fatal("it is not known yet, and nobody is asked in vain")
		}
		<-time.After(patience + 2*glance)
		asked := other.last(message.TypeCreateCircuit)
		if asked == nil {
			t.Fatal("nobody else is asked")
		}
		other.made(t, asked, "two")
		if d := <-done; d.err != nil || d.CircuitID != "two" {
			t.Fatalf("%+v, %v", d.CircuitCreated, d.err)
		}
		// It is known now: the next goes elsewhere at once.
		done = dial(t.Context(), u)
		if asked = other.last(message.TypeCreateCircuit); asked == nil {
			t.Fatal("one that is silent is asked")
		}
		other.made(t, asked, "three")
		if d := <-done; d.err != nil || d.CircuitID != "three" {
			t.Fatalf("%+v, %v", d.CircuitCreated, d.err)
		}
		// It goes on, and does what it was asked for.
		resume()
		slow.made(t, slow.last(message.TypeCreateCircuit), "late")
		if f := slow.fault(t); f.Subject != message.FaultIngress || f.ID != "late" {
			t.Errorf("of the circuit that nobody waits for it was told %+v", f)
		}
		if f := other.fault(t); f.ID != "" {
			t.Errorf("another controller was told %+v", f)
		}
		if !slow.line.responsive(time.Now()) {
			t.Error("it still counts as silent")
		}
	})
}

// TestTold tells all controllers of links, and only the owner of a circuit's
// end, when it is back.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUplink(t, &handler{})
		one, two := attach(t, u, "one"), attach(t, u, "two")
		if err := u.Fault(message.Fault{Subject: message.FaultLink, ID: "link"}); err != nil {
			t.Error(err)
		}
		for _, c := range []*controller{one, two} {
			if f := c.fault(t); f.ID != "link" {
				t.Errorf("of a link it was told %+v", f)
			}
		}
		end := func(owner, id string) { u.FaultOf(owner, message.Fault{Subject: message.FaultEgress, ID: id}) }
		end("one", "circuit")
		if f := one.fault(t); f.ID != "circuit" {
			t.Errorf("the owner was told %+v", f)
		}
		if f := two.fault(t); f.ID != "link" {
			t.Errorf("another was told %+v", f)
		}
		if err := u.Metrics(&message.Metrics{Usage: []message.Usage{{Start: 1}}}); err != nil {
			t.Error(err)
		}
		copies := 0
		for _, c := range []*controller{one, two} {
			m, err := message.Unmarshal[message.Metrics](c.last(message.TypeMetrics).Body)
			if err != nil || len(m.Usage) != 1 {
				t.Errorf("it was told %+v, %v", m, err)
			}
			if m.Copy {
				copies++
			}
		}
		if copies != 1 {
			t.Errorf("%d of two count nothing of it", copies)
		}

		for i := range maxOwed + 1 {
			end("away", string(rune('a'+i%26)))
		}
		end("away", "last")
		back := attach(t, u, "away")
		go u.keep(back.line)
		synctest.Wait()
		told := 0
		for _, typ := range back.heard() {
			if typ == message.TypeFault {
				told++
			}
		}
		if f := back.fault(t); f.ID != "last" || told != maxOwed {
			t.Errorf("one that is back was told of %d ends, the last is %+v", told, f)
		}
		<-time.After(owedAgain + time.Second)
		told = 0
		for _, typ := range back.heard() {
			if typ == message.TypeFault {
				told++
			}
		}
		if told != 2*maxOwed || len(u.owed.take("away")) > 0 {
			t.Errorf("after a while it was told of %d", told)
		}
	})
}

// TestSessionsOfSeveral has several controllers tell of API sessions: a list of
// all from one ends what it has told itself, and what others have told so long ago
// that it would know.
func TestSessionsOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUplink(t, &handler{})
		one, two := attach(t, u, "one"), attach(t, u, "two")
		send := func(c *controller, f *wire.Frame) {
			t.Helper()
			if err := c.Send(f); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		added := func(ids ...string) *wire.Frame {
			return frame(message.TypeAPISessionsAdded, &message.APISessionsAdded{Sessions: named(ids...)})
		}
		knows := func(want ...string) {
			t.Helper()
			var got []string
			for id := range u.sessions.byID {
				got = append(got, id)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Fatalf("it knows %q, want %q", got, want)
			}
		}
		send(one, part(t, 0, true, "a", "b"))
		<-time.After(behind)
		send(two, added("c"))
		// Lists of both, in parts, at the same time.
		send(one, part(t, 0, false, "a"))
		send(two, part(t, 0, false, "a"))
		send(one, part(t, 1, true))
		knows("a", "c") // the list may be older than what the other said
		if one.last(message.TypeResyncRequest) != nil {
			t.Error("it asks for all again at once")
		}
		send(two, part(t, 1, true, "c", "d"))
		knows("a", "c", "d")
		<-time.After(behind + time.Second)
		if one.last(message.TypeResyncRequest) == nil {
			t.Fatal("it does not ask again for what was in doubt")
		}
		send(one, part(t, 0, true, "c"))
		knows("c") // what the other said is old by now
		// What one says goes, whoever said that it is there.
		send(two, frame(message.TypeAPISessionsRemoved, &message.Removed{IDs: []string{"c"}, Tokens: []string{""}}))
		knows()
		// The connection of one ends in a list: the other's goes on.
		send(one, part(t, 0, false, "e"))
		send(two, part(t, 0, false, "f"))
		u.sessions.abandon("one")
		send(two, part(t, 1, true, "g"))
		knows("e", "f", "g")
	})
}

// TestFind asks controllers for an API session that none has told of, one after
// the other until one answers, and only those that know the question.
func TestFind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUplink(t, &handler{})
		older, dead, other := attach(t, u, "older"), attach(t, u, "dead"), attach(t, u, "other")
		older.measure(1)
		dead.measure(2)
		other.measure(3)
		dead.line.finds, other.line.finds = true, true
		defer dead.socket.hold()()
		found := make(chan APISession, 1)
		go func() {
			s, _ := u.Sessions().Await(t.Context(), "token of a")
			found <- s
		}()
		<-time.After(askAfter[0] + patience + time.Millisecond)
		asked := other.last(message.TypeFindAPISession)
		if asked == nil || asked.Headers.Text(message.HeaderAPISessionToken) != "token of a" {
			t.Fatalf("the other was asked %+v", asked)
		}
		if older.last(message.TypeFindAPISession) != nil {
			t.Error("one was asked that does not know the question")
		}
		if err := other.Reply(asked, frame(message.TypeAPISessionsAdded, &message.APISessionsAdded{Sessions: named("a")})); err != nil {
			t.Fatal(err)
		}
		if s := <-found; s.ID != "a" {
			t.Errorf("it found %+v", s)
		}
	})
}
