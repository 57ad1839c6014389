package datamodel

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

const (
	manyIdentities, manyServices, manyRouters, manyPolicies = 100_000, 10_000, 500, 1_000
)

// sizes are how many services the routers with a name of their own may use:
// t10 may host ten.
var sizes = []int{10, 100, 1_000}

// large is a large network, which takes seconds to build. All services have a
// config of their own, and every router may host ten of them.
var large = sync.OnceValue(func() *state.State {
	mem := storetest.NewMemoryWithin(store.Limits{Ops: 1 << 20, Bytes: 1 << 30})
	var ops []store.Op
	add := func(d *kind.Def, rec kind.Record) {
		value, err := d.Encode(rec)
		if err != nil {
			panic(err)
		}
		ops = append(ops, store.Op{Key: d.Name + "/" + rec.Base().ID, Value: value})
	}
	meta := func(prefix string, n int) kind.Meta { return kind.Meta{ID: fmt.Sprintf("%s%06d", prefix, n)} }
	identity := func(m kind.Meta, typ string, attributes ...string) {
		add(model.Identities.Def, &model.Identity{Meta: m, Name: m.ID, Type: typ, AuthPolicyID: model.DefaultAuthPolicy, RoleAttributes: attributes})
	}
	policy := func(m kind.Meta, typ, who, what string) {
		add(model.ServicePolicies.Def, &model.ServicePolicy{
			Meta: m, Name: m.ID, Type: typ, Semantic: model.AnyOf, IdentityRoles: []string{who}, ServiceRoles: []string{what},
		})
	}
	router := func(m kind.Meta, services string) {
		add(model.EdgeRouters.Def, &model.EdgeRouter{Meta: m, Name: m.ID, IsTunnelerEnabled: services != ""})
		if services != "" {
			identity(m, model.TypeRouter)
			policy(kind.Meta{ID: "of-" + m.ID}, model.Bind, "@"+m.ID, services)
		}
	}
	for _, typ := range []string{"User", model.TypeRouter} {
		add(model.IdentityTypes.Def, &model.IdentityType{Meta: kind.Meta{ID: typ}, Name: typ})
	}
	add(model.AuthPolicies.Def, &model.AuthPolicy{Meta: kind.Meta{ID: model.DefaultAuthPolicy}, Name: "Default"})
	add(model.ConfigTypes.Def, &model.ConfigType{Meta: kind.Meta{ID: "type"}, Name: "type"})
	for n := range manyIdentities {
		identity(meta("i", n), "User", fmt.Sprint("a", n%300), fmt.Sprint("b", n%97))
	}
	for n := range manyServices {
		m := meta("s", n)
		add(model.Configs.Def, &model.Config{
			Meta: kind.Meta{ID: "c" + m.ID}, Name: m.ID, ConfigTypeID: "type", Data: jsontext.Value(`{"data":"` + strings.Repeat("x", 300) + `"}`),
		})
		attributes := []string{fmt.Sprint("a", n%100), fmt.Sprint("ten", n/10)}
		for _, size := range sizes {
			if n < size {
				attributes = append(attributes, fmt.Sprint("first", size))
			}
		}
		add(model.Services.Def, &model.Service{
			Meta: m, Name: m.ID, TerminatorStrategy: "smartrouting", RoleAttributes: attributes, Configs: []string{"c" + m.ID},
		})
	}
	for n := range manyRouters {
		router(meta("r", n), fmt.Sprintf("#ten%d", n))
	}
	for _, size := range sizes {
		router(kind.Meta{ID: fmt.Sprint("t", size)}, fmt.Sprint("#first", size))
	}
	router(kind.Meta{ID: "ordinary"}, "")
	for n := range manyPolicies {
		policy(meta("p", n), model.Dial, fmt.Sprint("#a", n%300), fmt.Sprint("#a", n%100))
	}
	if _, err := mem.Commit(context.Background(), 0, store.Head{}, ops); err != nil {
		panic(err)
	}
	st, err := state.Open(context.Background(), mem, model.All, state.Options{})
	if err != nil {
		panic(err)
	}
	return st
})

