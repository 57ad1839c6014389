package explain_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/explain"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/policy/posture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

// world is a network in memory with what gives out sessions in it.
type world struct {
	t       *rapid.T
	st      *state.State
	holders *authn.APISessions
	grants  *grant.Grants
	hosted  map[string]bool // routers at which everything is hosted
	offline map[string]bool
}

func newWorld(t *rapid.T) *world {
	now := func() time.Time { return start }
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	log := slog.New(slog.DiscardHandler)
	holders := &authn.APISessions{State: st, Keys: func() [][]byte { return [][]byte{[]byte("key")} }, Timeout: 30 * time.Minute, Lifetime: 24 * time.Hour, Now: now, Log: log}
	tokens, err := grant.NewTokens([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, st: st, holders: holders, hosted: map[string]bool{}, offline: map[string]bool{}}
	w.grants = &grant.Grants{
		State: st, Tokens: tokens, Usable: holders.Usable, Failures: new(posture.Failures), Changes: new(access.LastChange), Now: now, Log: log,
	}
	w.write(func(tx *state.Tx) error { return model.Seed(tx) })
	return w
}

func (w *world) write(fn func(tx *state.Tx) error) {
	if err := w.st.Update(context.Background(), state.Program("test"), fn); err != nil {
		w.t.Fatal(err)
	}
}

// network is what explanations ask here.
func (w *world) network() explain.Network {
	return explain.Network{
		Sessions: w.holders, Grants: w.grants, Locked: func(string) bool { return false }, Online: func(id string) bool { return !w.offline[id] },
		Hosts: func(_ *state.Snapshot, _ *model.Service, routerID string) []*model.Terminator {
			if w.hosted[routerID] {
				return []*model.Terminator{{Address: "somewhere"}}
			}
			return nil
		},
	}
}

var (
	people   = []string{"ann", "bob", "it's me"}
	services = []string{"web", "mail"}
	routers  = []string{"paris", "oslo"}
	checks   = []string{"code", "system"}
	words    = []string{"red", "green"}
	types    = rapid.SampledFrom([]string{model.Dial, model.Bind})
	modes    = rapid.SampledFrom([]string{model.Enforce, model.Report})
)

// chance is true once in a while, and less often than once in so many times.
func chance(t *rapid.T, what string, of int) bool { return rapid.IntRange(1, of).Draw(t, what) == of }

func roles(t *rapid.T, what string, ids []string) []string {
	all := []string{"#red", "#green"}
	for _, id := range ids {
		all = append(all, "@"+id)
	}
	if chance(t, what+" are all", 3) {
		return []string{"#all"}
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(all), min(1, len(all)), 3, rapid.ID[string]).Draw(t, what)
}

func attributes(t *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(words), 0, 2, rapid.ID[string]).Draw(t, "attributes")
}

// build draws a network.
func (w *world) build() {
	t := w.t
	w.write(func(tx *state.Tx) error {
		for _, id := range people {
			rec := model.Identities.New()
			rec.ID, rec.Name, rec.Type, rec.RoleAttributes = id, id, "User", attributes(t)
			rec.IsAdmin = chance(t, "admin", 8)
			if chance(t, "disabled", 6) {
				rec.Disable(start.Add(-time.Minute), rapid.IntRange(0, 2).Draw(t, "minutes"))
			}
			must(t, model.Identities.Create(tx, rec))
			changed := 0
			if chance(t, "password changed", 6) {
				changed = 1
			}
			password := model.NewPassword(id, id+" of the network", "")
			password.ID, password.PasswordRev = "password of "+id, changed
			must(t, model.Authenticators.Create(tx, password))
		}
		for _, id := range services {
			rec := model.Services.New()
			rec.ID, rec.Name, rec.RoleAttributes = id, id, attributes(t)
			must(t, model.Services.Create(tx, rec))
		}
		for _, id := range routers {
			if chance(t, "no router", 4) {
				continue
			}
			rec := model.EdgeRouters.New()
			rec.ID, rec.Name, rec.RoleAttributes = id, id, attributes(t)
			must(t, model.EdgeRouters.Create(tx, rec))
		}
		must(t, model.PostureChecks.Create(tx, &model.PostureCheck{
			Meta: kind.Meta{ID: "code"}, Name: "code", TypeID: "MFA", Mode: modes.Draw(t, "mode"), TimeoutSeconds: 60, RoleAttributes: attributes(t),
		}))
		must(t, model.PostureChecks.Create(tx, &model.PostureCheck{
			Meta: kind.Meta{ID: "system"}, Name: "system", TypeID: "OS", Mode: modes.Draw(t, "mode"), RoleAttributes: attributes(t),
			OperatingSystems: []model.OperatingSystem{{Type: "Linux", Versions: []string{}}},
		}))
		return w.addPolicies(tx)
	})
	w.addSessions()
}

