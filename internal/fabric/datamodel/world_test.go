package datamodel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// world is a network in memory whose routers are told what they must know.
type world struct {
	st     *state.State
	models *Models
	stop   func()
}

func newWorld(fatal func(...any)) *world {
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
	if err != nil {
		fatal(err)
	}
	w := &world{st: st, models: New(Options{
		State: st, Timely: func(snap *state.Snapshot) *state.Snapshot { return snap }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Keys: func(*state.Snapshot) []message.PublicKey {
			return []message.PublicKey{{KeyID: "key", Data: []byte("key")}}
		},
	})}
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

func (w *world) write(fn func(tx *state.Tx) error) error {
	return w.st.Update(context.Background(), state.Program("test"), fn)
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
}

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
		Keys: map[string]message.PublicKey{"key": {KeyID: "key", Data: []byte("key")}},
	}
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
	return fmt.Sprint(
		m.Identities, " ", m.Services, " ", m.Policies, " ", m.Types, " ", m.Configs, " ", m.Keys,
	)
}

func data(text string) jsontext.Value { return jsontext.Value(fmt.Sprintf(`{"v":%q}`, text)) }

// pick draws one of some ids.
func pick(t *rapid.T, prefix string, n int) string {
	return fmt.Sprint(prefix, rapid.IntRange(0, n-1).Draw(t, prefix))
}
