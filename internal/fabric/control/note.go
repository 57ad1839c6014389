package control

import (
	"errors"
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// note has the audit log tell of a router.
func (r *Router) note(event *audit.Event, address, reason string) {
	r.all.opt.Recorder.Note(audit.Fact{
		Event: event, By: state.Author{Kind: model.Routers.Name, ID: r.ID, Name: r.Name, Source: address},
		Target: audit.Target{Kind: model.Routers.Name, ID: r.ID, Name: r.Name}, Reason: reason,
	})
}

// noteRefused has it tell of somebody who was not let in. Who said nothing that a
// router says, as those do who look whether anybody listens, tried nothing; and who
// comes while the controller stops has done nothing wrong.
func (rs *Routers) noteRefused(address string, err error) {
	why := []error{errUnknown, errDisabled, errDeleted, errGroup, errVersion, errMisbehaves, errRestless}
	if !slices.ContainsFunc(why, func(known error) bool { return errors.Is(err, known) }) {
		return
	}
	by := state.Nobody
	by.Source = address
	rs.opt.Recorder.Note(audit.Fact{Event: audit.RouterRefused, By: by, Reason: clip(err.Error())})
}

// said is why a connection ended.
func said(reason error) string {
	if reason == nil {
		return ""
	}
	return clip(reason.Error())
}
