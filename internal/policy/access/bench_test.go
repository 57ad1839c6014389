package access_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

const (
	manyServices = 10_000
	manyRouters  = 500
	manyPolicies = 1_000
)

// large is networks of some numbers of identities. Building one takes
// seconds, so all benchmarks share them.
var large sync.Map

// network returns a network of the usual shape: three attributes of 300 for an
// identity, two of 100 for a service, policies of one to three roles, and one
// policy that gives everyone everything, called everything. All services have
// the config called shared.
func network(b *testing.B, identities int) *state.State {
	open, _ := large.LoadOrStore(identities, sync.OnceValue(func() *state.State {
		mem := storetest.NewMemoryWithin(store.Limits{Ops: 1 << 20, Bytes: 1 << 30})
		fill(b, mem, identities)
		st, err := state.Open(context.Background(), mem, model.All, state.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return st
	}))
	return open.(func() *state.State)()
}

// closeNetworks ends what network began.
func closeNetworks() {
	large.Range(func(_, open any) bool {
		open.(func() *state.State)().Close()
		return true
	})
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

// pick returns n texts of so many that start with the prefix.
func (f *filler) pick(prefix string, n, of int) []string {
	var list []string
	for range n {
		list = append(list, fmt.Sprintf("%s%d", prefix, f.random.IntN(of)))
	}
	return list
}

func numbered(prefix string, i int) kind.Meta { return kind.Meta{ID: fmt.Sprintf("%s%06d", prefix, i)} }

func fill(b *testing.B, mem store.Store, identities int) {
	f := &filler{b: b, random: rand.New(rand.NewPCG(1, 2))}
	f.add(model.IdentityTypes.Def, &model.IdentityType{Meta: kind.Meta{ID: "User"}, Name: "User"})
	f.add(model.AuthPolicies.Def, &model.AuthPolicy{Meta: kind.Meta{ID: model.DefaultAuthPolicy}, Name: "Default"})
	for i := range identities {
		m := numbered("i", i)
		f.add(model.Identities.Def, &model.Identity{
			Meta: m, Name: m.ID, Type: "User", AuthPolicyID: model.DefaultAuthPolicy, RoleAttributes: f.pick("a", 3, 300),
		})
	}
	f.add(model.ConfigTypes.Def, &model.ConfigType{Meta: kind.Meta{ID: "type"}, Name: "type"})
	f.add(model.Configs.Def, &model.Config{Meta: kind.Meta{ID: "shared"}, Name: "shared", ConfigTypeID: "type", Data: jsontext.Value("{}")})
	for i := range manyServices {
		m := numbered("s", i)
		f.add(model.Services.Def, &model.Service{
			Meta: m, Name: m.ID, TerminatorStrategy: "smartrouting", RoleAttributes: f.pick("a", 2, 100), Configs: []string{"shared"},
		})
	}
	for i := range manyRouters {
		m := numbered("r", i)
		f.add(model.EdgeRouters.Def, &model.EdgeRouter{Meta: m, Name: m.ID, RoleAttributes: f.pick("a", 2, 20)})
	}
	for i := range manyPolicies {
		f.addPolicy(i)
	}
	f.add(model.ServicePolicies.Def, &model.ServicePolicy{
		Meta: kind.Meta{ID: "everything"}, Name: "everything", Semantic: model.AnyOf, Type: model.Bind,
		IdentityRoles: []string{"#all"}, ServiceRoles: []string{"#all"},
	})
	if _, err := mem.Commit(context.Background(), 0, store.Head{}, f.ops); err != nil {
		b.Fatal(err)
	}
}

func (f *filler) addPolicy(i int) {
	m, semantic := numbered("p", i), []string{model.AllOf, model.AnyOf}[i%2]
	people, things, routers := f.pick("#a", 1+i%3, 300), f.pick("#a", 1+i%3, 100), f.pick("#a", 1+i%3, 20)
	switch i % 10 {
	case 8:
		f.add(model.EdgeRouterPolicies.Def, &model.EdgeRouterPolicy{
			Meta: m, Name: m.ID, Semantic: semantic, IdentityRoles: people, EdgeRouterRoles: routers,
		})
	case 9:
		f.add(model.ServiceEdgeRouterPolicies.Def, &model.ServiceEdgeRouterPolicy{
			Meta: m, Name: m.ID, Semantic: semantic, ServiceRoles: things, EdgeRouterRoles: routers,
		})
	default:
		f.add(model.ServicePolicies.Def, &model.ServicePolicy{
			Meta: m, Name: m.ID, Semantic: semantic, Type: model.Dial, IdentityRoles: people, ServiceRoles: things,
		})
	}
}

const manyIdentities = 100_000

// BenchmarkServices lists the services of an identity.
func BenchmarkServices(b *testing.B) {
	snap := network(b, manyIdentities).Snapshot()
	columns := model.All.Columns(model.Services.Def)
	q, err := filter.Compile(model.Services.Symbols, "limit 500")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sets", func(b *testing.B) {
		n := uint64(0)
		for i := 0; b.Loop(); i++ {
			g := access.Services(snap, fmt.Sprintf("i%06d", i%manyIdentities))
			n += g.Dial.GetCardinality()
		}
		b.ReportMetric(float64(n)/float64(b.N), "dialable")
	})
	page := func(i int) []kind.Record {
		g := access.Services(snap, fmt.Sprintf("i%06d", i%manyIdentities))
		found, total := q.Select(filter.Rows[kind.Record]{Seq: snap.Within(model.Services.Def, g.Visible()), Ordered: true}, q.Page(nil, nil))
		if len(found) != 500 || total != manyServices {
			b.Fatalf("%d of %d services", len(found), total)
		}
		return found
	}
	b.Run("page", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			page(i)
		}
	})
	b.Run("rendered", func(b *testing.B) {
		var dst []byte
		for i := 0; b.Loop(); i++ {
			dst = dst[:0]
			for _, rec := range page(i) {
				dst = append(dst, '{')
				for _, c := range columns {
					dst = kind.AppendMember(dst, c.Name, func(dst []byte) []byte { return c.Append(dst, snap, rec) })
				}
				dst = append(dst, '}')
			}
		}
		b.SetBytes(int64(len(dst)))
	})
}

