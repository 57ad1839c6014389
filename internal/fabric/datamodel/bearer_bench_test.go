package datamodel

import (
	"context"
	"fmt"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// logins are how many clients are logged in elsewhere, and nearBy how many may use the router
// that is looked at.
var (
	logins = []int{100, 10_000, 100_000}
	nearBy = 20
)

// crowded is a network in which everybody is logged in by OpenID Connect, and a few of them
// may use the router "judge".
func crowded(b *testing.B, elsewhere int) *state.State {
	b.Helper()
	mem := storetest.NewMemoryWithin(store.Limits{Ops: 1 << 20, Bytes: 1 << 30})
	var ops []store.Op
	add := func(d *kind.Def, rec kind.Record) {
		value, err := d.Encode(rec)
		if err != nil {
			b.Fatal(err)
		}
		ops = append(ops, store.Op{Key: d.Name + "/" + rec.Base().ID, Value: value})
	}
	add(model.IdentityTypes.Def, &model.IdentityType{Meta: kind.Meta{ID: "User"}, Name: "User"})
	add(model.AuthPolicies.Def, &model.AuthPolicy{Meta: kind.Meta{ID: model.DefaultAuthPolicy}, Name: "Default"})
	add(model.EdgeRouters.Def, &model.EdgeRouter{Meta: kind.Meta{ID: "judge"}, Name: "judge"})
	add(model.EdgeRouterPolicies.Def, &model.EdgeRouterPolicy{
		Meta: kind.Meta{ID: "near"}, Name: "near", Semantic: model.AnyOf, IdentityRoles: []string{"#near"}, EdgeRouterRoles: []string{"@judge"},
	})
	for n := range elsewhere + nearBy {
		who, role := fmt.Sprintf("i%06d", n), "far"
		if n < nearBy {
			role = "near"
		}
		add(model.Identities.Def, &model.Identity{Meta: kind.Meta{ID: who}, Name: who, Type: "User", AuthPolicyID: model.DefaultAuthPolicy, RoleAttributes: []string{role}})
		add(model.APISessions.Def, session("s"+who, who))
	}
	if _, err := mem.Commit(context.Background(), 0, store.Head{}, ops); err != nil {
		b.Fatal(err)
	}
	st, err := state.Open(context.Background(), mem, model.All, state.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(st.Close)
	return st
}

// session is one that has given out tokens, and of which routers are told.
func session(id, who string) *model.APISession {
	return &model.APISession{Meta: kind.Meta{ID: id}, IdentityID: who, TokenHash: id, Login: id, Client: "native", Turn: 1, Fingerprint: "00"}
}

// BenchmarkLogin lets somebody log in who may use a router that judges such clients, however
// many are logged in elsewhere.
func BenchmarkLogin(b *testing.B) {
	for _, elsewhere := range logins {
		b.Run(fmt.Sprint(elsewhere), func(b *testing.B) {
			st := crowded(b, elsewhere)
			m, out := newModels(st), new(sink)
			m.Bearing = bearing
			m.subscribe("judge", out, &message.SubscribeToDataModel{})
			m.idle()
			const who = "i000000"
			change := func(fn func(tx *state.Tx) error) (before, after *state.Snapshot) {
				before = st.Snapshot()
				if err := st.Update(context.Background(), state.Program("bench"), fn); err != nil {
					b.Fatal(err)
				}
				return before, st.Snapshot()
			}
			ref := []state.Ref{{Def: model.APISessions.Def, ID: "another"}}
			for b.Loop() {
				b.StopTimer()
				before, after := change(func(tx *state.Tx) error { return model.APISessions.Create(tx, session("another", who)) })
				b.StartTimer()
				m.Applied(before, after, ref)
				m.idle()
				b.StopTimer()
				before, after = change(func(tx *state.Tx) error { return model.APISessions.Delete(tx, "another") })
				m.Applied(before, after, ref)
				m.idle()
				b.StartTimer()
			}
			if told := m.routers["judge"].knows.sessions; len(told) != nearBy {
				b.Errorf("the router knows %d sessions", len(told))
			}
		})
	}
}
