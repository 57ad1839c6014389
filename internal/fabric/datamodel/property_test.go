package datamodel

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/scripted"
)

// TestFollows changes a network at random while routers come and go, lose what
// they are told and let their time run out. Whenever a router is up to date it
// knows exactly what it may know.
func TestFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(t *rapid.T) {
			<-time.After(100 * time.Millisecond) // or rapid would never tire of a failure
			w := newWorld(t.Fatal)
			defer w.stop()
			routers := []*router{{id: "r0"}, {id: "r1"}}
			for _, r := range routers {
				r.ask(w.models, false)
			}
			for range 8 {
				w.change(t)
			}
			synctest.Wait()
			for range rapid.IntRange(1, 12).Draw(t, "steps") {
				w.step(t, routers)
			}
			for _, r := range routers {
				r.read()
				r.lose = 0
				r.ask(w.models, true)
				w.agree(t, r)
			}
		})
	})
}

// timeless is a test without the deadline that a bubble does not let it ask
// for.
type timeless struct{ rapid.TB }

// step lets something happen to the network or to a router.
func (w *world) step(t *rapid.T, routers []*router) {
	r := rapid.SampledFrom(routers).Draw(t, "router")
	switch what := rapid.SampledFrom([]string{"change", "change", "change", "lose", "reconnect", "renew", "expire", "reload", "away", "forget"}).Draw(t, "what"); what {
	case "change":
		w.change(t)
		r.read()
		if !r.missed && time.Since(r.asked) < usualTime {
			w.agree(t, r)
		}
	case "lose":
		r.read()
		r.lose = rapid.IntRange(1, 2).Draw(t, "lost")
		w.change(t)
		w.change(t)
		r.read()
	case "reconnect", "away":
		w.models.leave(r.id, r)
		r.read()
		r.lose = 0
		if what == "away" {
			w.change(t)
			time.Sleep(rapid.SampledFrom([]time.Duration{time.Second, 2 * keepAway}).Draw(t, "away"))
		}
		r.ask(w.models, false)
		w.agree(t, r)
	case "expire":
		time.Sleep(usualTime + 2*grace)
		r.read()
		told := r.frames
		w.change(t)
		r.read()
		if r.frames != told {
			t.Fatal("it is told something though it did not ask again")
		}
		fallthrough
	case "renew":
		r.read()
		r.lose = 0
		r.ask(w.models, true)
		w.agree(t, r)
	case "reload":
		if err := w.st.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	case "forget":
		r.read()
		r.Model, r.lose = scripted.Model{}, 0
		r.ask(w.models, false)
		w.agree(t, r)
	}
}

// agree compares what a router knows with what it may know. One that misses
// something asks again, as routers do.
func (w *world) agree(t *rapid.T, r *router) {
	r.read()
	if errors.Is(r.fault, scripted.ErrGap) {
		r.fault = nil
		r.ask(w.models, false)
	}
	if r.fault != nil {
		t.Fatalf("%s is told nonsense: %v", r.id, r.fault)
	}
	if want := expected(w.st.Snapshot(), r.id, time.Now()); show(&r.Model) != show(want) {
		t.Fatalf("%s knows\n%s\nwant\n%s", r.id, show(&r.Model), show(want))
	}
	r.agreeOnEnds(t, bearersAt(w.st.Snapshot(), r.id), w.took[r.id])
}

// agreeOnEnds checks of which API sessions a router has been told that they are over:
// those that it took and takes no more, while somebody may have a token.
func (r *router) agreeOnEnds(t *rapid.T, takes, ever map[string]bool) {
	for id, over := range r.Revoked {
		switch {
		case takes[id]:
			t.Fatalf("%s is told that session %s is over, which is not", r.id, id)
		case !ever[id]:
			t.Fatalf("%s is told of the end of session %s, which it never knew", r.id, id)
		case over.Expires.Seconds <= time.Now().Unix():
			t.Fatalf("%s still knows that session %s is over, of which there are no tokens any more", r.id, id)
		}
	}
	for id := range r.bearers {
		if _, told := r.Revoked[id]; !told && !takes[id] && time.Since(r.then) < bearing {
			t.Fatalf("%s is not told that session %s is over", r.id, id)
		}
	}
	r.bearers, r.then = takes, time.Now()
}

// random is what a random change is made of.
type random struct {
	router, service, config, typ, check, policy string
	text                                        string
	attributes, configs                         []string
	identityRoles, serviceRoles, checkRoles     []string
	cost, minutes                               int
	dial, on, rare                              bool
}

func draw(t *rapid.T) random {
	some := func(what string, from ...string) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID).Draw(t, what)
	}
	return random{
		router: pick(t, "r", 2), service: pick(t, "s", 3), config: pick(t, "c", 3), typ: pick(t, "t", 2), check: pick(t, "k", 2), policy: pick(t, "p", 3),
		text:       rapid.StringMatching("[a-z]{2}").Draw(t, "text"),
		attributes: some("attributes", "a", "b"), configs: some("configs", "c0", "c1", "c2"),
		identityRoles: some("identities", "#all", "#a", "#b", "@r0", "@r1"), serviceRoles: some("services", "#all", "#a", "#b", "@s0", "@s1"),
		checkRoles: some("checks", "#a", "#b", "@k0"),
		cost:       rapid.IntRange(0, 3).Draw(t, "cost"), minutes: rapid.IntRange(0, 3).Draw(t, "minutes"),
		dial: rapid.Bool().Draw(t, "dial"), on: rapid.IntRange(0, 3).Draw(t, "on") > 0, rare: rapid.IntRange(0, 4).Draw(t, "rare") == 0,
	}
}

