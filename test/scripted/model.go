package scripted

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// Model is what a router of the second generation knows beforehand, as it was
// told. It takes nothing on trust: what speaks of something unknown, or leaves
// something behind that does, is a fault.
type Model struct {
	Index      uint64
	Timeline   string
	States     int // how often it was told everything
	Identities map[string]message.DataIdentity
	Services   map[string]message.DataService
	Policies   map[string]Policy
	Types      map[string]message.DataConfigType
	Configs    map[string]message.DataConfig
	Keys       map[string]message.PublicKey
	// Checks are what it judges devices by.
	Checks map[string]message.DataCheck
	// Revoked are API sessions whose tokens it believes no more.
	Revoked map[string]message.Revocation
}

// Policy is what a policy joins.
type Policy struct {
	Type                         message.PolicyType
	Services, Identities, Checks map[string]bool
}

// ErrGap says that changes are missing between those that it knows and those
// that it is told.
var ErrGap = errors.New("changes are missing")

// Hear takes a frame in, if it is about the model.
func (m *Model) Hear(f *wire.Frame) error {
	switch f.Type {
	case message.TypeDataState:
		all, err := message.Unmarshal[message.DataState](f.Body)
		if err != nil {
			return err
		}
		*m = Model{
			Index: all.Index, Timeline: all.Timeline, States: m.States + 1,
			Identities: map[string]message.DataIdentity{}, Services: map[string]message.DataService{}, Policies: map[string]Policy{},
			Types: map[string]message.DataConfigType{}, Configs: map[string]message.DataConfig{}, Keys: map[string]message.PublicKey{},
			Revoked: map[string]message.Revocation{}, Checks: map[string]message.DataCheck{},
		}
		return m.apply(all.Events)
	case message.TypeDataChanges:
		some, err := message.Unmarshal[message.DataChanges](f.Body)
		switch {
		case err != nil:
			return err
		case some.Index <= m.Index:
			return nil // it knows that
		case some.Previous != m.Index:
			return ErrGap
		}
		m.Index = some.Index
		return m.apply(some.Changes)
	}
	return nil
}

func (m *Model) apply(events []message.DataEvent) error {
	for i, ev := range events {
		if err := m.event(ev); err != nil {
			return fmt.Errorf("event %d of %d at index %d: %w", i+1, len(events), m.Index, err)
		}
	}
	return m.whole()
}

func (m *Model) event(ev message.DataEvent) error {
	switch {
	case ev.ConfigType != nil:
		return set(m.Types, ev.Action, ev.ConfigType.ID, *ev.ConfigType)
	case ev.Config != nil:
		return set(m.Configs, ev.Action, ev.Config.ID, *ev.Config)
	case ev.Identity != nil:
		return set(m.Identities, ev.Action, ev.Identity.ID, *ev.Identity)
	case ev.Service != nil:
		return set(m.Services, ev.Action, ev.Service.ID, *ev.Service)
	case ev.Check != nil:
		return set(m.Checks, ev.Action, ev.Check.ID, *ev.Check)
	case ev.PublicKey != nil:
		return set(m.Keys, ev.Action, ev.PublicKey.KeyID, *ev.PublicKey)
	case ev.Revocation != nil:
		return set(m.Revoked, ev.Action, ev.Revocation.ID, *ev.Revocation)
	case ev.Policy != nil:
		return set(m.Policies, ev.Action, ev.Policy.ID, Policy{ev.Policy.Type, map[string]bool{}, map[string]bool{}, map[string]bool{}})
	case ev.PolicyChange != nil:
		return m.join(ev.PolicyChange)
	}
	return errors.New("it says nothing")
}

func set[T any](in map[string]T, action message.DataAction, id string, rec T) error {
	_, there := in[id]
	switch {
	case action == message.DataCreate && there:
		return fmt.Errorf("%T %s is there already", rec, id)
	case action != message.DataCreate && !there:
		return fmt.Errorf("there is no %T %s", rec, id)
	case action == message.DataDelete:
		delete(in, id)
	default:
		in[id] = rec
	}
	return nil
}