// sink takes frames and keeps how large they are.
type sink struct{ frames, bytes int }

func (s *sink) Judges() bool { return true }

func (s *sink) Send(f *wire.Frame) error {
	s.frames++
	s.bytes += len(f.Body)
	return nil
}

func newModels(st *state.State) *Models {
	key := message.PublicKey{KeyID: strings.Repeat("k", 40), Data: make([]byte, 600), Usages: []message.KeyUsage{message.ForClientCertificates}}
	return New(Options{
		State: st, Timely: func(snap *state.Snapshot) *state.Snapshot { return snap }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Keys: func(*state.Snapshot) []message.PublicKey { return []message.PublicKey{key} },
	})
}

// BenchmarkState tells one router everything.
func BenchmarkState(b *testing.B) {
	m := newModels(large())
	snap := m.State.Snapshot()
	for _, id := range []string{"ordinary", "t10", "t100", "t1000"} {
		b.Run(id, func(b *testing.B) {
			var out sink
			for b.Loop() {
				j := job{told: told{id: id, peer: &out}, timeline: m.timeline}
				j.tell(m.see(snap, &told{id: id}, map[string]share{}), snap.Rev)
			}
			b.ReportMetric(float64(out.bytes)/float64(out.frames), "bytes")
		})
	}
}

// idle waits until there is nothing to be told.
func (m *Models) idle() {
	for working := true; working; {
		m.mu.Lock()
		working = m.working
		m.mu.Unlock()
		runtime.Gosched()
	}
}

// BenchmarkApplied takes note of changes that concern none of 500 routers, and
// of one that concerns one of them and is told.
func BenchmarkApplied(b *testing.B) {
	st := large()
	m := newModels(st)
	out := new(sink)
	for n := range manyRouters {
		m.subscribe(fmt.Sprintf("r%06d", n), out, &message.SubscribeToDataModel{})
	}
	m.idle()
	edit := func(fn func(tx *state.Tx, n int) error) func(n int) {
		return func(n int) {
			if err := st.Update(context.Background(), state.Program("bench"), func(tx *state.Tx) error { return fn(tx, n) }); err != nil {
				b.Fatal(err)
			}
		}
	}
	config := func(id string) func(int) {
		return edit(func(tx *state.Tx, n int) error {
			return model.Configs.Edit(tx, id, func(c *model.Config) error {
				c.Data = jsontext.Value(fmt.Sprintf(`{"n":%d}`, n))
				return nil
			})
		})
	}
	ref := func(d *kind.Def, id string) state.Ref { return state.Ref{Def: d, ID: id} }
	for _, test := range []struct {
		name   string
		ref    state.Ref
		change func(n int)
		told   bool
	}{
		{"session", ref(model.Sessions.Def, "any"), func(int) {}, false},
		{"identity", ref(model.Identities.Def, "i000007"), edit(func(tx *state.Tx, n int) error {
			return model.Identities.Edit(tx, "i000007", func(i *model.Identity) error {
				i.RoleAttributes = []string{fmt.Sprint("a", n%300)}
				return nil
			})
		}), false},
		{"policy", ref(model.ServicePolicies.Def, "p000007"), edit(func(tx *state.Tx, n int) error {
			return model.ServicePolicies.Edit(tx, "p000007", func(p *model.ServicePolicy) error {
				p.ServiceRoles = []string{fmt.Sprint("#a", n%100)}
				return nil
			})
		}), false},
		{"config", ref(model.Configs.Def, "cs009999"), config("cs009999"), false},
		{"config of one", ref(model.Configs.Def, "cs000007"), config("cs000007"), true},
	} {
		b.Run(test.name, func(b *testing.B) {
			frames := out.frames
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				before := st.Snapshot()
				test.change(n)
				after := st.Snapshot()
				b.StartTimer()
				m.Applied(before, after, []state.Ref{test.ref})
				m.idle()
			}
			if told := out.frames > frames; told != test.told {
				b.Errorf("%d frames were sent", out.frames-frames)
			}
		})
	}
}
