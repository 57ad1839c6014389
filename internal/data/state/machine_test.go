package state_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// op is one change, for a State and for a world.
type op struct {
	lane  kind.Lane
	do    func(tx *state.Tx) error
	mimic func(w world) fault.Code
}

var (
	// Most writes should succeed, so references are rare and names many.
	someID    = rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	maybeID   = rapid.SampledFrom([]string{"", "", "", "", "", "a", "b", "c"})
	someName  = rapid.SampledFrom([]string{"", "", "", "ann", "bob", "cid", "dan", "eve"})
	someTrait = rapid.SampledFrom([]string{"red", "blue", "tall"})
	someRole  = rapid.SampledFrom([]string{"#red", "#all", "@a", "@b", "@c"})
)

// drawIDs draws a few ids or, as often, none.
func drawIDs(t *rapid.T, label string) []string {
	ids := []string{}
	for range 2 {
		if id := maybeID.Draw(t, label); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// drawRoles draws a list of roles. Everybody leaves no room for others.
func drawRoles(t *rapid.T) []string {
	roles := rapid.SliceOfN(someRole, 0, 3).Draw(t, "who")
	if slices.Contains(roles, "#all") {
		return []string{"#all"}
	}
	return roles
}

// drawRecord draws a record of any kind but for its id.
func drawRecord(t *rapid.T, d *kind.Def) kind.Record {
	switch d {
	case places.Def:
		return &place{Name: someName.Draw(t, "name"), Zone: someName.Draw(t, "zone"), Count: rapid.IntRange(0, 9).Draw(t, "count")}
	case people.Def:
		return &person{
			Name: someName.Draw(t, "name"), Badge: someName.Draw(t, "badge"), Home: maybeID.Draw(t, "home"),
			Boss: maybeID.Draw(t, "boss"), Traits: rapid.SliceOfN(someTrait, 0, 3).Draw(t, "traits"),
		}
	case items.Def:
		i := &item{
			Owner: maybeID.Draw(t, "owner"), Keepers: drawIDs(t, "keepers"), Whole: maybeID.Draw(t, "whole"),
			Weights: map[string]int{}, Law: maybeID.Draw(t, "law"),
		}
		for _, id := range drawIDs(t, "weights") {
			i.Weights[id]++
		}
		return i
	case rules.Def:
		return &rule{Who: drawRoles(t), Item: maybeID.Draw(t, "item")}
	case visits.Def:
		return &visit{Person: maybeID.Draw(t, "person"), Token: someName.Draw(t, "token"), Host: maybeID.Draw(t, "host")}
	}
	panic("no such kind")
}

// drawOp draws a create, an edit or a delete.
func drawOp(t *rapid.T, defs ...*kind.Def) op {
	d := rapid.SampledFrom(defs).Draw(t, "kind")
	id := someID.Draw(t, "id")
	o := op{lane: d.Lane}
	switch rapid.SampledFrom([]string{"create", "create", "edit", "edit", "delete"}).Draw(t, "action") {
	case "create":
		rec := drawRecord(t, d)
		rec.Base().ID = id
		o.do = func(tx *state.Tx) error { return tx.Create(d, d.Clone(rec)) }
		o.mimic = func(w world) fault.Code { return w.create(d, d.Clone(rec)) }
	case "edit":
		change := drawEdit(t, d)
		o.do = func(tx *state.Tx) error {
			return tx.Edit(d, id, func(rec kind.Record) error { change(rec); return nil })
		}
		o.mimic = func(w world) fault.Code { return w.edit(d, id, change) }
	case "delete":
		o.do = func(tx *state.Tx) error { return tx.Delete(d, id) }
		o.mimic = func(w world) fault.Code { return w.delete(d, id) }
	}
	return o
}

// drawEdit draws a change of a whole record, or of one field.
func drawEdit(t *rapid.T, d *kind.Def) func(kind.Record) {
	next := drawRecord(t, d)
	one := rapid.Bool().Draw(t, "one field")
	return func(rec kind.Record) {
		fresh := d.Clone(next)
		meta := *rec.Base()
		switch rec := rec.(type) {
		case *place:
			if one {
				rec.Count++
				return
			}
			*rec = *fresh.(*place)
		case *person:
			if one {
				rec.Traits = fresh.(*person).Traits
				return
			}
			*rec = *fresh.(*person)
		case *item:
			if one {
				rec.Weights = fresh.(*item).Weights
				return
			}
			*rec = *fresh.(*item)
		case *rule:
			*rec = *fresh.(*rule)
		case *visit:
			*rec = *fresh.(*visit)
		}
		*rec.Base() = meta
	}
}

var (
	modelKinds   = []*kind.Def{places.Def, people.Def, people.Def, items.Def, items.Def, rules.Def}
	sessionKinds = []*kind.Def{visits.Def}
	allKinds     = slices.Concat(modelKinds, sessionKinds)
)

// write is several ops in one closure: all of them or none.
type write []op

// lane is that of the model if any of the ops is.
func (ops write) lane() kind.Lane {
	for _, o := range ops {
		if o.lane == kind.Model {
			return kind.Model
		}
	}
	return kind.Session
}

func (ops write) do(tx *state.Tx) error {
	for _, o := range ops {
		if err := o.do(tx); err != nil {
			return err
		}
	}
	return nil
}

// mimic returns the world after the write, which is the same one after a
// refusal.
func (ops write) mimic(w world) (world, fault.Code) {
	next := w.clone()
	for _, o := range ops {
		if code := o.mimic(next); code != none {
			return w, code
		}
	}
	return next, none
}

func drawWrite(t *rapid.T, defs []*kind.Def) write {
	n := rapid.SampledFrom([]int{1, 1, 1, 2, 4}).Draw(t, "ops")
	ops := make(write, n)
	for i := range ops {
		ops[i] = drawOp(t, defs...)
	}
	return ops
}

// machine drives a State and its world. A second State sees only what the
// store tells it.
type machine struct {
	t     *testing.T
	store *storetest.Faulty
	st    *state.State
	other *state.State
	world world
	kept  []kept
	// keeping is where st keeps what it has; nowhere if empty.
	keeping state.Keeping
}

// kept is an old snapshot and what it must go on to show.
type kept struct {
	snap *state.Snapshot
	want world
}

func codeOf(err error) fault.Code {
	if err == nil {
		return none
	}
	return fault.CodeOf(err)
}

func (m *machine) submit(lane kind.Lane, fn func(*state.Tx) error) error {
	if lane == kind.Session {
		return m.st.UpdateSessions(m.t.Context(), state.Program("tester"), fn)
	}
	return m.st.Update(m.t.Context(), state.Program("tester"), fn)
}

// write makes one write and compares the outcome.
func (m *machine) write(t *rapid.T) {
	defs := rapid.SampledFrom([][]*kind.Def{modelKinds, modelKinds, sessionKinds, allKinds}).Draw(t, "kinds")
	ops := drawWrite(t, defs)
	next, want := ops.mimic(m.world)
	err := m.submit(ops.lane(), ops.do)
	if got := codeOf(err); got != want {
		t.Fatalf("the write ends with %q (%v), want %q", got, err, want)
	}
	m.world = next
}

// group makes several writes that share a commit: they wait while the store
// holds up another one.
func (m *machine) group(t *rapid.T) {
	defs, method := modelKinds, storetest.Commit
	if rapid.IntRange(0, 3).Draw(t, "lane") == 0 {
		defs, method = sessionKinds, storetest.Put
	}
	gate := m.store.BlockNext(method)
	lead := write{}
	for id := range 100 { // something that surely is a write
		id := fmt.Sprintf("lead%d", id)
		if _, taken := m.world[defs[0]][id]; taken {
			continue
		}
		rec := defs[0].New()
		rec.Base().ID = id
		lead = write{{
			lane:  defs[0].Lane,
			do:    func(tx *state.Tx) error { return tx.Create(defs[0], defs[0].Clone(rec)) },
			mimic: func(w world) fault.Code { return w.create(defs[0], rec) },
		}}
		break
	}
	writes := []write{lead}
	for range rapid.IntRange(1, 6).Draw(t, "writes") {
		ops := drawWrite(t, defs)
		if defs[0].Lane == kind.Model && rapid.Bool().Draw(t, "mixed") {
			ops = append(ops, drawOp(t, sessionKinds...))
		}
		writes = append(writes, ops)
	}
	errs := make([]chan error, len(writes))
	for i, ops := range writes {
		errs[i] = make(chan error, 1)
		go func() { errs[i] <- m.submit(ops.lane(), ops.do) }()
		synctest.Wait() // they queue up in this order
	}
	gate.Open()
	for i, ops := range writes {
		next, want := ops.mimic(m.world)
		err := <-errs[i]
		if got := codeOf(err); got != want {
			t.Fatalf("write %d of the group ends with %q (%v), want %q", i, got, err, want)
		}
		m.world = next
	}
}

// remove deletes with as many commits as it takes.
func (m *machine) remove(t *rapid.T) {
	d := rapid.SampledFrom(allKinds).Draw(t, "kind")
	id := someID.Draw(t, "id")
	next := m.world.clone()
	want := next.delete(d, id)
	err := m.st.Delete(m.t.Context(), state.Program("tester"), d, id)
	if got := codeOf(err); got != want {
		t.Fatalf("the delete ends with %q (%v), want %q", got, err, want)
	}
	if want == none {
		m.world = next
	}
}

func (m *machine) keep(*rapid.T) {
	m.kept = append(m.kept, kept{m.st.Snapshot(), m.world.clone()})
}

// reopen starts from the store again.
func (m *machine) reopen(t *rapid.T) {
	m.st.Close()
	m.open(t)
}

func (m *machine) open(t *rapid.T) {
	st, err := state.Open(m.t.Context(), m.store, kinds, state.Options{Frozen: true, Keeping: m.keeping})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	m.st = st
}

func (m *machine) check(t *rapid.T) { m.world.verify(t, m.st.Snapshot()) }

func TestMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(inBubble{t}, func(rt *rapid.T) {
			memory := storetest.NewMemory()
			defer pass()
			m := &machine{t: t, store: storetest.NewFaulty(memory), world: newWorld()}
			m.open(rt)
			defer func() { m.st.Close() }()
			var err error
			if m.other, err = state.Open(t.Context(), memory.Another(), kinds, state.Options{Frozen: true}); err != nil {
				rt.Fatalf("open: %v", err)
			}
			defer m.other.Close()
			rt.Repeat(map[string]func(*rapid.T){
				"write": m.write, "write again": m.write, "group": m.group, "remove": m.remove,
				"keep": m.keep, "reopen": m.reopen, "": m.check,
			})
			synctest.Wait()
			m.world.verify(rt, m.other.Snapshot())
			for _, k := range m.kept {
				k.want.verify(rt, k.snap)
			}
		})
	})
}

// inBubble hides that a testing.T is one: rapid would ask for its deadline,
// which a bubble's clock has no part in.
type inBubble struct{ testing.TB }

// pass lets some time pass in the bubble, or rapid would never tire of
// shrinking a failure.
func pass() { <-time.After(100 * time.Millisecond) }
