package forward

import (
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// TestOwner has several controllers have circuits carried: each belongs to the
// one that was first, whoever leads it elsewhere.
func TestOwner(t *testing.T) {
	now := time.Unix(1000, 0)
	table := New(Options{ID: "r", Link: func(string) (Place, bool) { return nil, false }, Now: func() time.Time { return now }})
	route := func(id, owner, to string) {
		t.Helper()
		if err := table.Route(id, owner, []message.Forward{{From: "start", To: to, Type: message.ToStart}}); err != nil {
			t.Fatal(err)
		}
	}
	route("one", "a", "x")
	route("two", "b", "x")
	route("one", "b", "y")
	want := map[string]Carried{"one": {"a", map[string]string{"start": "y"}}, "two": {"b", map[string]string{"start": "x"}}}
	if got := table.Circuits(); !reflect.DeepEqual(got, want) {
		t.Errorf("it carries %v, want %v", got, want)
	}
	now = now.Add(time.Minute)
	idle := map[string]map[string]time.Duration{"a": {"one": time.Minute}, "b": {"two": time.Minute}}
	if got := table.Idle(time.Minute); !reflect.DeepEqual(got, idle) {
		t.Errorf("idle are %v, want %v", got, idle)
	}
	for _, id := range []string{"one", "two", "three"} {
		table.Payload("elsewhere", &stream.Payload{Circuit: id}, false)
	}
	known, unknown := table.Strays()
	if !reflect.DeepEqual(known, map[string][]string{"a": {"one"}, "b": {"two"}}) || !reflect.DeepEqual(unknown, []string{"three"}) {
		t.Errorf("strays are %v and %v", known, unknown)
	}
	table.Unroute("one")
	if owner, ok := table.Owner("one"); ok {
		t.Errorf("a circuit that is over belongs to %q", owner)
	}
	route("one", "b", "x")
	if owner, _ := table.Owner("one"); owner != "b" {
		t.Errorf("one that is made again belongs to %q", owner)
	}
}

// TestSpent has the ends of a circuit go, one after the other. What is sent again to
// one that is gone does not count as something that passes, and when neither takes
// anything there is nothing to wait for.
func TestSpent(t *testing.T) {
	began := time.Unix(1000, 0)
	var passed atomic.Int64 // ends have timers, which look at it meanwhile
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	table := New(Options{ID: "r", Link: func(string) (Place, bool) { return nil, false }, Now: now})
	var ends [2]*stream.End
	for i, address := range []string{"start", "end"} {
		ends[i] = stream.New(stream.Options{
			Circuit: "one", Terminator: i == 1, Now: now,
			Send:  func(p *stream.Payload, wait bool) bool { return table.Payload(address, p, wait) },
			Ack:   func(a *stream.Ack) { table.Ack(address, a) },
			Ready: func() {}, Room: func() {}, Done: func(error) {}, Over: func(error) {},
		})
		table.AddEnd(address, ends[i], nil)
	}
	if err := table.Route("one", "a", []message.Forward{{From: "start", To: "end", Type: message.ToEnd}, {From: "end", To: "start", Type: message.ToStart}}); err != nil {
		t.Fatal(err)
	}
	ends[0].Start()
	spent := func(want bool, when string) {
		t.Helper()
		if table.Spent("one") != want {
			t.Errorf("it is spent: %v, %s", !want, when)
		}
	}
	spent(false, "while both ends are there")
	table.Remove("start")
	spent(false, "while one may have something to read yet")
	passed.Add(int64(time.Minute))
	table.Payload("end", &stream.Payload{Circuit: "one"}, false)
	if since, _ := table.Quiet("one"); since < time.Minute {
		t.Errorf("something passed %v ago, though nobody is there", since)
	}
	ends[1].CloseRead()
	spent(true, "when the other takes nothing any more")
	if table.Spent("two") {
		t.Error("a circuit that is not carried is spent")
	}
}

// link takes whatever comes.
type link struct{}

func (link) Packet(*wire.Packet, bool) bool { return true }

// TestUnheard has an end send again and again what nobody answers, over a link that is
// there: for whoever waits until nothing passes any more that is quiet, or the end would
// never hear that its circuit is over. What comes for the end is not, and where there is no
// end whatever passes counts.
func TestUnheard(t *testing.T) {
	now := time.Unix(1000, 0)
	table := New(Options{ID: "r", Link: func(id string) (Place, bool) { return link{}, id == "left" || id == "right" }, Now: func() time.Time { return now }})
	table.AddClient("end", client{})
	for id, to := range map[string]string{"ends": "end", "passes": "left"} {
		if err := table.Route(id, "a", []message.Forward{{From: to, To: "right", Type: message.ToLink}, {From: "right", To: to, Type: message.ToLink}}); err != nil {
			t.Fatal(err)
		}
	}
	quiet := func(id string, want time.Duration, when string) {
		t.Helper()
		if since, carried := table.Quiet(id); since != want || !carried {
			t.Errorf("%s, it was quiet for %v, want %v", when, since, want)
		}
		if idle, is := table.Idle(time.Minute)["a"][id]; is != (want >= time.Minute) || is && idle != want {
			t.Errorf("%s, it was idle for %v, want %v", when, idle, want)
		}
	}
	payload := func(id, from string) {
		table.Packet(from, (&stream.Payload{Circuit: id}).Packet())
	}
	for range 60 {
		now = now.Add(time.Second)
		payload("ends", "end")
		payload("passes", "left")
	}
	quiet("ends", time.Minute, "when an end has sent for a minute")
	quiet("passes", 0, "when something has passed")
	payload("ends", "right")
	quiet("ends", 0, "when something has come for the end")
}

// client is the end of a stream.
type client struct{ link }

func (client) Unrouted()               {}
func (client) Control(*stream.Control) {}