func (m *Model) join(c *message.DataPolicyChange) error {
	p, ok := m.Policies[c.PolicyID]
	if !ok {
		return fmt.Errorf("there is no policy %s", c.PolicyID)
	}
	members := p.Services
	switch c.Of {
	case message.MemberIdentity:
		members = p.Identities
	case message.MemberCheck:
		members = p.Checks
	}
	for _, id := range c.IDs {
		_, isService := m.Services[id]
		_, isIdentity := m.Identities[id]
		_, isCheck := m.Checks[id]
		switch {
		case members[id] == c.Add:
			return fmt.Errorf("policy %s is told twice of %s", c.PolicyID, id)
		case c.Of == message.MemberService && !isService, c.Of == message.MemberIdentity && !isIdentity, c.Of == message.MemberCheck && !isCheck:
			return fmt.Errorf("policy %s joins %s, which is unknown", c.PolicyID, id)
		case c.Add:
			members[id] = true
		default:
			delete(members, id)
		}
	}
	return nil
}

// whole reports what speaks of something that is not there.
func (m *Model) whole() error {
	for _, c := range m.Configs {
		if _, ok := m.Types[c.TypeID]; !ok {
			return fmt.Errorf("config %s is of the unknown type %s", c.ID, c.TypeID)
		}
	}
	for _, s := range m.Services {
		for _, id := range s.Configs {
			if _, ok := m.Configs[id]; !ok {
				return fmt.Errorf("service %s has the unknown config %s", s.ID, id)
			}
		}
	}
	for id, p := range m.Policies {
		for identity := range p.Identities {
			if _, ok := m.Identities[identity]; !ok {
				return fmt.Errorf("policy %s joins identity %s, which is gone", id, identity)
			}
		}
		for check := range p.Checks {
			if _, ok := m.Checks[check]; !ok {
				return fmt.Errorf("policy %s goes by check %s, which is gone", id, check)
			}
		}
		for service := range p.Services {
			if _, ok := m.Services[service]; !ok {
				return fmt.Errorf("policy %s joins service %s, which is gone", id, service)
			}
		}
	}
	return nil
}

// Usable returns the names of the services that the policies of a type give an
// identity, in order.
func (m *Model) Usable(identityID string, typ message.PolicyType) []string {
	var names []string
	for _, p := range m.Policies {
		if p.Type != typ || !p.Identities[identityID] {
			continue
		}
		for id := range p.Services {
			names = append(names, m.Services[id].Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// compare answers in what it differs from what it should know, and takes that if it is told to.
func (r *Router) compare(c *channel.Channel, f *wire.Frame) {
	asked, err := message.Unmarshal[message.CompareDataModel](f.Body)
	if err != nil {
		return
	}
	var should Model
	answer := &message.DataModelCompared{}
	r.change(func() {
		r.fault = errors.Join(r.fault, should.Hear(&wire.Frame{Type: message.TypeDataState, Body: message.Marshal(&asked.State)}))
		answer.Differences = should.differs(&r.model)
		if should.States = r.model.States; asked.Mend {
			r.model = should
		}
	})
	_ = c.Reply(f, &wire.Frame{Type: message.TypeDataModelCompared, Body: message.Marshal(answer)})
}

// differs lists what another model has otherwise.
func (m *Model) differs(is *Model) (all []message.DataDifference) {
	add := func(kind string, should, is any) {
		a, b := reflect.ValueOf(should), reflect.ValueOf(is)
		for _, id := range a.MapKeys() {
			if found := b.MapIndex(id); !found.IsValid() || !reflect.DeepEqual(a.MapIndex(id).Interface(), found.Interface()) {
				all = append(all, message.DataDifference{Kind: kind, ID: id.String(), What: "sub", Detail: "missing or another"})
			}
		}
		for _, id := range b.MapKeys() {
			if !a.MapIndex(id).IsValid() {
				all = append(all, message.DataDifference{Kind: kind, ID: id.String(), What: "add", Detail: "unknown"})
			}
		}
	}
	add("identity", m.Identities, is.Identities)
	add("service", m.Services, is.Services)
	add("policy", m.Policies, is.Policies)
	add("config", m.Configs, is.Configs)
	add("key", m.Keys, is.Keys)
	return all
}

// Misremember has the router know something else than it was told.
func (r *Router) Misremember(how func(*Model)) { r.change(func() { how(&r.model) }) }

// Subscribe asks to be told what it does not know of the model, as routers do
// when they connect and then again and again.
func (r *Router) Subscribe(ask message.SubscribeToDataModel) error {
	return r.Send(&wire.Frame{Type: message.TypeSubscribeToDataModel, Body: message.Marshal(&ask)})
}
