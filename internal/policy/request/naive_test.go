package request_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/validity"
)

// machine is a network whose parts change at random, beside what somebody thinks of it
// who wrote down every word.
type machine struct {
	*world
	keeper  *validity.Keeper
	needed  int
	open    map[string]*asked // by who asked
	until   map[string]time.Time
	leads   map[string]time.Time // until when; zero for not at all
	shutOut map[string]bool
}

type asked struct {
	id      string
	minutes int
	expires time.Time
	words   []string // who approved
}

func newMachine(rt *rapid.T) *machine {
	m := &machine{world: newWorld(rt), needed: 1, open: map[string]*asked{}, until: map[string]time.Time{}, leads: map[string]time.Time{}, shutOut: map[string]bool{}}
	for _, who := range deciders {
		m.leads[who] = forever
	}
	m.keeper = &validity.Keeper{State: m.st, Now: m.clock, Log: slog.New(slog.DiscardHandler)}
	return m
}

var forever = begin.AddDate(100, 0, 0)

// everybody may ask, and may lead at times.
var everybody = slices.Concat(askers, deciders)

func (m *machine) may(who, asker string) bool {
	return who != asker && !m.shutOut[who] && m.clock().Before(m.leads[who])
}

func (m *machine) Ask(rt *rapid.T) {
	who, minutes := rapid.SampledFrom(everybody).Draw(rt, "who"), rapid.IntRange(1, 120).Draw(rt, "minutes")
	q, err := m.ask(who, minutes)
	if err == nil {
		m.open[who] = &asked{id: q.ID, minutes: minutes, expires: m.clock().Add(model.RequestLife)}
	}
}

func (m *machine) Approve(rt *rapid.T) {
	who, asker := rapid.SampledFrom(everybody).Draw(rt, "who"), rapid.SampledFrom(everybody).Draw(rt, "asker")
	q := m.open[asker]
	if q == nil {
		return
	}
	err := m.approve(who, q.id)
	if m.may(who, asker) && m.clock().Before(q.expires) {
		q.words = slices.DeleteFunc(q.words, func(w string) bool { return !m.may(w, asker) })
		if !slices.Contains(q.words, who) {
			q.words = append(q.words, who)
		} else if err == nil {
			rt.Fatalf("%s approved twice", who)
		}
	} else if err == nil {
		rt.Fatalf("%s approved what %s asked for", who, asker)
	}
	if err == nil && len(q.words) >= m.needed {
		delete(m.open, asker)
		if end := m.clock().Add(time.Duration(q.minutes) * time.Minute); end.After(m.until[asker]) {
			m.until[asker] = end
		}
	}
}

func (m *machine) Deny(rt *rapid.T) {
	who, asker := rapid.SampledFrom(everybody).Draw(rt, "who"), rapid.SampledFrom(everybody).Draw(rt, "asker")
	if q := m.open[asker]; q != nil && m.desk.Deny(context.Background(), by(who), who, q.id, "") == nil {
		delete(m.open, asker)
	}
}

func (m *machine) Lead(rt *rapid.T) {
	who := rapid.SampledFrom(everybody).Draw(rt, "who")
	i, _ := model.Identities.Get(m.st.Snapshot(), who)
	switch rapid.IntRange(0, 2).Draw(rt, "how") {
	case 0:
		m.identity(rt, who, func(i *model.Identity) { i.RoleAttributes = nil })
		if m.leads[who] == forever {
			m.leads[who] = time.Time{}
		}
	case 1:
		if slices.Contains(i.GrantedAttributes, "leads") {
			return // what is lent is not made somebody's own by writing it
		}
		m.identity(rt, who, func(i *model.Identity) { i.RoleAttributes = append(i.RoleAttributes, "leads") })
		m.leads[who] = forever
	case 2:
		if m.leads[who] == forever || m.clock().Before(m.leads[who]) {
			return
		}
		m.leads[who] = m.clock().Add(30 * time.Minute)
		m.give(rt, func(tx *state.Tx) error {
			return model.Grants.Create(tx, &model.Grant{IdentityID: who, Attribute: "leads", Reason: "holidays", ValidUntil: m.leads[who]})
		})
	}
}

func (m *machine) ShutOut(rt *rapid.T) {
	who := rapid.SampledFrom(everybody).Draw(rt, "who")
	m.shutOut[who] = !m.shutOut[who]
	m.identity(rt, who, func(i *model.Identity) {
		i.DisabledAt, i.DisabledUntil = nil, nil
		if m.shutOut[who] {
			i.Disable(m.clock(), 0)
		}
	})
}

func (m *machine) Need(rt *rapid.T) {
	m.needed = rapid.IntRange(1, 2).Draw(rt, "needed")
	m.service(rt, func(s *model.Service) { c := *s.Requests; c.Approvals = m.needed; s.Requests = &c })
}

func (m *machine) Pass(rt *rapid.T) {
	m.pass(time.Duration(rapid.SampledFrom([]int{1, 20, 60, 600}).Draw(rt, "minutes")) * time.Minute)
	if rapid.Bool().Draw(rt, "settled") {
		if err := m.keeper.Settle(rt.Context()); err != nil {
			rt.Fatal(err)
		}
	}
}

// Check is that those have the attribute who were approved by as many as it takes, each
// of whom might at that moment, for as long as they asked for.
func (m *machine) Check(rt *rapid.T) {
	snap := m.keeper.View(m.st.Snapshot())
	for _, who := range everybody {
		i, _ := model.Identities.Get(snap, who)
		if got, want := slices.Contains(i.RoleAttributes, "finance"), m.clock().Before(m.until[who]); got != want {
			rt.Fatalf("at %v %s has the attribute: %v, want %v until %v", m.clock(), who, got, want, m.until[who])
		}
	}
}

// TestNaively compares with somebody who wrote down every word.
func TestNaively(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { rt.Repeat(rapid.StateMachineActions(newMachine(rt))) })
}
