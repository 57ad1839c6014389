package validity

import (
	"context"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// Moment is a write as it will be at a moment to come: what there will be then without
// it, and with it.
type Moment struct {
	At time.Time
	state.Step
}

// What is looked at ahead: all that a write waits for is bounded, since others wait for it.
const (
	maxMoments = 8
	maxAhead   = 64 // grants, and policies that end
)

// Ahead is a write at the first moments to come at which grants begin that it gives, or
// that it has to do with: those of an attribute that a policy of the write finds, or of an
// identity that it changes; and all of them where it changes services or assertions.
func Ahead(ctx context.Context, st *state.State, step state.Step) (moments []Moment, err error) {
	c := newConcern(step)
	var grants []*model.Grant
	for rec := range waiting(step.After, model.Grants.Def, model.ToBegin) {
		if g := rec.(*model.Grant); c.with(g) {
			grants = append(grants, g)
		}
		if len(grants) == maxAhead {
			break
		}
	}
	changed := c.widened(step)
	for i, g := range grants {
		at := *g.ValidFrom
		if len(moments) > 0 && moments[len(moments)-1].At.Equal(at) {
			continue
		}
		refs := turning(step.After, grants[:i+1+alike(grants[i+1:], at)], at)
		m := Moment{At: at, Step: step}
		if m.Before, err = later(ctx, st, step.Before, at, refs); err != nil {
			return nil, err
		}
		if m.After, err = later(ctx, st, step.After, at, refs); err != nil {
			return nil, err
		}
		m.Changed = changed
		if moments = append(moments, m); len(moments) == maxMoments {
			break
		}
	}
	return moments, nil
}

// alike is how many of the first grants begin at a moment too.
func alike(grants []*model.Grant, at time.Time) (n int) {
	for n < len(grants) && grants[n].ValidFrom.Equal(at) {
		n++
	}
	return n
}

// turning are the records that are others at a moment: grants that begin, those of the
// same identities that may be over by then, and policies that are.
func turning(snap *state.Snapshot, grants []*model.Grant, at time.Time) (refs []state.Ref) {
	seen := map[string]bool{}
	for _, g := range grants {
		if seen[g.IdentityID] {
			continue
		}
		seen[g.IdentityID] = true
		for one := range model.Grants.Select(snap, "identityId", g.IdentityID) {
			if refs = append(refs, state.Ref{Def: model.Grants.Def, ID: one.ID}); len(refs) > 2*maxAhead {
				break
			}
		}
	}
	policies := 0
	for rec, end := range waiting(snap, model.ServicePolicies.Def, model.ToEnd) {
		if policies++; end.After(at) || policies > maxAhead {
			break
		}
		refs = append(refs, state.Ref{Def: model.ServicePolicies.Def, ID: rec.Base().ID})
	}
	return refs
}

// later is a snapshot in which some records are what they are at a moment to come.
func later(ctx context.Context, st *state.State, snap *state.Snapshot, at time.Time, refs []state.Ref) (*state.Snapshot, error) {
	step, err := st.TryAt(ctx, snap, at, func(tx *state.Tx) error { return turn(tx, refs) })
	if err != nil {
		return nil, err
	}
	return step.After, nil
}

// concern is what a write has to do with.
type concern struct {
	all                            bool
	attributes, identities, grants map[string]bool
}

func newConcern(step state.Step) *concern {
	c := &concern{attributes: map[string]bool{}, identities: map[string]bool{}, grants: map[string]bool{}}
	for _, ref := range step.Changed {
		switch ref.Def {
		case model.Services.Def, model.Assertions.Def:
			c.all = true
		case model.Identities.Def:
			c.identities[ref.ID] = true
		case model.Grants.Def:
			c.grants[ref.ID] = true
		case model.ServicePolicies.Def:
			for _, snap := range []*state.Snapshot{step.Before, step.After} {
				if p, there := model.ServicePolicies.Get(snap, ref.ID); there {
					for _, role := range p.IdentityRoles {
						if attribute, is := strings.CutPrefix(role, "#"); is {
							c.attributes[attribute] = true
						}
					}
				}
			}
		}
	}
	return c
}

func (c *concern) with(g *model.Grant) bool {
	return c.all || c.grants[g.ID] || c.identities[g.IdentityID] || c.attributes[g.Attribute]
}

// widened are the records that a write changes at a moment to come: the identities too
// to which it gives a grant, or from which it takes one.
func (c *concern) widened(step state.Step) []state.Ref {
	changed := slices.Clone(step.Changed)
	for id := range c.grants {
		for _, snap := range []*state.Snapshot{step.Before, step.After} {
			if g, there := model.Grants.Get(snap, id); there && !c.identities[g.IdentityID] {
				c.identities[g.IdentityID] = true
				changed = append(changed, state.Ref{Def: model.Identities.Def, ID: g.IdentityID})
			}
		}
	}
	return changed
}