func must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) addPolicies(tx *state.Tx) error {
	t := w.t
	there := slices.DeleteFunc(slices.Clone(routers), func(id string) bool { _, ok := model.EdgeRouters.Get(tx, id); return !ok })
	semantic := func() string { return rapid.SampledFrom([]string{model.AnyOf, model.AllOf}).Draw(t, "semantic") }
	for i := range rapid.IntRange(0, 5).Draw(t, "service policies") {
		p := model.ServicePolicies.New()
		p.Name, p.Semantic, p.Type = fmt.Sprint("policy ", i), semantic(), types.Draw(t, "type")
		p.IdentityRoles, p.ServiceRoles = roles(t, "identities", people), roles(t, "services", services)
		if chance(t, "checked", 2) {
			p.PostureCheckRoles = roles(t, "checks", checks)
		}
		must(t, model.ServicePolicies.Create(tx, p))
	}
	if !chance(t, "strict", 3) {
		all := []string{"#all"}
		must(t, model.EdgeRouterPolicies.Create(tx, &model.EdgeRouterPolicy{Name: "all", Semantic: model.AnyOf, IdentityRoles: all, EdgeRouterRoles: all}))
		must(t, model.ServiceEdgeRouterPolicies.Create(tx, &model.ServiceEdgeRouterPolicy{Name: "all", Semantic: model.AnyOf, ServiceRoles: all, EdgeRouterRoles: all}))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "edge router policies") {
		p := model.EdgeRouterPolicies.New()
		p.Name, p.Semantic = fmt.Sprint("policy ", i), semantic()
		p.IdentityRoles, p.EdgeRouterRoles = roles(t, "identities", people), roles(t, "routers", there)
		must(t, model.EdgeRouterPolicies.Create(tx, p))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "service edge router policies") {
		p := model.ServiceEdgeRouterPolicies.New()
		p.Name, p.Semantic = fmt.Sprint("policy ", i), semantic()
		p.ServiceRoles, p.EdgeRouterRoles = roles(t, "services", services), roles(t, "routers", there)
		must(t, model.ServiceEdgeRouterPolicies.Create(tx, p))
	}
	return nil
}

// addSessions gives people API sessions, good ones and others, and has devices
// report.
func (w *world) addSessions() {
	t := w.t
	err := w.st.UpdateSessions(context.Background(), state.Program("test"), func(tx *state.Tx) error {
		for _, id := range people {
			for n := range rapid.IntRange(0, 3).Draw(t, "API sessions") {
				api := &model.APISession{
					Meta: kind.Meta{ID: fmt.Sprint("session ", n, " of ", id)}, IdentityID: id, AuthenticatorID: "password of " + id, PasswordRev: 0,
					IsMFARequired: chance(t, "code required", 3), LastActivityAt: kind.MomentOf(start),
				}
				if chance(t, "idle", 5) {
					api.LastActivityAt = kind.MomentOf(start.Add(-time.Hour))
				}
				if chance(t, "code shown", 2) {
					at := start.Add(-time.Duration(rapid.IntRange(1, 100).Draw(t, "seconds ago")) * time.Second)
					api.IsMFAComplete, api.MFAPassedAt = true, &at
				}
				sum := sha256.Sum256([]byte(w.holders.Token(api)))
				api.TokenHash = hex.EncodeToString(sum[:])
				must(t, model.APISessions.Create(tx, api))
				if chance(t, "reports", 2) {
					device := &model.Device{Meta: kind.Meta{ID: api.ID}, APISessionID: api.ID, OS: &model.OSReport{Type: rapid.SampledFrom([]string{"iOS", "Linux"}).Draw(t, "system")}}
					must(t, model.Devices.Create(tx, device))
				}
			}
		}
		return nil
	})
	must(t, err)
}

