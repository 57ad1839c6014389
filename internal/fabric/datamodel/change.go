package datamodel

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"netkeep.internal/internal/wire/message"
)

// A router is told of two policies, whichever there are: one gives its identity
// what it may dial, the other what it may host. It has no use for the real ones.
const (
	dialPolicy = "dial"
	bindPolicy = "bind"
)

// changes are what a router has to be told that knows one thing and should know
// another, in an order in which nothing is spoken of that it does not know:
// what comes or differs first, then what goes, the other way round. A router
// that knows nothing is told everything by it.
func changes(was, is *known) []message.DataEvent {
	types, typesGone := compare(was.types, is.types, typeShape)
	configs, configsGone := compare(was.configs, is.configs, configShape)
	identities, identitiesGone := compare(was.identities, is.identities, identityShape)
	services, servicesGone := compare(was.services, is.services, serviceShape)
	keys, keysGone := compare(was.keys, is.keys, keyShape)
	dial, dialGone := comparePolicy(was, is, message.DataPolicy{ID: dialPolicy, Type: message.PolicyDial}, was.dial, is.dial)
	bind, bindGone := comparePolicy(was, is, message.DataPolicy{ID: bindPolicy, Type: message.PolicyBind}, was.bind, is.bind)
	return slices.Concat(
		types, configs, identities, services, dial, bind, keys,
		dialGone, bindGone, servicesGone, identitiesGone, configsGone, typesGone, keysGone,
	)
}

// shape is how one sort of records that routers know is told.
type shape[T any] struct {
	id    func(*T) string
	same  func(a, b *T) bool
	event func(*T) message.DataEvent
}

var (
	typeShape = shape[message.DataConfigType]{
		func(t *message.DataConfigType) string { return t.ID },
		func(a, b *message.DataConfigType) bool { return *a == *b },
		func(t *message.DataConfigType) message.DataEvent { return message.DataEvent{ConfigType: t} },
	}
	configShape = shape[message.DataConfig]{
		func(c *message.DataConfig) string { return c.ID },
		func(a, b *message.DataConfig) bool { return a.TypeID == b.TypeID && bytes.Equal(a.Data, b.Data) },
		func(c *message.DataConfig) message.DataEvent { return message.DataEvent{Config: c} },
	}
	identityShape = shape[message.DataIdentity]{
		func(i *message.DataIdentity) string { return i.ID },
		sameIdentity,
		func(i *message.DataIdentity) message.DataEvent { return message.DataEvent{Identity: i} },
	}
	serviceShape = shape[message.DataService]{
		func(s *message.DataService) string { return s.ID },
		func(a, b *message.DataService) bool {
			return a.Name == b.Name && a.EncryptionRequired == b.EncryptionRequired && slices.Equal(a.Configs, b.Configs)
		},
		func(s *message.DataService) message.DataEvent { return message.DataEvent{Service: s} },
	}
	keyShape = shape[message.PublicKey]{
		func(k *message.PublicKey) string { return k.KeyID },
		func(a, b *message.PublicKey) bool {
			return bytes.Equal(a.Data, b.Data) && slices.Equal(a.Usages, b.Usages)
		},
		func(k *message.PublicKey) message.DataEvent { return message.DataEvent{PublicKey: k} },
	}
)

func sameIdentity(a, b *message.DataIdentity) bool {
	return a.Name == b.Name && a.Precedence == b.Precedence && a.Cost == b.Cost && a.Disabled == b.Disabled &&
		bytes.Equal(a.AppData, b.AppData) && maps.Equal(a.ServicePrecedences, b.ServicePrecedences) && maps.Equal(a.ServiceCosts, b.ServiceCosts)
}

// compare walks over two lists in the order of ids.
func compare[T any](was, is []T, of shape[T]) (set, gone []message.DataEvent) {
	say := func(list *[]message.DataEvent, action message.DataAction, rec *T) {
		ev := of.event(rec)
		ev.Action = action
		*list = append(*list, ev)
	}
	for len(was) > 0 || len(is) > 0 {
		order := 0
		switch {
		case len(was) == 0:
			order = 1
		case len(is) == 0:
			order = -1
		default:
			order = strings.Compare(of.id(&was[0]), of.id(&is[0]))
		}
		switch {
		case order < 0:
			say(&gone, message.DataDelete, &was[0])
		case order > 0:
			say(&set, message.DataCreate, &is[0])
		case !of.same(&was[0], &is[0]):
			say(&set, message.DataUpdate, &is[0])
		}
		if order <= 0 {
			was = was[1:]
		}
		if order >= 0 {
			is = is[1:]
		}
	}
	return set, gone
}

// comparePolicy is compare for a policy that is there as long as the router's
// identity is.
func comparePolicy(was, is *known, p message.DataPolicy, before, after []string) (set, gone []message.DataEvent) {
	member := func(ids []string, of message.PolicyMember, add bool) message.DataEvent {
		return message.DataEvent{PolicyChange: &message.DataPolicyChange{PolicyID: p.ID, IDs: ids, Of: of, Add: add}}
	}
	switch {
	case was.client() && !is.client():
		return nil, []message.DataEvent{{Action: message.DataDelete, Policy: &p}}
	case !is.client():
		return nil, nil
	case !was.client():
		set = append(set, message.DataEvent{Policy: &p})
	}
	lost, gained := apart(before, after)
	if len(gained) > 0 {
		set = append(set, member(gained, message.MemberService, true))
	}
	if len(lost) > 0 {
		gone = append(gone, member(lost, message.MemberService, false))
	}
	if !was.client() {
		set = append(set, member([]string{is.identities[0].ID}, message.MemberIdentity, true))
	}
	return set, gone
}

// apart returns what is only in the first and only in the second of two lists in
// order.
func apart(a, b []string) (first, second []string) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			first, a = append(first, a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			second, b = append(second, b[0]), b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return first, second
}
