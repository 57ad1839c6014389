// Package request is asking for access: who may ask for a service, who may decide,
// and what comes of it. To approve is one write, in which the request is settled and
// its grant made, and everybody who counts is looked at again as they are at that
// moment. That a grant ends is validity's to see to, and what it lets somebody use is
// access's. It must not import rest or api.
package request

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Decide is the power to decide on requests without having been named as an approver.
const Decide = "access-request:decide"

// What there may be at most.
const (
	MaxPending = 10     // that wait, of one identity
	MaxOpen    = 10_000 // that wait, of all
	MaxKept    = 50     // of one identity; what is decided goes first
	// keepAtLeast is how long one is kept that is decided though there are many, so
	// that nobody asks and withdraws all day long.
	keepAtLeast = time.Hour
)

// Desk takes requests and decides on them.
type Desk struct {
	State *state.State
	// View, if set, is a snapshot as it is now by the clock: who decides by an attribute
	// that was given for a time does so until then.
	View func(*state.Snapshot) *state.Snapshot
}

// timely is what there is in a write, by the clock.
func (d Desk) timely(tx *state.Tx) *state.Snapshot {
	if d.View == nil {
		return tx.Snapshot
	}
	return d.View(tx.Snapshot)
}

// Asked is what somebody asks for.
type Asked struct {
	Service string // id or name
	Minutes int
	Reason  string
}

// Ask notes a request of an identity.
func (d Desk) Ask(ctx context.Context, by state.Author, identity string, asked Asked) (q *model.AccessRequest, err error) {
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		service, ok := offered(tx, asked.Service)
		if !ok { // the same whether there is none, or one that cannot be asked for
			return fault.On(fault.CodeNotFound, "service", "names no service that can be asked for", asked.Service)
		}
		if longest := service.Requests.LongestMinutes; asked.Minutes < 1 || asked.Minutes > longest {
			return fault.Invalid("minutes", fmt.Sprintf("must be 1 to %d for this service", longest), asked.Minutes)
		}
		if asked.Reason == "" {
			return fault.Invalid("reason", "must say what it is for", asked.Reason)
		}
		if err := room(tx, identity, service); err != nil {
			return err
		}
		q = &model.AccessRequest{
			IdentityID: identity, ServiceID: service.ID, Attribute: service.Requests.Attribute, Minutes: asked.Minutes, Reason: asked.Reason,
			Standing: model.Pending, ExpiresAt: tx.Now().Add(model.RequestLife),
		}
		return model.AccessRequests.Create(tx, q)
	})
	return q, err
}

// offered returns the service with an id or name, if it can be asked for.
func offered(r kind.Reader, word string) (*model.Service, bool) {
	if s, ok := model.Services.Get(r, word); ok && s.Requests != nil {
		return s, true
	}
	s, ok := model.Services.Find(r, "name", word)
	return s, ok && s.Requests != nil
}

// room refuses one request too many, and forgets what was decided long ago where that
// makes room.
func room(tx *state.Tx, identity string, service *model.Service) error {
	var own, settled []*model.AccessRequest
	pending := 0
	for q := range model.AccessRequests.Select(tx, "identityId", identity) {
		own = append(own, q)
		switch {
		case !q.Pending():
			settled = append(settled, q)
		case q.ServiceID == service.ID:
			return fault.New(fault.CodeInvalid, "you have asked for this service already, in the request "+q.ID+"; wait for an answer, or withdraw it")
		default:
			pending++
		}
	}
	ranked := tx.Ranked(model.AccessRequests.Def)
	switch {
	case pending >= MaxPending:
		return fault.New(fault.CodeInvalid, fmt.Sprintf("%d of your requests wait for an answer, and no more may; withdraw one", pending))
	case ranked.Before(model.ToExpire+"~")-ranked.Before(model.ToExpire) >= MaxOpen:
		return fault.Later("as many requests wait for an answer as may; ask later", time.Minute)
	case len(own) < MaxKept:
		return nil
	}
	oldest := slices.MinFunc(settled, func(a, b *model.AccessRequest) int {
		return cmp.Or(decided(a).Compare(decided(b)), cmp.Compare(a.ID, b.ID))
	})
	if wait := decided(oldest).Add(keepAtLeast).Sub(tx.Now()); wait > 0 {
		return fault.Later("you have asked too often; ask later", wait)
	}
	return model.AccessRequests.Delete(tx, oldest.ID)
}

// decided is when a request ceased to be pending.
func decided(q *model.AccessRequest) time.Time {
	if q.DecidedAt == nil {
		return q.CreatedAt.Time()
	}
	return *q.DecidedAt
}

// Withdraw takes an identity's own request back, or gives back what it was granted
// for it.
func (d Desk) Withdraw(ctx context.Context, by state.Author, identity, id string) error {
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		q, ok := model.AccessRequests.Get(tx, id)
		if !ok || q.IdentityID != identity {
			return fault.NotFound(model.AccessRequests.Name, id)
		}
		if g, is := model.Grants.Get(tx, q.GrantID); is && q.Standing == model.Approved && g.Standing != model.Over {
			if err := model.Grants.Delete(tx, g.ID); err != nil {
				return err
			}
		} else if err := open(q, tx.Now()); err != nil {
			return err
		}
		return settle(tx, id, by, model.Withdrawn, func(*model.AccessRequest) {})
	})
}