// succeeds asks for a session as the Client API does, with every API session
// that the identity has.
func (w *world) succeeds(identity, service, typ string) bool {
	snap, ctx := w.st.Snapshot(), context.Background()
	for api := range model.APISessions.Select(snap, "identityId", identity) {
		who, err := w.holders.Verify(ctx, snap, authn.Credentials{Token: w.holders.Token(api)})
		if err != nil || !who.Complete() {
			continue
		}
		_, err = w.grants.Create(ctx, state.Program("test"), who, grant.Request{ServiceID: service, Type: typ})
		if err == nil {
			return true
		}
		if code := fault.CodeOf(err); code == fault.CodeUnhandled {
			w.t.Fatal(err)
		}
	}
	return false
}

// TestExplainsWhatHappens holds explanations against what is given out: as far
// as the router that both may use, every link holds exactly if a session is
// given out, and a remedy that is a command makes its link hold.
func TestExplainsWhatHappens(t *testing.T) {
	outcomes := map[bool]int{}
	defer func() {
		if outcomes[true] == 0 || outcomes[false] == 0 {
			t.Errorf("sessions given out, or not: %v", outcomes)
		}
	}()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.build()
		typ := types.Draw(t, "type")
		for _, identity := range people {
			for _, service := range services {
				e := w.explain(identity, service, typ)
				held := !slices.ContainsFunc(e.Links, func(l explain.Link) bool { return !l.Passed && l.Link != "terminator" })
				given := w.succeeds(identity, service, typ)
				outcomes[given]++
				if given != held {
					t.Fatalf("a session is given out: %v; explained: %+v", given, e)
				}
			}
		}
		w.checkRouters(typ)
		identity, service := rapid.SampledFrom(people).Draw(t, "identity"), rapid.SampledFrom(services).Draw(t, "service")
		for i, l := range w.explain(identity, service, typ).Links {
			w.tryRemedy(l, func() explain.Link { return w.explain(identity, service, typ).Links[i] })
		}
	})
}

// checkRouters has routers go offline and others be where services are hosted.
func (w *world) checkRouters(typ string) {
	for _, id := range routers {
		w.offline[id], w.hosted[id] = chance(w.t, "offline", 3), !chance(w.t, "no host", 3)
	}
	snap := w.st.Snapshot()
	for _, identity := range people {
		for _, service := range services {
			online, hosted := false, false
			for router := range snap.At(model.EdgeRouters.Def, access.CommonRouters(snap, identity, service)) {
				id := router.Base().ID
				online, hosted = online || !w.offline[id], hosted || !w.offline[id] && w.hosted[id]
			}
			links := w.explain(identity, service, typ).Links
			if links[6].Passed != online || typ == model.Dial && links[7].Passed != hosted {
				w.t.Fatalf("online: %v, hosted: %v; explained: %+v", online, hosted, links)
			}
		}
	}
	clear(w.offline)
}

// explain explains, and checks that the explanation is complete.
func (w *world) explain(identity, service, typ string) explain.Explanation {
	e, err := w.network().Explain(w.st.Snapshot(), identity, service, typ)
	must(w.t, err)
	allowed := true
	for _, l := range e.Links {
		allowed = allowed && l.Passed
		if l.What == "" || l.Passed != (l.Remedy == "") {
			w.t.Fatalf("of a link is said: %+v", l)
		}
	}
	if e.Allowed != allowed || len(e.Links) != map[string]int{model.Dial: 8, model.Bind: 7}[typ] {
		w.t.Fatalf("explained: %+v", e)
	}
	return e
}

