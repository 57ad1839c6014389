package datamodel

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"

	"netkeep.internal/internal/wire/message"
)

// A router is told of two policies of each identity that it is told of, whichever there
// are: one gives it what it may dial, the other what it may host. It has no use for the
// real ones. These are those of its own identity; others have their id behind. For each
// policy with posture checks there is another, whose id is behind that, if the router
// judges devices.
const (
	dialPolicy = "dial"
	bindPolicy = "bind"
)

// policy gives an identity services, by their ids in their order.
type policy struct {
	id       string
	typ      message.PolicyType
	identity string
	services []string
	checks   []string // ids of posture checks, of which a device must pass all
}

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
	checks, checksGone := compare(was.checks, is.checks, checkShape)
	policies, policiesGone := comparePolicies(was.policies, is.policies)
	ended, endedGone := compare(was.ended, is.ended, endedShape)
	return slices.Concat(
		types, configs, identities, services, checks, policies, keys, ended,
		policiesGone, checksGone, servicesGone, identitiesGone, configsGone, typesGone, keysGone, endedGone,
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
	checkShape = shape[message.DataCheck]{
		func(c *message.DataCheck) string { return c.ID },
		func(a, b *message.DataCheck) bool { return reflect.DeepEqual(a, b) },
		func(c *message.DataCheck) message.DataEvent { return message.DataEvent{Check: c} },
	}
	endedShape = shape[ended]{
		func(e *ended) string { return e.id },
		func(a, b *ended) bool { return a.until.Equal(b.until) },
		func(e *ended) message.DataEvent {
			return message.DataEvent{Revocation: &message.Revocation{ID: e.id, Expires: message.Timestamp{Seconds: e.until.Unix()}, Type: message.RevokedAPISession}}
		},
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

// comparePolicies is compare for policies, which are what they join.
func comparePolicies(was, is []policy) (set, gone []message.DataEvent) {
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].id < is[0].id:
			gone = append(gone, message.DataEvent{Action: message.DataDelete, Policy: &message.DataPolicy{ID: was[0].id, Type: was[0].typ}})
			was = was[1:]
		case len(was) == 0 || is[0].id < was[0].id:
			p := is[0]
			set = append(set, message.DataEvent{Policy: &message.DataPolicy{ID: p.id, Type: p.typ}})
			if len(p.checks) > 0 { // before it gives anything
				set = append(set, p.member(p.checks, message.MemberCheck, true))
			}
			if len(p.services) > 0 {
				set = append(set, p.member(p.services, message.MemberService, true))
			}
			set = append(set, p.member([]string{p.identity}, message.MemberIdentity, true))
			is = is[1:]
		default:
			eased, tightened := apart(was[0].checks, is[0].checks)
			if len(tightened) > 0 {
				set = append(set, is[0].member(tightened, message.MemberCheck, true))
			}
			lost, gained := apart(was[0].services, is[0].services)
			if len(gained) > 0 {
				set = append(set, is[0].member(gained, message.MemberService, true))
			}
			if len(lost) > 0 {
				gone = append(gone, is[0].member(lost, message.MemberService, false))
			}
			if len(eased) > 0 {
				gone = append(gone, is[0].member(eased, message.MemberCheck, false))
			}
			was, is = was[1:], is[1:]
		}
	}
	return set, gone
}

func (p policy) member(ids []string, of message.PolicyMember, add bool) message.DataEvent {
	return message.DataEvent{PolicyChange: &message.DataPolicyChange{PolicyID: p.id, IDs: ids, Of: of, Add: add}}
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
