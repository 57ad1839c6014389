// Package assertion judges who may use what by what must hold. An assertion is like a
// test of the network: a write after which somebody breaks one who did not before is
// refused, whoever makes it, unless it says that it means to. One that is broken
// already stands in the way of nothing that makes it no worse. What admins may without
// a policy does not count.
//
// It looks at what a write concerns, by the bitmaps and indexes of package access, and
// owns nothing. It must not import authn, rest or anything of the APIs: whether
// somebody may override is for those who take requests, and who is told of what is for
// those who start the program.
package assertion

import (
	"cmp"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Breach is an assertion that does not hold, and who breaks it.
type Breach struct {
	ID, Name string // of the assertion
	What     string // why it does not hold, in a sentence
	// Count is how many break it: pairs of an identity and a service, services, or
	// policies; 0 if nobody counted, or if the assertion itself is wrong. Listed are the
	// first of them.
	Count  int
	Listed []Offender

	// What is wrong with a field of the assertion itself, if that is it.
	field, reason string
	value         any
}

// Offender is who or what breaks an assertion.
type Offender struct {
	IdentityID, Identity string // id and name; empty if it is about none
	ServiceID, Service   string
	PolicyID, Policy     string // that gives it; empty if there is none
}

// Breaches returns the assertions that a step breaks: those that somebody breaks after
// it who did not before, those that are about nobody, by name.
func Breaches(step state.Step) []Breach {
	if step.After.Len(model.Assertions.Def) == 0 || !slices.ContainsFunc(step.Changed, concerns) {
		return nil
	}
	t := newTrial(step.Before, step.After, step.Changed)
	var found []Breach
	for _, ref := range step.Changed {
		if ref.Def != model.Assertions.Def {
			continue
		}
		if a, has := model.Assertions.Get(step.After, ref.ID); has {
			if b, wrong := t.pointless(a); wrong {
				found = append(found, b)
			}
		}
	}
	if len(t.changed) == 0 && !slices.ContainsFunc(step.Changed, isAssertion) {
		return found
	}
	for a := range model.Assertions.All(step.After) {
		if len(t.changed) == 0 {
			if old, whole := t.former(a); old == a || !whole {
				continue // nothing moved but other assertions
			}
		}
		if b, broken := t.judge(a); broken && !slices.ContainsFunc(found, func(o Breach) bool { return o.ID == a.ID }) {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b Breach) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// concerns reports whether a change of such a record can break an assertion. Most
// cannot, and cost nothing more.
func concerns(ref state.Ref) bool {
	return isAssertion(ref) || ref.Def == model.Identities.Def || ref.Def == model.Services.Def || ref.Def == model.ServicePolicies.Def
}

func isAssertion(ref state.Ref) bool { return ref.Def == model.Assertions.Def }

// Finding is an assertion and whether it holds.
type Finding struct {
	*model.Assertion
	Breach *Breach // nil if it holds
	Idle   bool    // it holds since it is about nobody or nothing
}

// Check looks at every assertion of a network, by name.
func Check(snap *state.Snapshot) []Finding {
	t := newTrial(nil, snap, nil)
	var all []Finding
	for a := range model.Assertions.All(snap) {
		f := Finding{Assertion: a}
		if b, broken := t.judge(a); broken {
			f.Breach = &b
		} else {
			f.Idle = t.is.scope(a).empty()
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b Finding) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// judge looks for those who break an assertion.
func (t *trial) judge(a *model.Assertion) (Breach, bool) {
	b := Breach{ID: a.ID, Name: a.Name}
	switch a.Expect {
	case model.Never:
		t.tellPairs(&b, a, t.never(a), true)
	case model.Always:
		t.tellPairs(&b, a, t.always(a), false)
	case model.Somebody:
		t.tellServices(&b, a, t.somebody(a))
	case model.NoPolicy:
		tellPolicies(&b, t.noPolicy(a))
	}
	return b, b.What != ""
}

// label is what people call a record.
func label(d *kind.Def, rec kind.Record) (id, name string) { return rec.Base().ID, d.Label(rec) }