// TestHostElsewhere has the only host at a router that the client may not use,
// to which a path leads from the one that it may. That is enough, and the router
// is named at which the host is.
func TestHostElsewhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		w.write(func(tx *state.Tx) error {
			for _, id := range routers {
				rec := model.EdgeRouters.New()
				rec.ID, rec.Name = id, id
				must(rt, model.EdgeRouters.Create(tx, rec))
			}
			ann, web := model.Identities.New(), model.Services.New()
			ann.ID, ann.Name, ann.Type = "ann", "ann", "User"
			web.ID, web.Name = "web", "web"
			must(rt, model.Identities.Create(tx, ann))
			must(rt, model.Services.Create(tx, web))
			return nil
		})
		w.run("netkeep create edge-router-policy ann-uses-paris --identity-roles @ann --edge-router-roles @paris")
		w.run("netkeep create service-edge-router-policy web-uses-paris --service-roles @web --edge-router-roles @paris")
		n := w.network()
		n.Hosts = func(_ *state.Snapshot, _ *model.Service, from string) []*model.Terminator {
			return []*model.Terminator{{Meta: kind.Meta{ID: "host"}, RouterID: "oslo", Address: "seen from " + from}}
		}
		e, err := n.Explain(w.st.Snapshot(), "ann", "web", model.Dial)
		must(rt, err)
		last := e.Links[len(e.Links)-1]
		if !last.Passed || last.What != "web is hosted at oslo, to which a path leads" {
			rt.Fatalf("it says %+v", last)
		}
		for _, l := range e.Links {
			if l.Link == "session" && l.Remedy != "netkeep invite ann" {
				rt.Fatalf("how to begin: %+v", l)
			}
		}
	})
}

// tryRemedy runs the command that is to make a link hold, if there is one.
func (w *world) tryRemedy(l explain.Link, again func() explain.Link) {
	if !strings.HasPrefix(l.Remedy, "netkeep ") {
		policies := []string{"service-policy", "edge-router-policy", "service-edge-router-policy"}
		if !l.Passed && slices.Contains(policies, l.Link) && w.st.Snapshot().Len(model.EdgeRouters.Def) > 0 {
			w.t.Fatalf("there is no command: %+v", l)
		}
		return
	}
	if changes := !strings.HasPrefix(l.Remedy, "netkeep enable ") && !strings.HasPrefix(l.Remedy, "netkeep invite "); changes != (len(l.Changes) == 1) {
		w.t.Fatalf("the remedy as changes: %+v", l)
	}
	w.run(l.Remedy)
	if after := again(); !after.Passed {
		w.t.Fatalf("%s leaves the link at %+v", l.Remedy, after)
	}
}

// split reads a command as a shell would, as far as we write any.
func split(line string) (words []string) {
	word, quoted, some := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, some = !quoted, true
		case c == '\\' && !quoted:
			i++
			word += line[i : i+1]
		case c == ' ' && !quoted:
			words = append(words, word)
			word, some = "", false
		default:
			word += string(c)
		}
	}
	if word != "" || some {
		words = append(words, word)
	}
	return words
}

func (w *world) run(line string) {
	args := split(line)
	flags := map[string][]string{}
	for i := 4; i+1 < len(args); i += 2 {
		flags[args[i]] = []string{args[i+1]}
	}
	verb, name := args[1]+" "+args[2], args[3]
	w.write(func(tx *state.Tx) error {
		switch verb {
		case "enable identity":
			return model.Identities.Edit(tx, name, func(i *model.Identity) error { i.DisabledAt, i.DisabledUntil = nil, nil; return nil })
		case "update identity":
			return model.Identities.Edit(tx, name, func(i *model.Identity) error {
				i.RoleAttributes = append(i.RoleAttributes, flags["--add-role"]...)
				return nil
			})
		case "update service":
			return model.Services.Edit(tx, name, func(s *model.Service) error {
				s.RoleAttributes = append(s.RoleAttributes, flags["--add-role"]...)
				return nil
			})
		case "create service-policy":
			p := &model.ServicePolicy{Name: name, Semantic: model.AnyOf, Type: flags["--type"][0], IdentityRoles: flags["--identity-roles"], ServiceRoles: flags["--service-roles"]}
			return model.ServicePolicies.Create(tx, p)
		case "create edge-router-policy":
			p := &model.EdgeRouterPolicy{Name: name, Semantic: model.AnyOf, IdentityRoles: flags["--identity-roles"], EdgeRouterRoles: flags["--edge-router-roles"]}
			return model.EdgeRouterPolicies.Create(tx, p)
		case "create service-edge-router-policy":
			p := &model.ServiceEdgeRouterPolicy{Name: name, Semantic: model.AnyOf, ServiceRoles: flags["--service-roles"], EdgeRouterRoles: flags["--edge-router-roles"]}
			return model.ServiceEdgeRouterPolicies.Create(tx, p)
		}
		return fmt.Errorf("no such command: %q", line)
	})
}
