package fabric

import (
	"cmp"
	"slices"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
)

// membersEvery is how often it is looked which controllers there are.
const membersEvery = 3 * time.Second

// watchMembers tells what becomes of the controllers of the network, as it is seen from
// time to time.
func (t *talk) watchMembers(want wanted) {
	again := time.NewTicker(membersEvery)
	defer again.Stop()
	var before []api.Member
	known := false
	for {
		if all, err := t.s.Cluster.Members(t.ctx); err == nil {
			if known {
				t.tellMembers(want, t.s.Sessions.Now(), before, all)
			}
			before, known = all, true
		}
		select {
		case <-t.ctx.Done():
			return
		case <-again.C:
		}
	}
}

// tellMembers tells in what the controllers differ from those of before.
func (t *talk) tellMembers(want wanted, now time.Time, before, after []api.Member) {
	say := func(typ string, more map[string]any) {
		if more == nil {
			more = map[string]any{}
		}
		more["eventType"] = typ
		t.tell(want, now, more)
	}
	find := func(some []api.Member, id string) (api.Member, bool) {
		i := slices.IndexFunc(some, func(m api.Member) bool { return m.ID == id })
		if i < 0 {
			return api.Member{}, false
		}
		return some[i], true
	}
	moved := len(before) != len(after)
	for _, m := range after {
		was, there := find(before, m.ID)
		moved = moved || !there
		if m.Online != was.Online && !m.Self {
			say(map[bool]string{true: "peer.connected", false: "peer.disconnected"}[m.Online], map[string]any{"peers": t.peers(m)})
		}
	}
	for _, m := range before {
		if _, there := find(after, m.ID); !there && m.Online && !m.Self {
			say("peer.disconnected", map[string]any{"peers": t.peers(m)})
		}
	}
	if moved {
		say("members.changed", map[string]any{"peers": t.peers(after...)})
	}
	was, is := leaderOf(before), leaderOf(after)
	switch {
	case was.ID == is.ID:
		return
	case is.Self:
		say("leadership.gained", map[string]any{"peers": t.peers(after...)})
	case was.Self:
		say("leadership.lost", nil)
	}
	if is.ID == "" {
		say("state.is_leaderless", nil)
	} else {
		say("state.has_leader", map[string]any{"leaderId": cmp.Or(is.Name, is.ID)})
	}
}

// leaderOf is the one that leads; an empty one if none does.
func leaderOf(some []api.Member) api.Member {
	for _, m := range some {
		if m.Leader {
			return m
		}
	}
	return api.Member{}
}

// peers are controllers in the words of events.
func (t *talk) peers(some ...api.Member) []map[string]any {
	list := []map[string]any{}
	snap := t.state.Snapshot()
	for _, m := range some {
		peer := map[string]any{"id": cmp.Or(m.Name, m.ID), "addr": m.Address, "apiAddresses": nil}
		if m.Version != "" {
			peer["version"] = m.Version
		}
		if rec, known := model.Controllers.Get(snap, m.Name); known {
			peer["apiAddresses"] = api.AddressesOf(rec)
		}
		list = append(list, peer)
	}
	return list
}
