package management

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/assertion"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// maxChanges is how large the body of a list of changes may be.
const maxChanges = 64 << 20

// changesIn is a list of changes.
type changesIn struct {
	Changes []changeIn `json:"changes" kind:"required,range=1..10000" doc:"What to change, in this order. Either all of it is done or nothing."`
	Expect  string     `json:"expect" doc:"Digest of a plan: nothing is done if the outcome would be another than the plan's. Empty to do it whatever comes of it."`
	ID      string     `json:"id" doc:"What the sender calls the list, 8 to 64 letters, digits, - and _, a new one for each, so that it can ask what became of it if the answer is lost: see settleChanges. Nothing is made twice under one id. Empty if the sender will not ask."`
}

// changeIn is one of them.
type changeIn struct {
	Op     string         `json:"op" kind:"required,enum=create|update|patch|delete" doc:"What to do: update replaces all fields, patch changes those that are given."`
	Kind   string         `json:"kind" kind:"required" doc:"What kind of record to do it to, such as service-policy or service-policies."`
	Target string         `json:"target" doc:"Name or id of the record; left out for create."`
	Body   jsontext.Value `json:"body" doc:"What the kind's own operation takes, except that names may stand for the ids of other records; left out for delete."`
}

// verbs are what the words of changes mean.
var verbs = map[string]kind.Verbs{"create": kind.Creates, "update": kind.Replaces, "patch": kind.Patches, "delete": kind.Deletes}

// planParam asks for what would be.
var planParam = rest.ChoiceParam("plan", "Whether to do nothing and only say what would come of it; false if not given.", strings.EqualFold, "true", "false")

// changes is the operation that makes lists of changes.
type changes struct {
	kinds map[string]*rest.Mounted // by name and path
	names []string                 // of the kinds
	turn  chan struct{}            // held by the list that is worked on
}

// mountChanges offers to make many changes at once, or to look at what would
// come of them.
func mountChanges(a *rest.API, s *api.Service, mounted map[*kind.Def]*rest.Mounted) {
	ch := &changes{kinds: map[string]*rest.Mounted{}, turn: make(chan struct{}, 1)}
	for _, d := range model.All.Defs {
		if m := mounted[d]; m != nil && m.Verbs.Has(kind.CRUD) {
			ch.add(m)
		}
	}
	ch.add(&rest.Mounted{Resource: rest.Resource{
		Kind: model.ServiceConfigs.Def, Auth: rest.Admin, Verbs: kind.Creates | kind.Deletes,
		Identify: func(r kind.Reader, rec kind.Record) error { return rec.(*model.ServiceConfig).Identify(r) },
	}})
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/changes", Name: "applyChanges", Tag: "changes",
		Doc:    "Create, change and delete many records at once, all of them or none, or see what would come of it.",
		Auth:   rest.Admin,
		Need:   rest.AnyPower,
		Params: []rest.Parameter{planParam}, MaxBody: maxChanges, Answer: changesSchema(),
		Bodies: &limit.Bodies{Bytes: maxChanges + 1, Max: 4, Share: 100, Now: s.Sessions.Now},
	}, ch.handle)
	mountSettle(a)
}

func (ch *changes) add(m *rest.Mounted) {
	ch.kinds[m.Kind.Name], ch.kinds[m.Kind.Path] = m, m
	ch.names = append(ch.names, m.Kind.Name)
}

// handle takes its turn, since a list may be large, and makes the changes.
func (ch *changes) handle(c *rest.Call, in changesIn) (changesOut, error) {
	select {
	case ch.turn <- struct{}{}:
		defer func() { <-ch.turn }()
	case <-c.Context().Done():
		return changesOut{}, c.Context().Err()
	}
	if in.ID != "" {
		if err := checkChangesID(in.ID); err != nil {
			return changesOut{}, err
		}
	}
	l, err := ch.read(c, in.Changes)
	if err != nil {
		return changesOut{}, err
	}
	l.id = in.ID
	if len(in.Changes) == 1 {
		l.operation = ch.kinds[in.Changes[0].Kind].Operation(in.Changes[0].Op)
	}
	switch {
	case planParam.Of(c) == "true":
		err = l.plan(c)
	case in.Expect != "":
		err = l.applyAsPlanned(c, in.Expect)
	default:
		err = l.apply(c)
	}
	if err == nil {
		l.tell(c.Log(), c.Author(), in)
		l.out.keepTo(c)
	}
	return l.out, err
}