// BenchmarkRelations lists the longest relations there are.
func BenchmarkRelations(b *testing.B) {
	snap := network(b, manyIdentities).Snapshot()
	of := map[string]string{
		"identities": "i000001", "services": "s000001", "edge-routers": "r000001", "service-policies": "everything",
		"edge-router-policies": "p000008", "service-edge-router-policies": "p000009", "config-types": "type",
	}
	for _, rel := range access.Relations {
		b.Run(rel.Name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n = 0
				for range rel.Find(snap, of[rel.From.Path]).Records() {
					n++
				}
			}
			b.ReportMetric(float64(n), "records")
		})
	}
}

func BenchmarkMayDial(b *testing.B) {
	snap := network(b, manyIdentities).Snapshot()
	yes := 0
	for i := 0; b.Loop(); i++ {
		if access.MayDial(snap, fmt.Sprintf("i%06d", i%manyIdentities), fmt.Sprintf("s%06d", i%manyServices)) {
			yes++
		}
	}
	b.ReportMetric(float64(yes)/float64(b.N), "allowed")
}

func BenchmarkAdvise(b *testing.B) {
	snap := network(b, manyIdentities).Snapshot()
	for i := 0; b.Loop(); i++ {
		if _, err := access.Advise(snap, fmt.Sprintf("i%06d", i%manyIdentities), "s000001", func(string) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}

func update(b *testing.B, st *state.State, fn func(tx *state.Tx) error) {
	if err := st.Update(context.Background(), state.Program("bench"), fn); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkAttribute gives one identity an attribute and takes it away again,
// one of them an operation.
func BenchmarkAttribute(b *testing.B) {
	for _, n := range []int{1_000, manyIdentities} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := network(b, n)
			for i := 0; b.Loop(); i++ {
				update(b, st, func(tx *state.Tx) error {
					return model.Identities.Edit(tx, "i000500", func(who *model.Identity) error {
						who.RoleAttributes = []string{"a1", "a2", "a3", "a4"}[:3+i%2]
						return nil
					})
				})
			}
		})
	}
}

