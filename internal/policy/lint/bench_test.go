package lint_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/lint"
)

var (
	large  sync.Once
	opened *state.State
)

func closeNetwork() {
	if opened != nil {
		opened.Close()
	}
}

// network returns one of 100,000 identities, 10,000 services and 1,000 policies, all of whose
// people have a credential and were seen some time. To build
// it takes seconds.
func network(b *testing.B) *state.State {
	large.Do(func() {
		random := rand.New(rand.NewPCG(1, 2))
		var ops []store.Op
		add := func(d *kind.Def, rec kind.Record) {
			value, err := d.Encode(rec)
			if err != nil {
				b.Fatal(err)
			}
			ops = append(ops, store.Op{Key: d.Name + "/" + rec.Base().ID, Value: value})
		}
		pick := func(prefix string, n, of int) (list []string) {
			for range n {
				list = append(list, fmt.Sprint(prefix, random.IntN(of)))
			}
			return list
		}
		for i := range 100_000 {
			id := fmt.Sprintf("i%06d", i)
			add(model.Identities.Def, &model.Identity{Meta: kind.Meta{ID: id}, Name: id, Type: "User", RoleAttributes: pick("a", 3, 300)})
			password := model.NewPassword(id, id, "x")
			password.ID = "c" + id
			add(model.Authenticators.Def, password)
			seen := time.Now().AddDate(0, 0, -random.IntN(120))
			add(model.ClientInfos.Def, &model.ClientInfo{Meta: kind.Meta{ID: id}, IdentityID: id, SeenAt: seen, SeenSince: seen})
		}
		for i := range 10_000 {
			id := fmt.Sprintf("s%06d", i)
			add(model.Services.Def, &model.Service{Meta: kind.Meta{ID: id}, Name: id, RoleAttributes: pick("a", 2, 100)})
		}
		for i := range 1_000 {
			id := fmt.Sprintf("p%06d", i)
			add(model.ServicePolicies.Def, &model.ServicePolicy{
				Meta: kind.Meta{ID: id}, Name: id, Semantic: []string{model.AllOf, model.AnyOf}[i%2], Type: []string{model.Dial, model.Bind}[i%4/2],
				IdentityRoles: pick("#a", 1+i%3, 310), ServiceRoles: pick("#a", 1+i%3, 105),
			})
		}
		mem := storetest.NewMemoryWithin(store.Limits{Ops: 1 << 20, Bytes: 1 << 30})
		if _, err := mem.Commit(context.Background(), 0, store.Head{}, ops); err != nil {
			b.Fatal(err)
		}
		st, err := state.Open(context.Background(), mem, model.All, state.Options{})
		if err != nil {
			b.Fatal(err)
		}
		opened = st
	})
	return opened
}

// BenchmarkLint looks a large network over.
func BenchmarkLint(b *testing.B) {
	snap := network(b).Snapshot()
	b.ReportAllocs()
	for b.Loop() {
		lint.Run(snap, time.Now())
	}
}