// errSlow refuses a list that takes too long. No part of it was made.
var errSlow = fault.New(fault.CodeTimeout, "the changes take longer than one request may, and none was made; send them in several lists")

// read reads the changes and prepares each.
func (ch *changes) read(c *rest.Call, in []changeIn) (*list, error) {
	l := &list{ctx: c.Context(), in: in, steps: make([]*rest.Step, len(in))}
	for i, change := range in {
		if c.Context().Err() != nil {
			return nil, errSlow
		}
		step, err := ch.step(c, i, change)
		if err != nil {
			return nil, at(i, err)
		}
		l.steps[i] = step
	}
	return l, nil
}

func (ch *changes) step(c *rest.Call, i int, in changeIn) (*rest.Step, error) {
	m, verb := ch.kinds[in.Kind], verbs[in.Op]
	switch {
	case m == nil:
		return nil, ch.unknown(in.Kind)
	case !m.Verbs.Has(verb):
		return nil, fault.Invalid("op", "is nothing that can be done to a "+m.Kind.Name+" in a list of changes", in.Op)
	case verb == kind.Creates && in.Target != "":
		return nil, fault.Invalid("target", "must be left out of a create: its name is in the body, and its id is made", in.Target)
	case verb != kind.Creates && in.Target == "":
		return nil, fault.Invalid("target", "is required by "+in.Op, nil)
	case verb == kind.Deletes && len(in.Body) > 0:
		return nil, fault.Invalid("body", "must be left out of a delete", nil)
	case verb == kind.Deletes:
		return m.Step(c, verb, in.Target, kind.Body{})
	case len(in.Body) == 0:
		return nil, fault.Invalid("body", "is required by "+in.Op, nil)
	}
	body, err := c.Part("changes."+strconv.Itoa(i)+".body", in.Body)
	if err != nil {
		return nil, err
	}
	step, err := m.Step(c, verb, in.Target, body)
	if e, ok := errors.AsType[*fault.Error](err); ok {
		err = rest.Within("body", e)
	}
	return step, err
}

// unknown refuses a kind that lists of changes do not know.
func (ch *changes) unknown(name string) error {
	reason := "must be one of " + strings.Join(ch.names, ", ")
	if near := spell.Near(name, ch.names); len(near) > 0 {
		reason = "is no kind that can be changed here; did you mean " + near[0] + "?"
	}
	return fault.Invalid("kind", reason, name)
}

// at says in which of the changes something is wrong.
func at(i int, err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return rest.Within("changes."+strconv.Itoa(i), e)
	}
	return err
}

// list is changes that were read and prepared, and what came of them when they
// were last made, or tried.
type list struct {
	ctx       context.Context
	id        string // what the sender calls it; empty for nothing
	operation string // that makes the same, if it is one change
	in        []changeIn
	steps     []*rest.Step
	done      []done
	whole     state.Step
	out       changesOut
}

// done is a record before and after a change; nil where there is none.
type done struct{ before, after kind.Record }

// run makes the changes in a write. It may run again, and says the same of the
// same state: a plan is a write that is not stored.
func (l *list) run(tx *state.Tx) error {
	l.done = make([]done, len(l.steps))
	leaving := l.leaving(tx)
	for i, step := range l.steps {
		if l.ctx.Err() != nil {
			return errSlow // others wait for this write
		}
		if l.in[i].Op == "delete" && (i == 0 || l.in[i-1].Op != "delete") {
			tx.Doom(l.doomed(tx, i))
		}
		before, after, err := step.Do(tx, leaving)
		if err != nil {
			return at(i, err)
		}
		l.done[i] = done{before, after}
	}
	l.whole = tx.Step()
	if l.id != "" { // which is no consequence of the changes
		return model.Sign(tx, l.id)
	}
	return nil
}

// leaving tells of records that some step of the list deletes. That is only
// worked out if anybody asks, which is rare.
func (l *list) leaving(tx *state.Tx) func(d *kind.Def, id string) bool {
	refs := sync.OnceValue(func() map[state.Ref]bool {
		refs := map[state.Ref]bool{}
		for _, step := range l.steps {
			if ref, ok := step.Dooms(tx); ok {
				refs[ref] = true
			}
		}
		return refs
	})
	return func(d *kind.Def, id string) bool { return refs()[state.Ref{Def: d, ID: id}] }
}

// doomed are the records of the deletes that begin at a place in the list. One
// after the other, each would change the policies that name it.
func (l *list) doomed(tx *state.Tx, from int) (refs []state.Ref) {
	for i := from; i < len(l.in) && l.in[i].Op == "delete"; i++ {
		if ref, ok := l.steps[i].Dooms(tx); ok {
			refs = append(refs, ref)
		}
	}
	return refs
}

