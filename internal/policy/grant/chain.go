package grant

import (
	"slices"
	"sync"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/posture"
)

// Chain is what lets an API session dial or host a service, link by link. To
// give a session out, to let it go on and to explain to somebody why there is
// none are walks along it, so that they cannot come apart.
type Chain struct {
	IdentityID, ServiceID, Type string

	snap     *state.Snapshot
	policies func() []*model.ServicePolicy
	device   func() *posture.Evaluator
}

// Chain returns the one of an API session, by which nothing is known yet.
func (s *Grants) Chain(snap *state.Snapshot, api *model.APISession, serviceID, typ string) *Chain {
	return &Chain{
		IdentityID: api.IdentityID, ServiceID: serviceID, Type: typ, snap: snap,
		policies: sync.OnceValue(func() []*model.ServicePolicy { return access.Granting(snap, api.IdentityID, serviceID, typ) }),
		device:   sync.OnceValue(func() *posture.Evaluator { return s.Device(snap, api) }),
	}
}

// Link is a part of a chain: nil if it holds, and else what a client is told.
type Link func(c *Chain) error

// The links that a session needs to go on, and those that it needs to begin.
// That no router is left does not end one: there may soon be another.
var (
	ToGoOn  = []Link{(*Chain).Granted, (*Chain).Cleared}
	ToBegin = append(ToGoOn[:len(ToGoOn):len(ToGoOn)], (*Chain).Routed)
	// ToWait are those that a session needs to begin whose client meets with it the router
	// that it reports its device to.
	ToWait = []Link{(*Chain).Granted, (*Chain).Routed}
)

// Refusal is what the first of the links says that does not hold.
func (c *Chain) Refusal(links ...Link) error {
	for _, link := range links {
		if err := link(c); err != nil {
			return err
		}
	}
	return nil
}

// Granted holds if a policy gives the service, or if the identity is an admin,
// who needs none. A service that the identity cannot see does not exist for it.
func (c *Chain) Granted() error {
	identity, known := model.Identities.Get(c.snap, c.IdentityID)
	_, there := model.Services.Get(c.snap, c.ServiceID)
	switch {
	case !known || !there:
		return fault.NotFound("service", c.ServiceID)
	case len(c.Policies()) > 0 || identity.Admin():
		return nil
	case access.MayDial(c.snap, identity.ID, c.ServiceID) || access.MayBind(c.snap, identity.ID, c.ServiceID):
		return fault.Invalid("ServiceId", "no policy gives the permission to "+c.Type+" it", c.ServiceID)
	}
	return fault.NotFound("service", c.ServiceID)
}

// Policies are those that give the service, by id.
func (c *Chain) Policies() []*model.ServicePolicy { return c.policies() }

// Cleared holds if the device passes all checks of one of the policies that
// give the service, or if there is none and so nothing to pass.
func (c *Chain) Cleared() error {
	for _, p := range c.Policies() {
		if c.Passes(p) {
			return nil
		}
	}
	if len(c.Policies()) == 0 {
		return nil
	}
	return fault.New(fault.CodePosture, "the device does not pass the posture checks of any policy that gives this service")
}

// Supposed is Cleared for a device that reports to routers which judge it: it must pass
// what does not go by reports. Whether a second factor was shown is known here.
func (c *Chain) Supposed() error {
	for _, p := range c.Policies() {
		factors := slices.DeleteFunc(slices.Clone(access.Checks(c.snap, p)), func(check *model.PostureCheck) bool { return check.TypeID != posture.TypeMFA })
		if c.device().Passing(factors) {
			return nil
		}
	}
	return c.Cleared()
}

// Passes reports whether the device passes all checks of a policy.
func (c *Chain) Passes(p *model.ServicePolicy) bool {
	return len(p.PostureCheckRoles) == 0 || c.device().Passing(access.Checks(c.snap, p))
}

// Meets reports whether the device would pass all checks of a policy if each were
// enforced.
func (c *Chain) Meets(p *model.ServicePolicy) bool {
	return len(p.PostureCheckRoles) == 0 || c.device().Meeting(access.Checks(c.snap, p))
}

// Told is what would stand against each of the policies if every check were enforced,
// for a device that passes; nothing if one of them would let it pass all the same.
func (c *Chain) Told() []posture.PolicyFailure {
	if slices.ContainsFunc(c.Policies(), c.Meets) {
		return nil
	}
	return c.failures()
}

// failures is what stands against each of the policies.
func (c *Chain) failures() (all []posture.PolicyFailure) {
	for _, p := range c.Policies() {
		all = append(all, c.device().Failure(p, access.Checks(c.snap, p)))
	}
	return all
}

// Check judges one check on the device.
func (c *Chain) Check(check *model.PostureCheck) posture.Result { return c.device().Check(check) }

// Routed holds if there is an edge router that identity and service may both
// use.
func (c *Chain) Routed() error {
	if c.Routers().IsEmpty() {
		return fault.New(fault.CodeNoRouters, "the identity and the service share no edge router; ask for an explanation to see what is missing")
	}
	return nil
}

// Routers are the edge routers that identity and service may both use.
func (c *Chain) Routers() *cow.Bitmap { return access.CommonRouters(c.snap, c.IdentityID, c.ServiceID) }
