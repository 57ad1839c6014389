package assertion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// Few are named in a sentence, and some more are listed.
const (
	maxNamed  = 3
	maxListed = 20
)

// verbs are what one does to a service, by type.
var verbs = map[string]string{model.Dial: "dial", model.Bind: "host"}

// tellPairs says which identities may use which services, or may not.
func (t *trial) tellPairs(b *Breach, a *model.Assertion, found area, may bool) {
	if found.empty() {
		return
	}
	t.list(b, found)
	if !found.rough {
		b.Count = found.count()
	}
	b.What = sentence(b, found, func(o Offender) string {
		switch {
		case !may:
			return o.Identity + " may not " + verbs[a.Type] + " " + o.Service
		case o.Policy == "":
			return o.Identity + " may " + verbs[a.Type] + " " + o.Service
		}
		return o.Identity + " may " + verbs[a.Type] + " " + o.Service + " by the policy " + strconv.Quote(o.Policy)
	})
}

// list lists the first pairs.
func (t *trial) list(b *Breach, found area) {
	snap := t.is.snap
	for _, part := range found.blocks {
		for who := range snap.At(model.Identities.Def, part.identities) {
			for what := range snap.At(model.Services.Def, part.services) {
				var o Offender
				o.IdentityID, o.Identity = label(model.Identities.Def, who)
				o.ServiceID, o.Service = label(model.Services.Def, what)
				if slices.ContainsFunc(b.Listed, func(l Offender) bool { return l.IdentityID == o.IdentityID && l.ServiceID == o.ServiceID }) {
					continue // in a rough area
				}
				if part.by != nil {
					o.PolicyID, o.Policy = part.by.ID, part.by.Name
				}
				if b.Listed = append(b.Listed, o); len(b.Listed) == maxListed {
					return
				}
			}
		}
	}
}

// tellServices says which services nobody uses.
func (t *trial) tellServices(b *Breach, a *model.Assertion, found *cow.Bitmap) {
	for rec := range t.is.snap.At(model.Services.Def, found) {
		var o Offender
		o.ServiceID, o.Service = label(model.Services.Def, rec)
		if b.Listed = append(b.Listed, o); len(b.Listed) == maxListed {
			break
		}
	}
	b.Count = int(found.GetCardinality())
	who := "nobody"
	if !slices.Contains(a.IdentityRoles, "#all") {
		who = "none of " + strings.Join(a.IdentityRoles, ", ")
	}
	b.What = sentence(b, area{}, func(o Offender) string { return who + " may " + verbs[a.Type] + " " + o.Service })
}

// tellPolicies says which policies must not be.
func tellPolicies(b *Breach, found []*model.ServicePolicy) {
	b.Count = len(found)
	for _, p := range found[:min(len(found), maxListed)] {
		b.Listed = append(b.Listed, Offender{PolicyID: p.ID, Policy: p.Name})
	}
	b.What = sentence(b, area{}, func(o Offender) string { return "the policy " + strconv.Quote(o.Policy) + " says just that" })
}

// sentence names the first of those that are listed and how many more there are;
// nothing if there are none.
func sentence(b *Breach, of area, say func(Offender) string) string {
	var parts []string
	for _, o := range b.Listed[:min(len(b.Listed), maxNamed)] {
		parts = append(parts, say(o))
	}
	words := strings.Join(parts, ", ")
	switch more := b.Count - len(parts); {
	case of.most > len(parts):
		return fmt.Sprintf("%s and up to %d more", words, of.most-len(parts))
	case of.rough && len(b.Listed) > maxNamed:
		return words + " and more"
	case more > 0:
		return fmt.Sprintf("%s and %d more", words, more)
	}
	return words
}

// pointless refuses an assertion that is about nobody or nothing: a word that nobody
// has is most likely misspelt, and what is left of a list by deletes guards nothing.
func (t *trial) pointless(a *model.Assertion) (Breach, bool) {
	var old *model.Assertion
	if t.was != nil {
		old, _ = model.Assertions.Get(t.was.snap, a.ID)
	}
	for _, list := range [...]struct {
		field, whom string
		of          *kind.Def
		roles       func(*model.Assertion) []string
	}{
		{"identityRoles", "identity", model.Identities.Def, func(a *model.Assertion) []string { return a.IdentityRoles }},
		{"serviceRoles", "service", model.Services.Def, func(a *model.Assertion) []string { return a.ServiceRoles }},
	} {
		wrong := func(reason string, value any) (Breach, bool) {
			return Breach{ID: a.ID, Name: a.Name, What: list.field + " " + reason, field: list.field, reason: reason, value: value}, true
		}
		roles := list.roles(a)
		switch {
		case len(roles) == 0 && old == nil:
			return wrong("must name somebody; #all is everyone", nil)
		case len(roles) == 0:
			return Breach{ID: a.ID, Name: a.Name, What: "it would be about no " + list.whom + " any more; change or delete the assertion as well"}, true
		}
		fresh := old == nil || old.Semantic != a.Semantic
		for _, role := range roles {
			if old != nil && slices.Contains(list.roles(old), role) {
				continue
			}
			fresh = true
			if attribute, ok := strings.CutPrefix(role, "#"); ok && role != "#all" && !inUse(t.is.snap, list.of, attribute) {
				return wrong("has "+role+", which no "+list.whom+" has as an attribute"+nearest(t.is.snap, list.of, attribute), role)
			}
		}
		if fresh && access.Matching(t.is.snap, list.of, roles, a.Semantic).IsEmpty() {
			return wrong("finds no "+list.whom+": none has all of "+strings.Join(roles, ", ")+"; with the semantic AnyOf one of them is enough", roles)
		}
	}
	return Breach{}, false
}

func inUse(snap *state.Snapshot, of *kind.Def, attribute string) bool {
	have := snap.Tagged(of, attribute)
	return have != nil && !have.IsEmpty()
}

// nearest suggests what was meant.
func nearest(snap *state.Snapshot, of *kind.Def, attribute string) string {
	near := spell.Near(attribute, slices.Collect(snap.Attributes(of)))
	if len(near) == 0 {
		return ""
	}
	for i := range near {
		near[i] = "#" + near[i]
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}
