package api

import (
	"errors"
	"strings"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/rest"
)

// machine is an authn.Machine in the terms of package rest.
type machine struct{ *authn.Machine }

// Access is that of somebody who has shown everything; what is about a session or
// an identity of one's own the gate refuses before.
func (machine) Access() rest.Access { return rest.Full }

// Over is the part of the network that the machine has a power over.
func (m machine) Over(snap *state.Snapshot, need string) rest.Extent {
	return over(snap, m.Power(snap), need)
}

// Knows reports whether the machine knows a record because it is its owner or its role.
func (m machine) Knows(snap *state.Snapshot, rec kind.Record) bool {
	return power.Known(snap, m.Author(), rec)
}

// over is the part of the network that somebody with some power has one of it over.
func over(snap *state.Snapshot, mine power.Set, need string) rest.Extent {
	all := mine.Over(need)
	if !strings.HasSuffix(need, ":reveal") || mine.Covers(power.Whole()) {
		return all
	}
	return revealed{all, snap, mine}
}

var (
	errManyBearers = fault.New(fault.CodeUnauthorized, "a token is sent alone, in one Authorization header")
	errBothShown   = fault.New(fault.CodeUnauthorized, "the request carries a token and a session; send one of them")
	errTokenElse   = fault.New(fault.CodeUnauthorized, "tokens of machines are for the Management API and the Fabric API")
	errNoSelf      = fault.New(fault.CodeUnauthorized, "this is about the session or the identity of whoever asks, and a token of a machine has neither; log in")
	errMangled     = fault.New(fault.CodeUnauthorized, "the token is not whole: some of it is missing or was changed on the way here")
)

// byMachine recognises a machine; is reports whether the request shows what only
// machines do.
func (s *Service) byMachine(c *rest.Call) (who rest.Caller, is bool, err error) {
	shown := c.Authorizations()
	secret := false
	for _, value := range shown {
		secret = secret || strings.Contains(value, authn.SecretPrefix)
	}
	switch {
	case c.Open() || len(shown) == 0:
		return nil, false, nil
	case secret:
		m, of, err := s.bySecret(c, shown)
		if err != nil {
			return nil, true, s.refuseSecret(c, of, err)
		}
		return machine{m}, true, nil
	case c.ShowsSession() || !c.OfPower() || c.Root() == ClientRoot || !authn.Bound(c.Snap):
		return nil, false, nil
	}
	if m := s.Machines.ByJWT(c.Context(), c.Snap, c.Bearer()); m != nil {
		return machine{m}, true, nil
	}
	return nil, false, nil
}

// bySecret recognises who shows the secret of a token, where those may be.
func (s *Service) bySecret(c *rest.Call, shown []string) (*authn.Machine, *model.Token, error) {
	secret := c.Bearer()
	switch {
	case len(shown) != 1 || !strings.HasPrefix(secret, authn.SecretPrefix):
		return nil, nil, errManyBearers
	case c.ShowsSession():
		return nil, nil, errBothShown
	case c.Root() == ClientRoot:
		return nil, nil, errTokenElse
	case !authn.IsSecret(secret):
		return nil, nil, errMangled
	}
	if !authn.Known(c.Snap, secret) {
		if _, err := c.LookAgain(); err != nil {
			return nil, nil, err
		}
	}
	m, of, err := s.Machines.BySecret(c.Snap, secret, c.From())
	if err == nil && !c.OfPower() {
		return nil, of, errNoSelf
	}
	return m, of, err
}

// refuseSecret notes that a secret was refused. Whoever tries many has to wait; a
// right one never has to.
func (s *Service) refuseSecret(c *rest.Call, of *model.Token, err error) error {
	reason, ok := Refusal(err)
	if !ok || c.Caller != nil || errors.Is(err, errNoSelf) {
		return err
	}
	if of == nil {
		if wait := s.Refused.Take(limit.At(c.From())); wait > 0 {
			return fault.Later("there were too many wrong tokens from this address; wait and try again", wait)
		}
	}
	f := audit.Fact{Event: audit.TokenRefused, By: c.Author(), Reason: reason}
	if of != nil {
		f.Target = audit.To(model.Tokens.Def, of)
	}
	s.Recorder.Note(f)
	return err
}
