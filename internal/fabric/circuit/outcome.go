package circuit

import (
	"context"
	"errors"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/wire/message"
)

// Dial makes a circuit from a router to where a service is hosted, and tells how
// that went. That the host did not take it is a refusal with the host's reason.
func (c *Circuits) Dial(ctx context.Context, r *control.Router, req Request) (*Circuit, *Answer, error) {
	began := c.Now()
	made, answer, err := c.dial(ctx, r, req)
	took := c.Now().Sub(began)
	c.Dialled(outcome(err), took)
	if failed, ok := errors.AsType[*failure](err); ok {
		err = message.Unreached(failed.code, failed.Error())
	}
	c.note(r, req, made, took, err)
	return made, answer, err
}

// note has the audit log tell of a dial: who wanted what, and why not if so. That the
// controller or a router has too much to do is nobody's refusal.
func (c *Circuits) note(r *control.Router, req Request, made *Circuit, took time.Duration, err error) {
	snap := c.State.Snapshot()
	f := audit.Fact{Event: audit.CircuitsMade, By: state.Author{Kind: model.Routers.Name, ID: r.ID, Name: r.Name}}
	switch {
	case err != nil && outcome(err) == "router", errors.Is(err, context.Canceled):
		return
	case err != nil:
		f.Event, f.Reason = audit.CircuitRefused, err.Error()
		f.By.Source = r.Remote()
	case c.Each:
		f.Event, f.Reason = audit.CircuitMade, "circuit "+made.ID
	}
	if s, ok := c.Sessions.Recognise(snap, req.SessionToken); ok {
		f.By.Kind, f.By.ID, f.By.Name = model.Identities.Def.Name, s.IdentityID, ""
		if i, ok := model.Identities.Get(snap, s.IdentityID); ok {
			f.By.Name = i.Name
		}
		f.Target = audit.Target{Kind: model.Services.Def.Name, ID: s.ServiceID}
		if service, ok := model.Services.Get(snap, s.ServiceID); ok {
			f.Target.Name = service.Name
		}
	}
	c.Recorder.Note(f)
	told := herald.Event{Name: f.Target.Name, By: f.By, Detail: took}
	if err != nil {
		c.tell("refused", f.Reason, nil, told)
	} else {
		c.tell("created", "", made, told)
	}
}

// tell tells those who look of a circuit; nil of one that never was.
func (c *Circuits) tell(verb, reason string, circuit *Circuit, e herald.Event) {
	if !c.Herald.Wanted(model.Circuits.Def) {
		return
	}
	e.Ref.Def, e.Verb, e.Reason, e.At = model.Circuits.Def, verb, reason, c.Now()
	if circuit != nil {
		e.Ref.ID, e.Record = circuit.ID, &circuit.Circuit
		snap := c.State.Snapshot()
		if service, ok := model.Services.Get(snap, circuit.ServiceID); ok {
			e.Name = service.Name
		}
		if i, ok := model.Identities.Get(snap, circuit.IdentityID); ok {
			e.By = state.Author{Kind: model.Identities.Def.Name, ID: i.ID, Name: i.Name}
		}
	}
	c.Herald.Tell(e)
}

// outcome is why there is no circuit, in one of a few words; empty if there is.
func outcome(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[*failure](err); ok {
		return "host"
	}
	refused, ok := permit.AsRefusal(err)
	if !ok {
		return "internal"
	}
	switch refused.Code {
	case message.CodeInvalidTerminator:
		return "no-host"
	case message.CodeEncryptionMissing:
		return "encryption"
	case message.CodeInternal:
		return "router"
	}
	return "refused"
}

// counted tells those who look what became of an attempt to lead a circuit to a host;
// nil if there was none.
func (c *Circuits) counted(serviceID string, t *model.Terminator, err error) {
	if !c.Herald.Wanted(herald.Dials) {
		return
	}
	verbs, at := []string{herald.DialElse}, ""
	if failed, ok := errors.AsType[*failure](err); ok && t != nil {
		verbs, at = failed.verbs(t), t.ID
	} else if err == nil {
		verbs, at = []string{herald.DialMade}, t.ID
	}
	for _, verb := range verbs {
		to := at
		if verb == herald.DialElse {
			to = ""
		}
		c.Herald.Tell(herald.Event{Ref: state.Ref{Def: herald.Dials}, Verb: verb, At: c.Now(), Detail: herald.Dial{ServiceID: serviceID, TerminatorID: to}})
	}
}

// verbs are the words for why a router did not do its part on the way to a host.
func (f *failure) verbs(t *model.Terminator) (verbs []string) {
	if f.said == nil {
		return []string{herald.DialTimedOut}
	}
	switch f.code {
	case message.RouteInvalidTerminator:
		verbs = append(verbs, herald.HostUnknown)
		if t.Binding != terminator.BindingEdge && t.Binding != terminator.BindingTunnel {
			verbs[0] = herald.HostMisconfigured
		}
	case message.RouteMisconfigured:
		verbs = append(verbs, herald.HostMisconfigured)
	case message.RouteTimeout:
		verbs = append(verbs, herald.HostTimedOut)
	case message.RouteRefused:
		verbs = append(verbs, herald.HostRefused)
	default:
		verbs = append(verbs, herald.DialElse)
	}
	if f.router.ID == t.RouterID {
		verbs = append(verbs, herald.DialFailed)
	}
	return verbs
}
