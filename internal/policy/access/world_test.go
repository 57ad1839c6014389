package access_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

// tests closes what benchmarks share before leaks are looked for.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer closeNetworks()
	return t.M.Run()
}

// cleaner is what *testing.T, *testing.B and *rapid.T have in common here.
type cleaner interface {
	Fatal(args ...any)
	Cleanup(func())
}

// world is a network in memory.
type world struct {
	t   cleaner
	mem *storetest.Memory
	st  *state.State
}

// newWorld opens a network that has only what every network has.
func newWorld(t cleaner) *world {
	mem := storetest.NewMemory()
	st, err := state.Open(context.Background(), mem, model.All, state.Options{Frozen: true, Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	w := &world{t, mem, st}
	if _, err := w.write(func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		t.Fatal(err)
	}
	return w
}

// clock stands still now and then, so that commits share a time.
func clock() func() time.Time {
	now, calls := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC), 0
	return func() time.Time {
		if calls++; calls%3 == 0 {
			now = now.Add(time.Minute)
		}
		return now
	}
}

// step is the world before and after a write.
type step struct {
	before, after *state.Snapshot
	changed       []state.Ref
}

func (w *world) write(fn func(*state.Tx) error) (step, error) {
	s := step{before: w.st.Snapshot()}
	err := w.st.Update(context.Background(), state.Program("test"), fn)
	s.after = w.st.Snapshot()
	s.changed = diff(s.before, s.after)
	return s, err
}

// smuggle stores a record that no write would take.
func (w *world) smuggle(d *kind.Def, rec kind.Record) {
	value, err := d.Encode(rec)
	if err != nil {
		w.t.Fatal(err)
	}
	op := store.Op{Key: d.Name + "/" + rec.Base().ID, Value: value, Prev: store.Any}
	if _, err := w.mem.Another().Put(context.Background(), store.Head{}, []store.Op{op}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.st.Reload(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// diff lists the records that are not the same in two snapshots, which share
// the others.
func diff(before, after *state.Snapshot) []state.Ref {
	var refs []state.Ref
	for _, d := range model.All.Defs {
		for rec := range before.All(d) {
			if now, _ := after.Lookup(d, rec.Base().ID); now != rec {
				refs = append(refs, state.Ref{Def: d, ID: rec.Base().ID})
			}
		}
		for rec := range after.All(d) {
			if _, existed := before.Lookup(d, rec.Base().ID); !existed {
				refs = append(refs, state.Ref{Def: d, ID: rec.Base().ID})
			}
		}
	}
	return refs
}

// Ids of the records that may exist, by kind. There are few, so that they come
// and go and come again. Credentials are called after their methods: an
// identity may have one of each.
var pool = map[*kind.Def][]string{
	model.Identities.Def:                ids("i", 5),
	model.Services.Def:                  ids("s", 4),
	model.EdgeRouters.Def:               ids("r", 4),
	model.PostureChecks.Def:             ids("k", 3),
	model.ConfigTypes.Def:               ids("t", 2),
	model.Configs.Def:                   ids("c", 4),
	model.ServiceConfigs.Def:            overrides(),
	model.ServicePolicies.Def:           ids("sp", 4),
	model.EdgeRouterPolicies.Def:        ids("ep", 3),
	model.ServiceEdgeRouterPolicies.Def: ids("fp", 3),
	model.Terminators.Def:               ids("x", 3),
	model.Authenticators.Def:            {model.MethodUPDB, model.MethodCert},
	model.Enrollments.Def:               {model.MethodOTT, model.MethodOTTCA, model.MethodUPDB},
}

func ids(prefix string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

func overrides() []string {
	var list []string
	for _, identity := range ids("i", 3) {
		for _, service := range ids("s", 3) {
			list = append(list, model.ServiceConfigID(identity, service, "t0"))
		}
	}
	return list
}

// layers is the kinds in an order in which they can be created.
var layers = []*kind.Def{
	model.ConfigTypes.Def, model.Configs.Def, model.Services.Def, model.Identities.Def, model.ServiceConfigs.Def,
	model.EdgeRouters.Def, model.PostureChecks.Def, model.ServicePolicies.Def, model.EdgeRouterPolicies.Def,
	model.ServiceEdgeRouterPolicies.Def, model.Terminators.Def, model.Authenticators.Def, model.Enrollments.Def,
}

// often names kinds as often as it pays to change them.
var often = func() []string {
	names := []string{"identity", "service", "service-policy", "service-policy", "service-policy"}
	for _, d := range layers {
		names = append(names, d.Name)
	}
	return names
}()

var (
	attribute = rapid.SampledFrom([]string{"a", "b", "c", "all"})
	semantics = rapid.SampledFrom([]string{model.AllOf, model.AnyOf})
	types     = rapid.SampledFrom([]string{model.Dial, model.Bind})
)

func some(d *kind.Def) *rapid.Generator[string] { return rapid.SampledFrom(pool[d]) }

// attributes may hold one twice, as a body may.
var attributes = rapid.SliceOfN(attribute, 0, 3)

// roles draws a role list over a kind. It may name records that do not exist.
func roles(t *rapid.T, d *kind.Def) []string {
	role := rapid.OneOf(
		rapid.Map(attribute, func(a string) string { return "#" + a }),
		rapid.Map(some(d), func(id string) string { return "@" + id }),
	)
	return rapid.SliceOfN(role, 0, 3).Draw(t, d.Path+" roles")
}

// existing leaves out what would be refused: ids of nothing, and all that
// stands beside #all.
func existing(r kind.Reader, d *kind.Def, list []string) []string {
	if slices.Contains(list, "#all") {
		return []string{"#all"}
	}
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		id, ok := strings.CutPrefix(s, "@")
		if !ok {
			return s[0] != '#' && !has(r, d, s)
		}
		return !has(r, d, id)
	})
}

func has(r kind.Reader, d *kind.Def, id string) bool {
	_, ok := r.Lookup(d, id)
	return ok
}

// drawWorld draws most of what there may be.
func drawWorld(t *rapid.T) func(*state.Tx) error {
	var all []func(*state.Tx) error
	for _, d := range layers {
		for _, id := range pool[d] {
			if rapid.IntRange(0, 3).Draw(t, "leave out") != 0 {
				all = append(all, drawRecord(t, d, id))
			}
		}
	}
	return together(all)
}

// drawWrite draws a few changes that make one batch.
func drawWrite(t *rapid.T) func(*state.Tx) error {
	var all []func(*state.Tx) error
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		d := model.All.Named(rapid.SampledFrom(often).Draw(t, "kind"))
		id := some(d).Draw(t, "id")
		if action := rapid.IntRange(0, 9).Draw(t, "action"); action < 3 {
			all = append(all, func(tx *state.Tx) error {
				if !has(tx, d, id) {
					return nil
				}
				return tx.Delete(d, id)
			})
			if action > 0 {
				continue
			}
		}
		all = append(all, drawRecord(t, d, id))
	}
	return together(all)
}

func together(all []func(*state.Tx) error) func(*state.Tx) error {
	return func(tx *state.Tx) error {
		for _, change := range all {
			if err := change(tx); err != nil {
				return err
			}
		}
		return nil
	}
}

// drawRecord draws a new record, or another form of one that exists.
func drawRecord(t *rapid.T, d *kind.Def, id string) func(*state.Tx) error {
	switch d {
	case model.ServicePolicies.Def, model.EdgeRouterPolicies.Def, model.ServiceEdgeRouterPolicies.Def:
		return drawPolicy(t, d, id)
	case model.Identities.Def, model.Services.Def, model.EdgeRouters.Def, model.PostureChecks.Def:
		return drawMember(t, d, id)
	}
	return drawOther(t, d, id)
}

// drawMember draws a record with role attributes.
func drawMember(t *rapid.T, d *kind.Def, id string) func(*state.Tx) error {
	attrs, flag := attributes.Draw(t, "attributes"), rapid.IntRange(0, 4).Draw(t, "flag") == 0
	configs := rapid.SliceOfNDistinct(some(model.Configs.Def), 0, 2, rapid.ID[string]).Draw(t, "configs")
	return func(tx *state.Tx) error {
		switch d {
		case model.Identities.Def:
			return model.Identities.Upsert(tx, id, func(i *model.Identity) {
				i.Name, i.Type = id, "User"
				i.RoleAttributes, i.IsAdmin = attrs, flag
			})
		case model.Services.Def:
			return model.Services.Upsert(tx, id, func(s *model.Service) {
				s.Name, s.RoleAttributes = id, attrs
				s.Configs = oneOfAType(tx, existing(tx, model.Configs.Def, configs))
			})
		case model.EdgeRouters.Def:
			return model.EdgeRouters.Upsert(tx, id, func(r *model.EdgeRouter) {
				r.Name, r.RoleAttributes, r.IsTunnelerEnabled = id, attrs, flag
			})
		}
		return model.PostureChecks.Upsert(tx, id, func(k *model.PostureCheck) {
			k.Name, k.TypeID, k.RoleAttributes, k.PromptOnWake = id, "MFA", attrs, flag
			if k.Mode = model.Enforce; flag {
				k.Mode = model.Report
			}
		})
	}
}

func oneOfAType(r kind.Reader, configs []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(configs, func(id string) bool {
		c, _ := model.Configs.Get(r, id)
		again := seen[c.ConfigTypeID]
		seen[c.ConfigTypeID] = true
		return again
	})
}

// drawPolicy draws a new policy, or a change of one of its fields.
func drawPolicy(t *rapid.T, d *kind.Def, id string) func(*state.Tx) error {
	identities, services := roles(t, model.Identities.Def), roles(t, model.Services.Def)
	routers, checks := roles(t, model.EdgeRouters.Def), roles(t, model.PostureChecks.Def)
	semantic, typ := semantics.Draw(t, "semantic"), types.Draw(t, "type")
	only := rapid.IntRange(0, 5).Draw(t, "only field")
	return func(tx *state.Tx) error {
		fresh := !has(tx, d, id)
		set := func(field int, list *[]string, pop *kind.Def, roles []string) {
			if fresh || only == field {
				*list = existing(tx, pop, roles)
			}
		}
		switch d {
		case model.ServicePolicies.Def:
			return model.ServicePolicies.Upsert(tx, id, func(p *model.ServicePolicy) {
				p.Name = fmt.Sprint(id, only)
				if fresh || only == 0 {
					p.Semantic, p.Type = semantic, typ
				}
				set(1, &p.IdentityRoles, model.Identities.Def, identities)
				set(2, &p.ServiceRoles, model.Services.Def, services)
				set(3, &p.PostureCheckRoles, model.PostureChecks.Def, checks)
			})
		case model.EdgeRouterPolicies.Def:
			return model.EdgeRouterPolicies.Upsert(tx, id, func(p *model.EdgeRouterPolicy) {
				p.Name, p.Semantic = id, semantic
				set(1, &p.IdentityRoles, model.Identities.Def, identities)
				set(2, &p.EdgeRouterRoles, model.EdgeRouters.Def, routers)
			})
		}
		return model.ServiceEdgeRouterPolicies.Upsert(tx, id, func(p *model.ServiceEdgeRouterPolicy) {
			p.Name, p.Semantic = id, semantic
			set(1, &p.ServiceRoles, model.Services.Def, services)
			set(2, &p.EdgeRouterRoles, model.EdgeRouters.Def, routers)
		})
	}
}

// drawOther draws a record that refers to others. It is left alone if they do
// not exist.
func drawOther(t *rapid.T, d *kind.Def, id string) func(*state.Tx) error {
	identity, service := some(model.Identities.Def).Draw(t, "identity"), some(model.Services.Def).Draw(t, "service")
	config, configType := some(model.Configs.Def).Draw(t, "config"), some(model.ConfigTypes.Def).Draw(t, "config type")
	router, text := some(model.EdgeRouters.Def).Draw(t, "router"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "text")
	return func(tx *state.Tx) error {
		hasIdentity, hasService := has(tx, model.Identities.Def, identity), has(tx, model.Services.Def, service)
		hasConfig, hasType := has(tx, model.Configs.Def, config), has(tx, model.ConfigTypes.Def, configType)
		switch {
		case d == model.ConfigTypes.Def:
			return model.ConfigTypes.Upsert(tx, id, func(c *model.ConfigType) { c.Name = id + text })
		case d == model.Configs.Def && hasType:
			return model.Configs.Upsert(tx, id, func(c *model.Config) {
				c.Name, c.Data = id, jsontext.Value(`{"v":"`+text+`"}`)
				if c.ConfigTypeID == "" {
					c.ConfigTypeID = configType
				}
			})
		case d == model.ServiceConfigs.Def && hasConfig:
			identity, service := strings.Split(id, ".")[0], strings.Split(id, ".")[1]
			c, _ := model.Configs.Get(tx, config)
			if !has(tx, model.Identities.Def, identity) || !has(tx, model.Services.Def, service) || c.ConfigTypeID != "t0" {
				return nil
			}
			return model.ServiceConfigs.Upsert(tx, id, func(o *model.ServiceConfig) {
				o.IdentityID, o.ServiceID, o.ConfigID, o.ConfigTypeID = identity, service, config, c.ConfigTypeID
			})
		case d == model.Terminators.Def && hasService && has(tx, model.EdgeRouters.Def, router):
			return model.Terminators.Upsert(tx, id, func(x *model.Terminator) {
				x.ServiceID, x.RouterID, x.Binding, x.Address = service, router, "transport", "tcp:"+text
			})
		case d == model.Authenticators.Def && hasIdentity:
			return model.Authenticators.Upsert(tx, id, func(a *model.Authenticator) {
				a.IdentityID, a.Method, a.Username = identity, id, id+text
			})
		case d == model.Enrollments.Def && hasIdentity:
			return model.Enrollments.Upsert(tx, id, func(e *model.Enrollment) {
				e.IdentityID, e.Method, e.Token = identity, id, id+text
			})
		}
		return nil
	}
}
