package uplink

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"netkeep.internal/internal/wire/message"
)

// members is a list of controllers, each with its addresses.
func members(index uint64, all ...[]string) *message.Members {
	m := &message.Members{Index: index}
	for _, one := range all {
		member := message.Member{ID: one[0]}
		for _, at := range one[1:] {
			member.Endpoints = append(member.Endpoints, message.Endpoint{Address: at})
			m.Addresses = append(m.Addresses, at)
		}
		m.Controllers = append(m.Controllers, member)
	}
	return m
}

// texts are controllers as text: id and addresses.
func texts(list []Controller) (all []string) {
	for _, c := range list {
		all = append(all, fmt.Sprint(c.ID, c.Addresses))
	}
	slices.Sort(all)
	return all
}

// TestListed reads lists of controllers in both forms, and what is none.
func TestListed(t *testing.T) {
	for name, c := range map[string]struct {
		m    *message.Members
		want []string
	}{
		"none":                  {&message.Members{Index: 1}, nil},
		"addresses alone":       {&message.Members{Addresses: []string{"tls:a:1", "tls:b:1", "tls:a:1"}}, []string{"[tls:a:1]", "[tls:b:1]"}},
		"both forms":            {members(1, []string{"x", "tls:a:1"}, []string{"y", "tls:b:1", "tls:c:1"}), []string{"x[tls:a:1]", "y[tls:b:1 tls:c:1]"}},
		"ids without addresses": {&message.Members{Addresses: []string{"tls:a:1"}, Controllers: []message.Member{{ID: "x"}}}, []string{"[tls:a:1]"}},
		"an id twice":           {members(1, []string{"x", "tls:a:1"}, []string{"x", "tls:b:1"}), []string{"x[tls:a:1 tls:b:1]"}},
		"an address twice":      {members(1, []string{"x", "tls:a:1"}, []string{"y", "tls:a:1", "tls:b:1"}), []string{"x[tls:a:1]", "y[tls:b:1]"}},
		"no id":                 {members(1, []string{"", "tls:a:1", "tls:b:1"}), []string{"[tls:a:1]", "[tls:b:1]"}},
		"no addresses":          {members(1, []string{"x", "a:1", "", "ws:a:1", "tls:a", "tls:a:99999", "tls::1"}), nil},
	} {
		if got := texts(Listed(c.m)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	many := &message.Members{}
	for i := range 1000 {
		many.Addresses = append(many.Addresses, fmt.Sprintf("tls:host%d:1", i))
	}
	if n := len(Listed(many)); n != maxControllers {
		t.Errorf("%d controllers were taken", n)
	}
}

// seated are the ids of those that are connected, and where every seat is.
func seated(u *Uplink) (connected, all []string) {
	for _, s := range u.seats {
		if s.line != nil {
			connected = append(connected, s.line.id)
		}
		all = append(all, fmt.Sprint(s.id, s.addresses))
	}
	slices.Sort(connected)
	slices.Sort(all)
	return connected, all
}

// TestFollow has a router follow lists of controllers: by their order, not by
// when they come.
func TestFollow(t *testing.T) {
	u := newUplink(t, &handler{})
	x, y := attach(t, u, "x"), attach(t, u, "y")
	cut := map[string]bool{}
	for _, s := range u.seats {
		s.cut = func() { cut[s.id] = true }
		s.end = func() { cut["end of "+s.id] = true }
	}
	all := func(what string, want ...string) {
		t.Helper()
		if _, got := seated(u); !slices.Equal(got, want) {
			t.Errorf("%s: the controllers are %q, want %q", what, got, want)
		}
	}
	at := func(id string) string { return "tls:" + id + ":1280" }
	u.onMembers(members(5, []string{"x", at("x")}, []string{"y", at("y")}, []string{"z", at("z")}))
	all("a third one", "x["+at("x")+"]", "y["+at("y")+"]", "z["+at("z")+"]")
	u.onMembers(members(5, []string{"x", at("x")}))
	u.onMembers(members(4, []string{"x", at("x")}))
	u.onMembers(&message.Members{Index: 9})
	all("what is older, as old, or empty", "x["+at("x")+"]", "y["+at("y")+"]", "z["+at("z")+"]")
	if len(cut) > 0 {
		t.Errorf("it ended %v", cut)
	}
	u.onMembers(members(6, []string{"x", at("elsewhere")}, []string{"y", at("new"), at("y")}))
	all("one moved, one has one more address, one is gone", "x["+at("elsewhere")+"]", "y["+at("new")+" "+at("y")+"]")
	if !cut["x"] || len(cut) != 1 {
		t.Errorf("it ended %v, want the connection to the one that moved", cut)
	}
	u.onMembers(members(7, []string{"y", at("y")}))
	if !cut["end of x"] || cut["y"] || len(cut) != 2 {
		t.Errorf("it ended %v, want that of the one that is gone too", cut)
	}
	// Nobody is connected: the network may be restored to an earlier state.
	x.line.Close(nil)
	y.line.Close(nil)
	u.seats[0].lose(y.line)
	u.onMembers(members(2, []string{"w", at("w")}))
	all("an earlier list, with nobody left", "w["+at("w")+"]")
}

// TestFollowAny has a router follow any lists: it ends up with whom the newest
// one names, and no connection ends of one that stays where it is.
func TestFollowAny(t *testing.T) {
	ids := []string{"a", "b", "c", "d", ""}
	addresses := []string{"tls:a:1", "tls:b:1", "tls:c:1", "tls:d:1", "tls:e:1"}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		u := newUplink(t, &handler{})
		var newest *message.Members
		for range 20 {
			m := &message.Members{Index: uint64(rnd.IntN(30))}
			for range rnd.IntN(5) {
				one := message.Member{ID: ids[rnd.IntN(len(ids))]}
				for range rnd.IntN(3) {
					one.Endpoints = append(one.Endpoints, message.Endpoint{Address: addresses[rnd.IntN(len(addresses))]})
				}
				m.Controllers = append(m.Controllers, one)
			}
			list := Listed(m)
			taken := len(list) > 0 && (newest == nil || m.Index > newest.Index)
			stays := map[*seat]bool{}
			ended := map[*seat]bool{}
			for _, s := range u.seats {
				if s.line == nil && s.id != "" && u.other(s) == nil && rnd.IntN(2) == 0 {
					s.line, s.at = &line{id: s.id}, s.addresses[rnd.IntN(len(s.addresses))]
				}
				s.cut, s.end = func() { ended[s] = true }, func() { ended[s] = true }
				stays[s] = s.line != nil && (!taken || slices.ContainsFunc(list, func(c Controller) bool { return c.ID == s.id && slices.Contains(c.Addresses, s.at) }))
			}
			u.onMembers(m)
			if taken {
				newest = m
			}
			if newest == nil {
				continue
			}
			for s, stay := range stays {
				if stay && (ended[s] || !slices.Contains(u.seats, s)) {
					t.Fatalf("seed %d: the connection to %s at %s ended by %+v", seed, s.id, s.at, m)
				}
				if !stay && s.line != nil && !ended[s] && taken && !slices.ContainsFunc(list, func(c Controller) bool { return c.ID == "" && slices.Contains(c.Addresses, s.at) }) {
					t.Fatalf("seed %d: the connection to %s at %s goes on after %+v", seed, s.id, s.at, m)
				}
				if ended[s] {
					s.line = nil
				}
			}
			list, told := u.List()
			want := texts(Listed(newest))
			if got := texts(list); !told || !slices.Equal(addressesOf(got), addressesOf(want)) {
				t.Fatalf("seed %d: it knows %q, and the newest list says %q", seed, got, want)
			}
		}
	}
}

// addressesOf are controllers without their ids, which a seat may know although
// a list does not say.
func addressesOf(list []string) (all []string) {
	for _, text := range list {
		all = append(all, text[slices.Index([]byte(text), '['):])
	}
	slices.Sort(all)
	return all
}
