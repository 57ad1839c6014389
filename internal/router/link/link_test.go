package link

import (
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// TestLink has two routers meet: one link comes to stay, whoever dialled first,
// and both ends know the same of it.
func TestLink(t *testing.T) {
	for _, order := range []string{"a first", "b first", "both"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				a, b := n.node("a", ""), n.node("b", "")
				switch order {
				case "a first":
					a.meets(b)
					synctest.Wait()
					b.meets(a)
				case "b first":
					b.meets(a)
					synctest.Wait()
					a.meets(b)
				case "both":
					a.meets(b)
					b.meets(a)
				}
				pass(2 * time.Minute)
				k, other := a.only(), b.only()
				if k.ID() != other.ID() || k.Peer() != "b" || other.Peer() != "a" || k.dialled == other.dialled {
					t.Fatalf("one end has %s to %s, the other %s to %s", k.ID(), k.Peer(), other.ID(), other.Peer())
				}
				dialler, acceptor := a, b
				if other.dialled {
					dialler, acceptor = b, a
				}
				if told := dialler.told(); len(told) != 1 || told[0] != k.ID()+" 1" {
					t.Errorf("who dialled has told of %v, not of %s", told, k.ID())
				}
				for _, r := range acceptor.told() {
					if r == k.ID()+" 1" {
						t.Errorf("who was dialled has told of the link")
					}
				}
				if order != "both" && len(a.faulted())+len(b.faulted()) > 0 {
					t.Errorf("there were faults: %v, %v", a.faulted(), b.faulted())
				}
				talk(t, a, b, k.ID())
			})
		})
	}
}

// talk sends something both ways.
func talk(t *testing.T, a, b *node, linkID string) {
	t.Helper()
	for _, way := range [][2]*node{{a, b}, {b, a}} {
		k, ok := way[0].Get(linkID)
		if !ok {
			t.Fatalf("%s has no link %s", way[0].id, linkID)
		}
		if !k.Offer(payload("circuit", "hello")) {
			t.Errorf("%s cannot send", way[0].id)
		}
		synctest.Wait()
		if err := k.OfferWhenRoom(t.Context(), &wire.Packet{Type: message.TypeAck, Body: []byte("heard")}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := way[1].bodies(linkID); !slices.Equal(got, []string{"hello", "heard"}) {
			t.Errorf("%s heard %q", way[1].id, got)
		}
		way[1].set(func() { way[1].arrived = nil })
	}
}

// TestBindings has routers that listen on interfaces by name: links both ways
// are not the same then, and both stay.
func TestBindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		a, b := n.node("a", "lo"), n.node("b", "eth0")
		a.meets(b)
		b.meets(a)
		pass(2 * time.Minute)
		keys := func(d *node) (keys []string) {
			for _, k := range d.All() {
				keys = append(keys, k.key)
			}
			slices.Sort(keys)
			return keys
		}
		if got := keys(a); !slices.Equal(got, []string{"eth0->tls:b->lo", "lo->tls:b->eth0"}) {
			t.Errorf("a has %v", got)
		}
		if got := keys(b); !slices.Equal(got, []string{"eth0->tls:a->lo", "lo->tls:a->eth0"}) {
			t.Errorf("b has %v", got)
		}
		for _, id := range a.ids() {
			talk(t, a, b, id)
		}
	})
}