// change makes one random change. Not every one is allowed.
func (w *world) change(t *rapid.T) {
	kinds := []string{"router", "identity", "service", "config", "type", "policy", "policy", "check", "override", "stranger", "delete", "bearer", "bearer", "edge policy"}
	kind, what, now := rapid.SampledFrom(kinds).Draw(t, "kind"), draw(t), time.Now()
	_ = w.write(func(tx *state.Tx) error { return what.make(tx, kind, now) })
}

func (d random) make(tx *state.Tx, kind string, now time.Time) error {
	switch kind {
	case "router":
		return model.EdgeRouters.Upsert(tx, d.router, func(e *model.EdgeRouter) { e.Name, e.IsTunnelerEnabled = "router-"+e.ID, d.on })
	case "identity":
		return model.Identities.Upsert(tx, d.router, func(i *model.Identity) {
			i.RoleAttributes, i.DefaultHostingCost, i.ServiceHostingCosts = d.attributes, d.cost, map[string]int{d.service: 5}
			i.DisabledAt, i.DisabledUntil = nil, nil
			if d.rare {
				i.Disable(now, d.minutes)
			}
		})
	case "stranger":
		return model.Identities.Upsert(tx, "stranger", func(i *model.Identity) { i.Name, i.Type, i.RoleAttributes = d.text, "User", d.attributes })
	case "service":
		return model.Services.Upsert(tx, d.service, func(s *model.Service) {
			s.Name, s.RoleAttributes, s.Configs = "service-"+s.ID+d.text, d.attributes, d.configs
		})
	case "config":
		return model.Configs.Upsert(tx, d.config, func(c *model.Config) {
			c.Name, c.ConfigTypeID, c.Data = "config-"+c.ID, map[string]string{"c0": "t0", "c1": "t1", "c2": "t1"}[c.ID], data(d.text)
		})
	case "type":
		return model.ConfigTypes.Upsert(tx, d.typ, func(c *model.ConfigType) { c.Name = "type-" + c.ID + d.text })
	case "check":
		return model.PostureChecks.Upsert(tx, d.check, func(k *model.PostureCheck) {
			k.Name, k.TypeID, k.Domains, k.RoleAttributes = "check-"+k.ID, "DOMAIN", []string{d.text}, d.attributes
		})
	case "policy":
		return model.ServicePolicies.Upsert(tx, d.policy, d.policyOf)
	case "bearer":
		return d.bear(tx)
	case "edge policy":
		return model.EdgeRouterPolicies.Upsert(tx, "e", func(p *model.EdgeRouterPolicy) {
			p.Name, p.Semantic, p.IdentityRoles, p.EdgeRouterRoles = "edge policy", model.AnyOf, d.identityRoles, []string{"#all"}
			if d.dial {
				p.EdgeRouterRoles = []string{"@" + d.router}
			}
		})
	case "override":
		return d.override(tx)
	}
	return d.remove(tx)
}

func (d random) policyOf(p *model.ServicePolicy) {
	p.Name, p.Semantic, p.Type = "policy-"+p.ID+d.text, model.AnyOf, model.Bind
	if d.dial {
		p.Type = model.Dial
	}
	p.IdentityRoles, p.ServiceRoles, p.PostureCheckRoles = d.identityRoles, d.serviceRoles, nil
	if !d.on {
		p.PostureCheckRoles = d.checkRoles
	}
}

// bear has somebody log in by OpenID Connect, get a token, or leave.
func (d random) bear(tx *state.Tx) error {
	id := fmt.Sprint("session", d.cost)
	if old, there := model.APISessions.Get(tx, id); there && old.Turn > 0 && d.on {
		return model.APISessions.Delete(tx, id)
	}
	who := "stranger"
	if d.dial {
		who = d.router // which a router is not told of itself
	}
	return model.APISessions.Upsert(tx, id, func(a *model.APISession) {
		if a.IdentityID == "" {
			a.IdentityID, a.TokenHash, a.Fingerprint = who, id, "f"
		}
		if a.Client = "native"; d.rare {
			a.Client = ""
		}
		a.Turn = d.minutes
	})
}

// override gives the router another config for a service, or no longer.
func (d random) override(tx *state.Tx) error {
	o := model.ServiceConfigs.New()
	o.IdentityID, o.ServiceID, o.ConfigID = d.router, d.service, d.config
	if err := o.Identify(tx); err != nil {
		return err
	}
	if _, there := model.ServiceConfigs.Get(tx, o.ID); there {
		return model.ServiceConfigs.Delete(tx, o.ID)
	}
	return model.ServiceConfigs.Create(tx, o)
}

// remove deletes a record.
func (d random) remove(tx *state.Tx) error {
	switch d.cost {
	case 0:
		return model.Services.Delete(tx, d.service)
	case 1:
		return model.ServicePolicies.Delete(tx, d.policy)
	case 2:
		return model.PostureChecks.Delete(tx, d.check)
	}
	if d.dial {
		return model.EdgeRouters.Delete(tx, d.router)
	}
	return model.Configs.Delete(tx, d.config)
}