// BenchmarkPolicy creates, patches and deletes a policy that selects everyone
// or nobody.
func BenchmarkPolicy(b *testing.B) {
	for _, role := range []string{"#all", "#nobody"} {
		b.Run(role[1:], func(b *testing.B) {
			st := network(b, manyIdentities)
			for b.Loop() {
				update(b, st, func(tx *state.Tx) error { return model.ServicePolicies.Upsert(tx, "extra", extra(role)) })
				update(b, st, func(tx *state.Tx) error {
					return model.ServicePolicies.Edit(tx, "extra", func(p *model.ServicePolicy) error {
						p.Type = model.Bind
						return nil
					})
				})
				undo(b, st)
			}
		})
	}
}

// undo removes the policy that extra made, if there is one.
func undo(b *testing.B, st *state.State) {
	update(b, st, func(tx *state.Tx) error {
		if !has(tx, model.ServicePolicies.Def, "extra") {
			return nil
		}
		return model.ServicePolicies.Delete(tx, "extra")
	})
}

// extra makes a policy select by one role only.
func extra(role string) func(*model.ServicePolicy) {
	return func(p *model.ServicePolicy) {
		p.Name, p.Type, p.Semantic = "extra", model.Dial, model.AnyOf
		p.IdentityRoles, p.ServiceRoles = []string{role}, []string{role}
	}
}

// BenchmarkAffected finds out whom a change concerns, and stamps them.
func BenchmarkAffected(b *testing.B) {
	policy := state.Ref{Def: model.ServicePolicies.Def, ID: "extra"}
	changes := []struct {
		name   string
		ref    state.Ref
		change func(tx *state.Tx) error
	}{
		{"policy for all", policy, func(tx *state.Tx) error { return model.ServicePolicies.Upsert(tx, "extra", extra("#all")) }},
		{"policy for nobody", policy, func(tx *state.Tx) error { return model.ServicePolicies.Upsert(tx, "extra", extra("#nobody")) }},
		{"identity", state.Ref{Def: model.Identities.Def, ID: "i000007"}, func(tx *state.Tx) error {
			return model.Identities.Upsert(tx, "i000007", func(i *model.Identity) { i.RoleAttributes = i.RoleAttributes[1:] })
		}},
		{"service", state.Ref{Def: model.Services.Def, ID: "s000007"}, func(tx *state.Tx) error {
			return model.Services.Upsert(tx, "s000007", func(s *model.Service) { s.Name = "renamed" })
		}},
		{"config of all services", state.Ref{Def: model.Configs.Def, ID: "shared"}, func(tx *state.Tx) error {
			return model.Configs.Upsert(tx, "shared", func(c *model.Config) { c.Data = jsontext.Value(`{"a":1}`) })
		}},
	}
	for _, c := range changes {
		for _, everyone := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/everyone=%t", c.name, everyone), func(b *testing.B) {
				st := network(b, manyIdentities)
				update(b, st, func(tx *state.Tx) error {
					return model.ServicePolicies.Upsert(tx, "everything", func(p *model.ServicePolicy) {
						p.IdentityRoles = nil
						if everyone {
							p.IdentityRoles = []string{"#all"}
						}
					})
				})
				b.Cleanup(func() { undo(b, st) })
				before := st.Snapshot()
				update(b, st, c.change)
				after := st.Snapshot()
				var last access.LastChange
				for b.Loop() {
					last.Apply(before, after, []state.Ref{c.ref})
				}
				b.ReportMetric(float64(access.Affected(before, after, []state.Ref{c.ref}).GetCardinality()), "identities")
			})
		}
	}
}

func BenchmarkLastChangeOf(b *testing.B) {
	snap := network(b, manyIdentities).Snapshot()
	var last access.LastChange
	last.Reset(snap.Time)
	for i := 0; b.Loop(); i++ {
		last.Of(snap, fmt.Sprintf("i%06d", i%manyIdentities))
	}
}