// plan looks at what would come of the changes.
func (l *list) plan(c *rest.Call) error {
	ctx, heard := assertion.Heard(c.Context())
	if err := l.try(ctx, c, c.State.Snapshot()); err != nil {
		return err
	}
	l.out = l.report(l.access(), hidden)
	l.out.Assertions = l.newcomers().breaches(heard.Breaches)
	return nil
}

// try makes the changes without storing them.
func (l *list) try(ctx context.Context, c *rest.Call, on *state.Snapshot) error {
	_, err := c.State.Try(ctx, c.Author(), on, l.run)
	return err
}

// apply makes the changes whatever comes of them.
func (l *list) apply(c *rest.Call) error {
	if err := c.State.Update(c.Context(), l.author(c), l.run); err != nil {
		return err
	}
	l.finish(l.access())
	return nil
}

// author is who makes the changes. One alone is called as the operation that makes it,
// by whatever way it came: that is what people did.
func (l *list) author(c *rest.Call) state.Author {
	by := c.Author()
	if l.operation != "" {
		by.Operation = l.operation
	}
	return by
}

// finish tells what was done.
func (l *list) finish(moved access.Delta) {
	for i, d := range l.done {
		if d.before == nil {
			l.steps[i].Announce(d.after)
		}
	}
	planned := l.report(moved, hidden)
	l.out = l.report(moved, shown)
	l.out.Applied, l.out.Digest = true, planned.Digest
}

// errMoved says that what a plan was made on has changed.
var errMoved = errors.New("the network has changed since the plan was made")

// maxPlans is how often a plan is made again because somebody else was faster.
const maxPlans = 5

// applyAsPlanned makes the changes if the outcome is the one that a digest
// stands for. Who gains and loses access is worked out before the write, which
// all others wait for, and holds as long as nothing that it follows from has
// changed. The rest is compared in the write.
func (l *list) applyAsPlanned(c *rest.Call, expect string) error {
	for range maxPlans {
		on := c.State.Snapshot()
		if err := l.try(c.Context(), c, on); err != nil {
			return err
		}
		moved := l.access()
		if planned := l.report(moved, hidden); planned.Digest != expect {
			return fault.New(fault.CodePlan, "the outcome would no longer be the one that was planned, since the network has changed or these are other changes; make a plan again and look at it")
		}
		err := c.State.Update(c.Context(), l.author(c), func(tx *state.Tx) error {
			if !tx.Same(on, decisive...) {
				return errMoved
			}
			if err := l.run(tx); err != nil {
				return err
			}
			if now := l.report(moved, hidden); now.Digest != expect {
				return errMoved
			}
			return nil
		})
		switch {
		case err == nil:
			l.finish(moved)
			return nil
		case !errors.Is(err, errMoved):
			return err
		}
	}
	return fault.Later("the network is changing all the time, so that no plan holds; try again", time.Second)
}

// decisive are the kinds that decide who may use what.
var decisive = []*kind.Def{model.Identities.Def, model.Services.Def, model.ServicePolicies.Def}

// access is what the changes give and take.
func (l *list) access() access.Delta {
	return access.Difference(l.whole.Before, l.whole.After, l.whole.Changed, mostListed)
}

// direct returns what the changes themselves left of each record.
func (l *list) direct() map[state.Ref]kind.Record {
	left := make(map[state.Ref]kind.Record, len(l.done))
	for i, d := range l.done {
		of := d.before
		if of == nil {
			of = d.after
		}
		left[state.Ref{Def: l.steps[i].Kind(), ID: of.Base().ID}] = d.after
	}
	return left
}

// consequences lists what changed because of the changes, and was not asked
// for. What goes with a client's sessions is nobody's to manage.
func (l *list) consequences() (all []consequence) {
	direct := l.direct()
	for _, ref := range l.whole.Changed {
		if ref.Def.Lane == kind.Session {
			continue
		}
		was, asked := direct[ref]
		if !asked {
			was, _ = l.whole.Before.Lookup(ref.Def, ref.ID)
		}
		is, _ := l.whole.After.Lookup(ref.Def, ref.ID)
		if was == is || was != nil && is != nil && len(ref.Def.Differences(was, is)) == 0 {
			continue
		}
		all = append(all, consequence{ref.Def, done{was, is}})
	}
	return slices.Clip(all)
}

// consequence is a record that changed because others did.
type consequence struct {
	kind *kind.Def
	done
}
