package assertion_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/assertion"
)

const (
	manyServices   = 10_000
	manyPolicies   = 1_000
	manyAssertions = 100
)

// large is networks by how many identities they have. To build one takes seconds.
var large sync.Map

func closeNetworks() {
	large.Range(func(_, open any) bool {
		open.(func() *state.State)().Close()
		return true
	})
}

// network returns one of the usual shape, in which everybody may host everything, and a
// hundred assertions hold.
func network(b *testing.B, identities int) *state.State {
	open, _ := large.LoadOrStore(identities, sync.OnceValue(func() *state.State {
		mem := storetest.NewMemoryWithin(store.Limits{Ops: 1 << 20, Bytes: 1 << 30})
		f := &filler{b: b, random: rand.New(rand.NewPCG(1, 2))}
		f.fill(identities)
		if _, err := mem.Commit(context.Background(), 0, store.Head{}, f.ops); err != nil {
			b.Fatal(err)
		}
		st, err := state.Open(context.Background(), mem, model.All, state.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return st
	}))
	return open.(func() *state.State)()
}

// filler collects records to be written straight into a store.
type filler struct {
	b      *testing.B
	random *rand.Rand
	ops    []store.Op
}

func (f *filler) add(d *kind.Def, rec kind.Record) {
	value, err := d.Encode(rec)
	if err != nil {
		f.b.Fatal(err)
	}
	f.ops = append(f.ops, store.Op{Key: d.Name + "/" + rec.Base().ID, Value: value})
}

func (f *filler) pick(prefix string, n, of int) (list []string) {
	for range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, f.random.IntN(of)))
	}
	return list
}

func (f *filler) fill(identities int) {
	f.add(model.IdentityTypes.Def, &model.IdentityType{Meta: kind.Meta{ID: "User"}, Name: "User"})
	f.add(model.AuthPolicies.Def, &model.AuthPolicy{Meta: kind.Meta{ID: model.DefaultAuthPolicy}, Name: "Default"})
	for i := range identities {
		// Every tenth is a contractor, of one of ten firms, and has no other attribute.
		own := f.pick("a", 3, 300)
		if i%10 == 0 {
			own = []string{"contractor", fmt.Sprint("firm", i/10%10)}
		}
		id := fmt.Sprintf("i%06d", i)
		f.add(model.Identities.Def, &model.Identity{Meta: kind.Meta{ID: id}, Name: id, Type: "User", AuthPolicyID: model.DefaultAuthPolicy, RoleAttributes: own})
	}
	for i := range manyServices {
		id := fmt.Sprintf("s%06d", i)
		f.add(model.Services.Def, &model.Service{
			Meta: kind.Meta{ID: id}, Name: id, TerminatorStrategy: "smartrouting", RoleAttributes: append(f.pick("a", 2, 100), fmt.Sprint("part", i%100)),
		})
	}
	dial := func(id string, semantic string, who, what []string) {
		f.add(model.ServicePolicies.Def, &model.ServicePolicy{Meta: kind.Meta{ID: id}, Name: id, Semantic: semantic, Type: model.Dial, IdentityRoles: who, ServiceRoles: what})
	}
	for i := range manyPolicies {
		dial(fmt.Sprintf("p%06d", i), []string{model.AllOf, model.AnyOf}[i%2], f.pick("#a", 1+i%3, 300), f.pick("#a", 1+i%3, 100))
	}
	for i := range manyAssertions {
		dial(fmt.Sprint("part", i), model.AnyOf, []string{fmt.Sprint("#a", i)}, []string{fmt.Sprint("#part", i)})
	}
	f.add(model.ServicePolicies.Def, &model.ServicePolicy{
		Meta: kind.Meta{ID: "hosts"}, Name: "hosts", Semantic: model.AnyOf, Type: model.Bind, IdentityRoles: []string{"#all"}, ServiceRoles: []string{"#all"},
	})
	for i := range manyAssertions {
		a := &model.Assertion{
			Meta: kind.Meta{ID: fmt.Sprint("assertion", i)}, Name: fmt.Sprint("assertion", i), Type: model.Dial, Semantic: model.AnyOf,
			IdentityRoles: []string{fmt.Sprint("#firm", i%10)}, ServiceRoles: []string{fmt.Sprint("#part", i)}, Expect: model.Never,
		}
		switch {
		case i == 0:
			a.Expect, a.IdentityRoles, a.ServiceRoles = model.Somebody, []string{"#all"}, []string{"#all"}
		case i == 1:
			a.Expect, a.IdentityRoles, a.ServiceRoles = model.NoPolicy, []string{"#all"}, []string{"#all"}
		case i%2 == 1:
			a.Expect, a.IdentityRoles = model.Always, []string{fmt.Sprint("#a", i)}
		}
		f.add(model.Assertions.Def, a)
	}
}

// BenchmarkBreaches judges changes of networks with a hundred assertions: policies that
// break none, break many and take something, an identity that comes, changes and logs
// in, and a whole check.
func BenchmarkBreaches(b *testing.B) {
	wide := []string{"#a1", "#a2", "#a3", "#a4", "#a5", "#a6", "#a7", "#a8", "#a9", "#a10"}
	put := func(who, what []string) func(tx *state.Tx) error {
		return func(tx *state.Tx) error {
			return model.ServicePolicies.Upsert(tx, "extra", func(p *model.ServicePolicy) {
				p.Name, p.Type, p.Semantic, p.IdentityRoles, p.ServiceRoles = "extra", model.Dial, model.AnyOf, who, what
			})
		}
	}
	broaden := put([]string{"#all"}, []string{"#all"})
	identity := func(id string, own ...string) func(tx *state.Tx) error {
		return func(tx *state.Tx) error {
			return model.Identities.Upsert(tx, id, func(i *model.Identity) {
				i.Name, i.Type, i.AuthPolicyID, i.RoleAttributes = id, "User", model.DefaultAuthPolicy, own
			})
		}
	}
	for _, c := range []struct {
		name          string
		first, change func(tx *state.Tx) error
	}{
		{"a policy that breaks nothing", nil, put(wide, wide)},
		{"one for everybody and everything", nil, broaden},
		{"one of these narrowed", broaden, put(wide, wide)},
		{"one that assertions rest on deleted", nil, func(tx *state.Tx) error { return model.ServicePolicies.Delete(tx, "part7") }},
		{"an identity", nil, identity("new", "a1", "a2", "a3")},
		{"a contractor becomes staff", nil, identity("i000010", "contractor", "firm1", "a1")},
		{"a session", nil, func(tx *state.Tx) error {
			return model.Identities.Upsert(tx, "i000007", func(i *model.Identity) { i.Name = "renamed" })
		}},
	} {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				st := network(b, n)
				on := st.Snapshot()
				if c.first != nil {
					on = try(b, st, on, c.first).After
				}
				step := try(b, st, on, c.change)
				broken := 0
				for b.Loop() {
					broken = len(assertion.Breaches(step))
				}
				b.ReportMetric(float64(broken), "broken")
			})
		}
	}
	b.Run("check/100000", func(b *testing.B) {
		snap := network(b, 100_000).Snapshot()
		broken := 0
		for b.Loop() {
			broken = 0
			for _, f := range assertion.Check(snap) {
				if f.Breach != nil {
					broken++
				}
			}
		}
		b.ReportMetric(float64(broken), "broken")
	})
}

func try(b *testing.B, st *state.State, on *state.Snapshot, change func(tx *state.Tx) error) state.Step {
	step, err := st.Try(context.Background(), state.Program("bench"), on, change)
	if err != nil {
		b.Fatal(err)
	}
	return step
}
