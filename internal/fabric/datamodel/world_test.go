package datamodel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
)

// bearing is how long access tokens are good.
const bearing = 15 * time.Minute

// world is a network in memory whose routers are told what they must know.
type world struct {
	st     *state.State
	models *Models
	stop   func()
	took   map[string]map[string]bool // API sessions whose tokens a router ever took
}

func newWorld(fatal func(...any)) *world {
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
	if err != nil {
		fatal(err)
	}
	w := &world{st: st, models: New(Options{
		State: st, Timely: func(snap *state.Snapshot) *state.Snapshot { return snap }, Now: time.Now, Log: slog.New(slog.DiscardHandler), Bearing: bearing,
		Keys: func(*state.Snapshot) []message.PublicKey {
			return []message.PublicKey{{KeyID: "key", Data: []byte("key")}}
		},
	}), took: map[string]map[string]bool{}}
	if err := st.Update(context.Background(), state.Program("test"), func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	w.stop = func() {
		cancel()
		<-done
		st.Close()
	}
	go func() {
		defer close(done)
		w.follow(ctx)
	}()
	return w
}

// follow passes changes on as the fabric does.
func (w *world) follow(ctx context.Context) {
	sub := w.st.Subscribe()
	var before *state.Snapshot
	for {
		ev, err := sub.Next(ctx)
		switch {
		case err != nil:
			return
		case ev.Reset != nil:
			w.models.Restart()
		default:
			var changed []state.Ref
			for _, write := range ev.Writes {
				for _, c := range write.Changes {
					changed = append(changed, c.Ref)
				}
			}
			w.models.Applied(before, ev.After, changed)
		}
		before = ev.After
	}
}

// write makes a change, after which routers may take tokens that they did not before: for
// as long as until the next, which may be before anybody looks at them.
func (w *world) write(fn func(tx *state.Tx) error) error {
	err := w.st.Update(context.Background(), state.Program("test"), fn)
	snap := w.st.Snapshot()
	for edge := range model.EdgeRouters.All(snap) {
		if w.took[edge.ID] == nil {
			w.took[edge.ID] = map[string]bool{}
		}
		maps.Copy(w.took[edge.ID], bearersAt(snap, edge.ID))
	}
	return err
}

// router is one that follows a script. It loses some of what it is told.
type router struct {
	scripted.Model
	id    string
	mu    sync.Mutex
	inbox []*wire.Frame

	lose   int
	missed bool // it lost something, and has not asked since
	frames int
	fault  error
	name   string // of its subscription
	asked  time.Time

	// bearers are the API sessions whose tokens it took when it was last up to date,
	// which was then.
	bearers map[string]bool
	then    time.Time
}

// Judges reports whether it is one of OpenZiti's, as r0 is.
func (r *router) Judges() bool { return judges(r.id) }

func judges(id string) bool { return id == "r0" }

func (r *router) Send(f *wire.Frame) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inbox = append(r.inbox, f)
	return nil
}

// read waits until nothing happens any more, and takes in what has arrived.
func (r *router) read() {
	synctest.Wait()
	r.mu.Lock()
	frames := r.inbox
	r.inbox = nil
	r.mu.Unlock()
	for _, f := range frames {
		r.frames++
		switch {
		case r.lose > 0:
			r.lose--
			r.missed = true
		case f.Headers.Text(message.HeaderSubscription) == r.name: // and not of before
			r.fault = errors.Join(r.fault, r.Hear(f))
		}
	}
}

// ask subscribes with what the router knows.
func (r *router) ask(m *Models, renew bool) {
	r.read()
	if !renew {
		r.name += "x"
	}
	r.asked, r.missed = time.Now(), false
	m.subscribe(r.id, r, &message.SubscribeToDataModel{
		Index: r.Index, Timeline: r.Timeline, Seconds: 300, Renew: renew, Subscription: r.name,
	})
	r.read()
}

// expected is what a router may know, worked out by looking at every service.
func expected(snap *state.Snapshot, id string, now time.Time) *scripted.Model {
	m := &scripted.Model{
		Identities: map[string]message.DataIdentity{}, Services: map[string]message.DataService{}, Policies: map[string]scripted.Policy{},
		Types: map[string]message.DataConfigType{}, Configs: map[string]message.DataConfig{},
		Keys:   map[string]message.PublicKey{"key": {KeyID: "key", Data: []byte("key")}},
		Checks: map[string]message.DataCheck{},
	}
	expectBearers(snap, m, id)
	edge, _ := model.EdgeRouters.Get(snap, id)
	who, ok := model.Identities.Get(snap, id)
	if edge == nil || !edge.IsTunnelerEnabled || !ok {
		return m
	}
	self := message.DataIdentity{ID: id, Name: who.Name, Cost: uint32(who.DefaultHostingCost), Disabled: who.Disabled(now)}
	one := func() map[string]bool { return map[string]bool{id: true} }
	m.Policies[dialPolicy] = scripted.Policy{Type: message.PolicyDial, Services: map[string]bool{}, Identities: one()}
	m.Policies[bindPolicy] = scripted.Policy{Type: message.PolicyBind, Services: map[string]bool{}, Identities: one()}
	for s := range model.Services.All(snap) {
		dial, bind := open(snap, id, s.ID, model.Dial), open(snap, id, s.ID, model.Bind)
		if !dial && !bind || self.Disabled {
			continue
		}
		if dial {
			m.Policies[dialPolicy].Services[s.ID] = true
		}
		if bind {
			m.Policies[bindPolicy].Services[s.ID] = true
		}
		expectService(snap, m, &self, s, who)
	}
	m.Identities[id] = self
	return m
}

