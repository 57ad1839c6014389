package grant

import (
	"context"
	"slices"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/posture"
)

// Prompted is a service that a wake or an unlock put under a deadline: its
// checks ask for a second factor again.
type Prompted struct {
	Service *model.Service
	Check   *model.PostureCheck
	posture.Result
}

// Report takes what a client says of its device. Sessions that the device has
// no right to any more are gone when it returns.
func (s *Grants) Report(ctx context.Context, by state.Author, who *authn.Caller, responses []posture.Response) ([]Prompted, error) {
	for i := range responses {
		if err := responses[i].Validate(); err != nil {
			return nil, err
		}
	}
	outcome, err := s.take(ctx, by, who.Session().ID, responses)
	if err != nil || !outcome.Woken && !outcome.Unlocked {
		return nil, err
	}
	return s.prompted(s.Timely(s.State.Snapshot()), who.Session(), outcome), nil
}

// Told is Report for a device that does not know which checks ask: what it says
// of a program goes to those of its identity's policies that name it.
func (s *Grants) Told(ctx context.Context, by state.Author, api *model.APISession, responses []posture.Response) error {
	var all []posture.Response
	var checks []*model.PostureCheck
	for i := range responses {
		if err := responses[i].Validate(); err != nil {
			return err
		}
		if responses[i].TypeID != posture.TypeProcess {
			all = append(all, responses[i])
			continue
		}
		if checks == nil {
			checks = checksOf(s.Timely(s.State.Snapshot()), api.IdentityID)
		}
		all = append(all, posture.Ask(checks, responses[i])...)
	}
	_, err := s.take(ctx, by, api.ID, all)
	return err
}

// checksOf returns the checks of all policies of an identity, each once.
func checksOf(snap *state.Snapshot, identityID string) []*model.PostureCheck {
	checks, seen := []*model.PostureCheck{}, map[string]bool{}
	for _, p := range access.Services(snap, identityID).Policies {
		for _, c := range access.Checks(snap, p) {
			if !seen[c.ID] {
				seen[c.ID] = true
				checks = append(checks, c)
			}
		}
	}
	return checks
}

// take stores what a device says, and removes the sessions that it has no right
// to any more.
func (s *Grants) take(ctx context.Context, by state.Author, apiSessionID string, responses []posture.Response) (posture.Outcome, error) {
	outcome, err := s.keep(ctx, by, apiSessionID, responses)
	if err != nil || !outcome.Changed {
		return outcome, err
	}
	return outcome, s.remove(ctx, slices.Collect(model.Sessions.Select(s.State.Snapshot(), "apiSessionId", apiSessionID)))
}

// keep stores what is new of the device that uses an API session. Most reports
// say what is known.
func (s *Grants) keep(ctx context.Context, by state.Author, apiSessionID string, responses []posture.Response) (outcome posture.Outcome, err error) {
	submit := func(r kind.Reader) (old, next *model.Device) {
		old, _ = model.Devices.Get(r, apiSessionID)
		next, outcome = posture.Submit(r, old, apiSessionID, responses, s.Now())
		return old, next
	}
	if _, next := submit(s.State.Snapshot()); next == nil {
		return outcome, nil
	}
	err = s.State.UpdateSessions(ctx, by, func(tx *state.Tx) error {
		if _, ok := model.APISessions.Get(tx, apiSessionID); !ok {
			return errEnded
		}
		old, next := submit(tx)
		switch {
		case next == nil:
			return nil
		case old == nil:
			return model.Devices.Create(tx, next)
		}
		return model.Devices.Edit(tx, apiSessionID, func(d *model.Device) error {
			next.Meta = d.Meta
			*d = *next
			return nil
		})
	})
	return outcome, err
}

// prompted lists the services of the caller whose policies hold a check that
// asks for a second factor after what happened.
func (s *Grants) prompted(snap *state.Snapshot, api *model.APISession, outcome posture.Outcome) []Prompted {
	device := s.Device(snap, api)
	var all []Prompted
	seen := map[string]bool{}
	for _, p := range access.Services(snap, api.IdentityID).Policies {
		for _, check := range access.Checks(snap, p) {
			if !outcome.Prompts(check) {
				continue
			}
			for rec := range snap.Within(model.Services.Def, access.ServicePolicyServices.Members(snap, p)) {
				service := rec.(*model.Service)
				if key := service.ID + "." + check.ID; !seen[key] {
					seen[key] = true
					all = append(all, Prompted{service, check, device.Check(check)})
				}
			}
		}
	}
	return all
}

// Data is what is known of the devices of an identity.
func (s *Grants) Data(snap *state.Snapshot, identityID string) posture.Data {
	var devices []*posture.Evaluator
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		devices = append(devices, s.Device(snap, api))
	}
	return posture.DataOf(devices)
}
