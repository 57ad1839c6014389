package session

import (
	"context"
	"slices"

	"netkeep/internal/auth/authn"
	"netkeep/internal/data/state"
	"netkeep/internal/model"
	"netkeep/internal/policy/access"
	"netkeep/internal/policy/posture"
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
func (s *Sessions) Report(ctx context.Context, who *authn.Caller, responses []posture.Response) ([]Prompted, error) {
	for i := range responses {
		if err := responses[i].Validate(); err != nil {
			return nil, err
		}
	}
	snap := s.State.Snapshot()
	id := who.Identity().ID
	outcome := s.Reports.Submit(snap, id, who.Session().ID, responses, s.Now())
	if !outcome.Changed {
		return nil, nil
	}
	s.Changes.Touch(snap, id)
	if err := s.remove(ctx, slices.Collect(model.Sessions.Select(snap, "identityId", id))); err != nil {
		return nil, err
	}
	if !outcome.Woken && !outcome.Unlocked {
		return nil, nil
	}
	return s.prompted(snap, who.Session(), outcome), nil
}

// prompted lists the services of the caller whose policies hold a check that
// asks for a second factor after what happened.
func (s *Sessions) prompted(snap *state.Snapshot, api *model.APISession, outcome posture.Outcome) []Prompted {
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
func (s *Sessions) Data(snap *state.Snapshot, identityID string) posture.Data {
	var sessions []posture.Session
	for api := range model.APISessions.Select(snap, "identityId", identityID) {
		sessions = append(sessions, postureSession(snap, api))
	}
	return posture.DataOf(s.Reports.Of(identityID), sessions, s.Now())
}