// bearersAt are the API sessions whose tokens a router takes.
func bearersAt(snap *state.Snapshot, routerID string) map[string]bool {
	all := map[string]bool{}
	ord, ok := snap.Ordinal(model.EdgeRouters.Def, routerID)
	for api := range model.APISessions.All(snap) {
		if ok && api.IdentityID != routerID && api.Client != "" && api.Turn > 0 && api.Fingerprint != "" && access.EdgeRouters(snap, api.IdentityID).Contains(ord) {
			all[api.ID] = true
		}
	}
	return all
}

func expectBearers(snap *state.Snapshot, m *scripted.Model, routerID string) {
	for id := range bearersAt(snap, routerID) {
		api, _ := model.APISessions.Get(snap, id)
		who := api.IdentityID
		m.Identities[who] = message.DataIdentity{ID: who}
		for kind, typ := range map[string]message.PolicyType{model.Dial: message.PolicyDial, model.Bind: message.PolicyBind} {
			p := scripted.Policy{Type: typ, Services: map[string]bool{}, Identities: map[string]bool{who: true}}
			for s := range model.Services.All(snap) {
				if open(snap, who, s.ID, kind) {
					p.Services[s.ID], m.Services[s.ID] = true, message.DataService{ID: s.ID}
				}
			}
			id := map[string]string{model.Dial: dialPolicy, model.Bind: bindPolicy}[kind] + " " + who
			m.Policies[id] = p
			if judges(routerID) {
				expectChecked(snap, m, who, kind, id, p)
			}
		}
	}
}

// expectChecked adds what policies with checks give somebody beside what there is anyway.
func expectChecked(snap *state.Snapshot, m *scripted.Model, who, kind, id string, anyway scripted.Policy) {
	for s := range model.Services.All(snap) {
		for _, p := range access.Granting(snap, who, s.ID, kind) {
			checks := access.Checks(snap, p)
			if len(checks) == 0 || anyway.Services[s.ID] {
				continue
			}
			m.Services[s.ID] = message.DataService{ID: s.ID}
			if _, there := m.Policies[id+" "+p.ID]; !there {
				m.Policies[id+" "+p.ID] = scripted.Policy{Type: anyway.Type, Services: map[string]bool{}, Identities: anyway.Identities, Checks: map[string]bool{}}
			}
			m.Policies[id+" "+p.ID].Services[s.ID] = true
			for _, c := range checks {
				m.Policies[id+" "+p.ID].Checks[c.ID] = true
				m.Checks[c.ID] = message.DataCheck{ID: c.ID, Type: c.TypeID, Domains: &message.CheckDomains{Domains: c.Domains}}
			}
		}
	}
}

func expectService(snap *state.Snapshot, m *scripted.Model, self *message.DataIdentity, s *model.Service, who *model.Identity) {
	told := message.DataService{ID: s.ID, Name: s.Name, EncryptionRequired: s.EncryptionRequired}
	own := map[string]bool{} // types
	for o := range model.ServiceConfigs.All(snap) {
		if o.IdentityID == self.ID && o.ServiceID == s.ID {
			own[o.ConfigTypeID] = true
			told.Configs = append(told.Configs, o.ConfigID)
		}
	}
	var common []string
	for _, id := range s.Configs {
		if c, _ := model.Configs.Get(snap, id); !own[c.ConfigTypeID] {
			common = append(common, id)
		}
	}
	told.Configs = append(common, told.Configs...)
	if cost, ok := who.ServiceHostingCosts[s.ID]; ok {
		if self.ServiceCosts == nil {
			self.ServiceCosts = map[string]uint32{}
		}
		self.ServiceCosts[s.ID] = uint32(cost)
	}
	for _, id := range told.Configs {
		c, _ := model.Configs.Get(snap, id)
		t, _ := model.ConfigTypes.Get(snap, c.ConfigTypeID)
		m.Configs[id] = message.DataConfig{ID: id, TypeID: t.ID, Data: c.Data}
		m.Types[t.ID] = message.DataConfigType{ID: t.ID, Name: t.Name}
	}
	m.Services[s.ID] = told
}

// open reports whether a policy without checks gives the identity the service.
func open(snap *state.Snapshot, identity, service, typ string) bool {
	for _, p := range access.Granting(snap, identity, service, typ) {
		if len(access.Checks(snap, p)) == 0 {
			return true
		}
	}
	return false
}

// show is a model as text, for comparing.
func show(m *scripted.Model) string {
	checks := map[string]string{}
	for id, c := range m.Checks {
		checks[id] = string(message.Marshal(&c))
	}
	return fmt.Sprint(
		m.Identities, " ", m.Services, " ", m.Policies, " ", m.Types, " ", m.Configs, " ", m.Keys, " ", checks,
	)
}

func data(text string) jsontext.Value { return jsontext.Value(fmt.Sprintf(`{"v":%q}`, text)) }

// pick draws one of some ids.
func pick(t *rapid.T, prefix string, n int) string {
	return fmt.Sprint(prefix, rapid.IntRange(0, n-1).Draw(t, prefix))
}