// Deny settles a request so that nothing comes of it.
func (d Desk) Deny(ctx context.Context, by state.Author, identity, id, why string) error {
	return d.State.Update(ctx, by, func(tx *state.Tx) error {
		if _, err := d.decidable(tx, identity, id); err != nil {
			return err
		}
		return settle(tx, id, by, model.Denied, func(q *model.AccessRequest) { q.Answer = why })
	})
}

// Approve is the word of one of those who may decide. With the last that is needed the
// identity has what it asked for.
func (d Desk) Approve(ctx context.Context, by state.Author, identity, id string) (is *model.AccessRequest, err error) {
	err = d.State.Update(ctx, by, func(tx *state.Tx) error {
		if err := d.approve(tx, by, identity, id); err != nil {
			return err
		}
		is, _ = model.AccessRequests.Get(tx, id)
		return nil
	})
	return is, err
}

func (d Desk) approve(tx *state.Tx, by state.Author, identity, id string) error {
	q, err := d.decidable(tx, identity, id)
	if err != nil {
		return err
	}
	service, _ := model.Services.Get(tx, q.ServiceID)
	if longest := service.Requests.LongestMinutes; q.Minutes > longest {
		return fault.New(fault.CodeInvalid, fmt.Sprintf("the service allows %d minutes at most by now, and this asks for %d; it has to be asked for anew", longest, q.Minutes))
	}
	view := d.timely(tx)
	counted := slices.DeleteFunc(slices.Clone(q.Approvals), func(a model.Approval) bool {
		return a.IdentityID != identity && !May(view, q, a.IdentityID, tx.Now())
	})
	if slices.ContainsFunc(counted, func(a model.Approval) bool { return a.IdentityID == identity }) {
		return fault.New(fault.CodeInvalid, "you have approved it already; somebody else has to as well")
	}
	counted = append(counted, model.Approval{IdentityID: identity, Name: by.Name, At: tx.Now()})
	if len(counted) < service.Requests.Approvals {
		return model.AccessRequests.Edit(tx, id, func(q *model.AccessRequest) error {
			q.Approvals = counted
			return nil
		})
	}
	g := &model.Grant{
		Meta: kind.Meta{ID: tx.NewID()}, IdentityID: q.IdentityID, Attribute: q.Attribute, Reason: q.Reason,
		ValidUntil: tx.Now().Add(time.Duration(q.Minutes) * time.Minute), GrantedBy: by.Name, GrantedByID: identity, RequestID: id,
	}
	if err := model.Grants.Create(tx, g); err != nil {
		return err
	}
	return settle(tx, id, by, model.Approved, func(q *model.AccessRequest) { q.Approvals, q.GrantID = counted, g.ID })
}

// settle notes who had the last word, and which.
func settle(tx *state.Tx, id string, by state.Author, standing string, more func(*model.AccessRequest)) error {
	return model.AccessRequests.Edit(tx, id, func(q *model.AccessRequest) error {
		q.Settle(standing, tx.Now())
		q.DecidedBy, q.DecidedByID = by.Name, by.ID
		more(q)
		return nil
	})
}

// decidable returns a request that an identity may decide on now.
func (d Desk) decidable(tx *state.Tx, identity, id string) (*model.AccessRequest, error) {
	q, ok := model.AccessRequests.Get(tx, id)
	if ok && q.IdentityID == identity {
		return nil, fault.New(fault.CodeInvalid, "nobody decides on a request of their own; ask one of those who may")
	}
	if !ok || !May(d.timely(tx), q, identity, tx.Now()) {
		return nil, fault.NotFound(model.AccessRequests.Name, id)
	}
	return q, open(q, tx.Now())
}

// open refuses a request that is not pending any more.
func open(q *model.AccessRequest, now time.Time) error {
	standing := q.Standing
	if q.Pending() && !now.Before(q.ExpiresAt) {
		standing = model.Expired
	}
	if standing != model.Pending {
		return fault.New(fault.CodeInvalid, "the request is "+standing+", and nothing can be decided on it any more")
	}
	return nil
}

// May reports whether an identity is among those who decide on a request: it is not
// its own, and it has the attribute that the service names, or the power. Who is
// disabled is not.
func May(r kind.Reader, q *model.AccessRequest, identity string, now time.Time) bool {
	service, asked := model.Services.Get(r, q.ServiceID)
	who, there := model.Identities.Get(r, identity)
	if !asked || service.Requests == nil || !there || who.ID == q.IdentityID || who.Disabled(now) {
		return false
	}
	return who.Has(r, service.Requests.Approvers, now) || power.Of(r, who).Over(Decide).Has(model.AccessRequests.Def, q)
}

// Seen yields the requests that are an identity's own, and those that wait for it to
// decide, by id.
func Seen(snap *state.Snapshot, identity string, now time.Time) func(yield func(kind.Record) bool) {
	return func(yield func(kind.Record) bool) {
		var all []*model.AccessRequest
		all = slices.AppendSeq(all, model.AccessRequests.Select(snap, "identityId", identity))
		for q := range model.AccessRequests.Select(snap, "standing", model.Pending) {
			if May(snap, q, identity, now) {
				all = append(all, q)
			}
		}
		slices.SortFunc(all, func(a, b *model.AccessRequest) int { return cmp.Compare(a.ID, b.ID) })
		for _, q := range all {
			if !yield(q) {
				return
			}
		}
	}
}