// TestKeys are keys as other programs make them.
func TestKeys(t *testing.T) {
	for _, test := range []struct{ dialer, protocol, peer, listener, want string }{
		{"", "tls", "r1", "", "default->tls:r1->default"},
		{"lo", "tls", "r1", "", "lo->tls:r1->default"},
		{"", "tls", "r1", "eth0", "default->tls:r1->eth0"},
		{"eth0", "tls", "r1", "lo", "eth0->tls:r1->lo"},
	} {
		if got := keyOf(test.dialer, test.protocol, test.peer, test.listener); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// TestDuplicates adds a link to one that does the same, in every way.
func TestDuplicates(t *testing.T) {
	for _, test := range []struct {
		name                   string
		old, new               string
		oldDialled, newDialled bool
		rejected               int
		err                    error
		stays                  string
		fault                  string        // that is told to be going
		gone                   string        // that closes
		after                  time.Duration // then
	}{
		{"smaller stays, dialled", "a", "b", true, true, 0, errDuplicate, "a", "", "", 0},
		{"smaller stays, accepted", "a", "b", true, false, 0, nil, "a", "", "b", spareWait},
		{"smaller stays, it was accepted", "a", "b", false, true, 0, errDuplicate, "a", "", "", 0},
		{"smaller comes, dialled", "b", "a", false, true, 0, nil, "a", "b", "b", leaveOther},
		{"smaller comes, accepted", "b", "a", true, false, 0, nil, "a", "b", "b", leaveDialled},
		{"rejected too often", "a", "b", true, false, maxRejected, nil, "b", "a", "a", leaveDialled},
		{"rejected often", "a", "b", true, false, maxRejected - 1, nil, "a", "", "b", spareWait},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newNetwork(t).node("r", "")
				old := d.bare(test.old, 1, test.oldDialled)
				if err := d.add(old); err != nil {
					t.Fatal(err)
				}
				old.rejected = test.rejected
				if err := d.add(d.bare(test.new, 1, test.newDialled)); err != test.err {
					t.Fatalf("got %v, want %v", err, test.err)
				}
				key := keyOf("", "tls", "peer", "")
				if got := d.byKey[key].ID(); got != test.stays {
					t.Errorf("%s stays, not %s", got, test.stays)
				}
				if test.gone != "" {
					pass(test.after - time.Second)
					if len(d.ids()) != 2 {
						t.Errorf("of two only %v can be sent over", d.ids())
					}
				}
				pass(2 * time.Second)
				if got := d.ids(); !slices.Equal(got, []string{test.stays}) {
					t.Errorf("%v is left, not %s", got, test.stays)
				}
				var want []message.Fault
				if test.fault != "" {
					want = append(want, message.Fault{Subject: message.FaultDuplicateLink, ID: test.fault, Iteration: 1})
				}
				if test.gone != "" {
					want = append(want, message.Fault{Subject: message.FaultLink, ID: test.gone, Iteration: 1})
				}
				if got := d.faulted(); !slices.Equal(got, want) {
					t.Errorf("faults are %v, not %v", got, want)
				}
			})
		})
	}
}

// bare is a link without a socket.
func (d *node) bare(id string, iteration uint32, dialled bool) *Link {
	k := &Link{id: id, key: keyOf("", "tls", "peer", ""), peer: "peer", protocol: "tls", iteration: iteration, dialled: dialled, links: d.Links, since: time.Now()}
	k.join(message.LinkConn{})
	return k
}

// TestRedialled has a link come again under its id: it takes the place of the
// old, which is no loss, unless it is older itself or another's.
func TestRedialled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newNetwork(t).node("r", "")
		first, third, second := d.bare("x", 1, false), d.bare("x", 3, false), d.bare("x", 2, false)
		for _, k := range []*Link{first, third} {
			if err := d.add(k); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.add(second); err != errStale {
			t.Errorf("a link that is late: %v", err)
		}
		stranger := d.bare("x", 4, false)
		stranger.peer = "stranger"
		if err := d.add(stranger); err != errTaken {
			t.Errorf("a link with the id of another's: %v", err)
		}
		if err := d.add(d.bare("x", 4, true)); err != errTaken {
			t.Errorf("a link from here with the id of one from there: %v", err)
		}
		synctest.Wait()
		if first.ended() == nil || third.ended() != nil || d.only() != third || len(d.faulted()) > 0 {
			t.Errorf("the first is %v, the third %v, faults are %v", first.ended(), third.ended(), d.faulted())
		}
	})
}

// TestPromoted has a link stay after all that was not needed beside another.
func TestPromoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newNetwork(t).node("r", "")
		old, spare := d.bare("a", 1, true), d.bare("b", 1, false)
		for _, k := range []*Link{old, spare} {
			if err := d.add(k); err != nil {
				t.Fatal(err)
			}
		}
		d.Close("a", 0) // an old fault
		if len(d.ids()) != 2 {
			t.Fatal("a fault of an earlier time closed the link")
		}
		d.Close("a", 1)
		pass(time.Hour)
		if d.only() != spare || d.byKey[spare.key] != spare {
			t.Errorf("%v is left", d.ids())
		}
	})
}

// TestLarge sends what a program wrote at once, and more than a link carries:
// that is lost, and the link stays.
func TestLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		r := n.node("r", "")
		c := n.caller(t, "peer", r)
		conn, err := c.greet(c.hello("link"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		head := func(size uint32) []byte {
			b := (&wire.Packet{Type: message.TypePayload}).Append(nil)
			return binary.LittleEndian.AppendUint32(b[:16], size)
		}
		body := make([]byte, 1<<20)
		for _, size := range []int{20 << 20, maxFrame + 1<<20, 1 << 20} {
			if _, err := conn.Write(head(uint32(size))); err != nil {
				t.Fatal(err)
			}
			for range size / len(body) {
				if _, err := conn.Write(body); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait()
		if got := r.bodies("link"); len(got) != 2 || len(got[0]) != 20<<20 || len(got[1]) != 1<<20 {
			t.Errorf("%d frames arrived", len(got))
		}
		r.only()
	})
}
