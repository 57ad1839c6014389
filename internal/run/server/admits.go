package server

import (
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// admitsFor is how long it is believed whether admins can log in with a signer: who
// asks may be anybody, as often as it likes.
const admitsFor = 5 * time.Second

// admits says of signers whether any admin can log in with their tokens, for pages that
// nobody else has a use for.
type admits struct {
	state *state.State
	now   func() time.Time

	mu     sync.Mutex
	known  map[string]bool // by signer
	until  time.Time
	of     state.Edition     // of identities
	admins []*model.Identity // few of many
}

// Admin reports whether any admin can log in with tokens of a signer.
func (a *admits) Admin(signer string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); !now.Before(a.until) {
		a.known, a.until = map[string]bool{}, now.Add(admitsFor)
	}
	is, ok := a.known[signer]
	if !ok {
		is = a.look(signer)
		a.known[signer] = is
	}
	return is
}

func (a *admits) look(signer string) bool {
	snap, under := a.state.Snapshot(), map[string]bool{}
	for p := range model.AuthPolicies.All(snap) {
		if rules := p.Primary.ExtJWT; rules.Allowed && (len(rules.AllowedSigners) == 0 || slices.Contains(rules.AllowedSigners, signer)) {
			under[p.ID] = true
		}
	}
	if len(under) == 0 {
		return false
	}
	return slices.ContainsFunc(a.adminsIn(snap), func(i *model.Identity) bool {
		return under[i.AuthPolicyID] && i.NamedBy(signer) && !i.Disabled(a.now())
	})
}

// adminsIn lists the admins. All identities are looked at for that, and so only if any of
// them has changed.
func (a *admits) adminsIn(snap *state.Snapshot) []*model.Identity {
	now := snap.Edition(model.Identities.Def)
	if a.of == now {
		return a.admins
	}
	a.of, a.admins = now, nil
	for i := range model.Identities.All(snap) {
		if i.Admin() {
			a.admins = append(a.admins, i)
		}
	}
	return a.admins
}
