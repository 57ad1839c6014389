package access_test

import (
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// identity creates or changes an identity and returns the step.
func (w *world) identity(id string, attributes ...string) step {
	s, err := w.write(func(tx *state.Tx) error {
		return model.Identities.Upsert(tx, id, person(id, attributes...))
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func person(name string, attributes ...string) func(*model.Identity) {
	return func(i *model.Identity) {
		i.Name, i.Type, i.RoleAttributes = name, "User", attributes
	}
}

func (w *world) delete(id string) step {
	s, err := w.write(func(tx *state.Tx) error { return model.Identities.Delete(tx, id) })
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// open gives everyone with one of the attributes a service.
func (w *world) open(attributes ...string) {
	_, err := w.write(func(tx *state.Tx) error {
		err := model.Services.Upsert(tx, "crm", func(s *model.Service) { s.Name, s.TerminatorStrategy = "crm", "smartrouting" })
		if err != nil {
			return err
		}
		for _, a := range attributes {
			err := model.ServicePolicies.Upsert(tx, "for-"+a, func(p *model.ServicePolicy) {
				p.Name, p.Type, p.Semantic = "for-"+a, model.Dial, model.AnyOf
				p.IdentityRoles, p.ServiceRoles = []string{"#" + a}, []string{"@crm"}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func apply(last *access.LastChange, s step) { _ = last.Apply(s.before, s.after, s.changed) }

func TestLastChangeStaysAndMoves(t *testing.T) {
	w := newWorld(t)
	w.open("sales")
	var last access.LastChange
	ann := w.identity("ann")
	last.Reset(ann.after.Time)
	of := func(id string) time.Time { return last.Of(w.st.Snapshot(), id) }
	start := of("ann")
	if !start.Equal(ann.after.Time) {
		t.Fatalf("after a load the time is %v, want %v", start, ann.after.Time)
	}
	if got := of("nobody"); !got.Equal(start) {
		t.Errorf("somebody unknown has %v, want %v", got, start)
	}

	apply(&last, w.identity("bob"))
	if got := of("ann"); !got.Equal(start) {
		t.Errorf("somebody else's change moves the time to %v", got)
	}
	apply(&last, w.identity("ann", "idle"))
	if got := of("ann"); !got.Equal(start) {
		t.Errorf("an attribute that gives nothing moves the time to %v", got)
	}
	apply(&last, w.identity("ann", "sales"))
	moved := of("ann")
	if !moved.After(start) {
		t.Errorf("a change leaves the time at %v", moved)
	}

	// A change that is not in the model.
	last.Touch(w.st.Snapshot(), "ann")
	touched := of("ann")
	if !touched.After(moved) {
		t.Errorf("a touch leaves the time at %v", touched)
	}
	bob := of("bob")
	last.Touch(w.st.Snapshot(), "nobody")
	if got := of("ann"); !got.Equal(touched) {
		t.Errorf("a touch of somebody unknown moves the time to %v", got)
	}
	if got := of("bob"); !got.Equal(bob) {
		t.Errorf("a touch of another moves the time to %v", got)
	}

	// A load in between may hide changes, so that everyone must look again.
	last.Reset(w.identity("cid").after.Time)
	for id, before := range map[string]time.Time{"ann": touched, "bob": bob} {
		if got := of(id); got.Equal(before) {
			t.Errorf("after another load the time of %s is %v as before", id, got)
		}
	}
}

// TestLastChangeOfReusedOrdinal looks between the moment when a snapshot is
// public and the moment when its batch is applied.
func TestLastChangeOfReusedOrdinal(t *testing.T) {
	w := newWorld(t)
	var last access.LastChange
	w.identity("zoe") // or else ann would be everyone
	start := w.st.Snapshot().Time
	last.Reset(start)
	apply(&last, w.identity("ann"))
	last.Touch(w.st.Snapshot(), "ann")
	gone, _ := w.st.Snapshot().Ordinal(model.Identities.Def, "ann")
	apply(&last, w.delete("ann"))

	bob := w.identity("bob")
	if ord, _ := bob.after.Ordinal(model.Identities.Def, "bob"); ord != gone {
		t.Fatalf("bob has ordinal %d, not ann's %d: nothing to see here", ord, gone)
	}
	if got := last.Of(bob.after, "bob"); !got.Equal(start) {
		t.Errorf("bob has %v before anything is known of him, want %v", got, start)
	}
	apply(&last, bob)
	if got := last.Of(bob.after, "bob"); got.Before(bob.after.Time) {
		t.Errorf("bob has %v, want %v or later", got, bob.after.Time)
	}
}

// TestLastChangeMovedOrdinal has an identity that is deleted and created again
// in one batch and takes another ordinal, while its own goes to somebody new.
func TestLastChangeMovedOrdinal(t *testing.T) {
	w := newWorld(t)
	var last access.LastChange
	last.Reset(w.st.Snapshot().Time)
	for _, id := range []string{"ann", "bob"} {
		apply(&last, w.identity(id))
	}
	apply(&last, w.delete("ann"))
	before := last.Of(w.st.Snapshot(), "bob")
	s, err := w.write(func(tx *state.Tx) error {
		if err := model.Identities.Delete(tx, "bob"); err != nil {
			return err
		}
		for _, id := range []string{"bob", "cid"} {
			if err := model.Identities.Upsert(tx, id, person(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	was, _ := s.before.Ordinal(model.Identities.Def, "bob")
	if is, _ := s.after.Ordinal(model.Identities.Def, "bob"); is == was {
		t.Fatalf("bob keeps ordinal %d: nothing to see here", was)
	}
	if got := names(s.after, model.Identities.Def, access.Affected(s.before, s.after, s.changed)); len(got) != 2 {
		t.Errorf("%v are affected, want bob and cid", got)
	}
	apply(&last, s)
	for _, id := range []string{"bob", "cid"} {
		if got := last.Of(s.after, id); !got.After(before) {
			t.Errorf("%s has %v, which is bob's of before", id, got)
		}
	}
}

// TestLastChangeConcurrently reads while batches are applied: no time runs
// back.
func TestLastChangeConcurrently(t *testing.T) {
	w := newWorld(t)
	w.open("a0", "a1")
	var last access.LastChange
	last.Reset(w.st.Snapshot().Time)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			var seen time.Time
			for {
				snap := w.st.Snapshot()
				now := last.Of(snap, "ann")
				if now.Before(seen) {
					t.Errorf("the time runs back from %v to %v", seen, now)
				}
				seen = now
				last.Touch(snap, "bob")
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	var latest step
	for i := range 50 {
		latest = w.identity("ann", ids("a", i%2+1)...)
		apply(&last, latest)
		apply(&last, w.identity(ids("i", i+1)[i]))
	}
	close(stop)
	readers.Wait()
	if got := last.Of(w.st.Snapshot(), "ann"); !got.Equal(latest.after.Time) {
		t.Errorf("the time is %v, that of the last batch %v", got, latest.after.Time)
	}
}

// TestLastChangeOfAdmins checks what moves the time of an admin, who sees all
// services without a policy.
func TestLastChangeOfAdmins(t *testing.T) {
	w := newWorld(t)
	s := script{T: t, world: w}
	var last access.LastChange
	for _, line := range []string{"admin root", "identity ann", "config-type intercept", "config address intercept 1"} {
		s.line(line)
	}
	last.Reset(w.st.Snapshot().Time)
	tests := []struct {
		change string
		moves  bool
	}{
		{"service crm + address", true},
		{"config address intercept 2", true},
		{"config-type intercept renamed", true},
		{"service-policy staff Dial AnyOf @ann : @crm", false},
		{"edge-router paris", false},
		{"identity ann sales", false},
		{"admin root", false},
		{"admin root ops", false},
		{"service-policy ops Dial AnyOf #ops : @crm", true},
		{"admin root", true},
		{"delete service crm", true},
	}
	for _, test := range tests {
		before := last.Of(w.st.Snapshot(), "root")
		s.line(test.change)
		apply(&last, s.last)
		if moved := last.Of(w.st.Snapshot(), "root").After(before); moved != test.moves {
			t.Errorf("%s: the time moves: %v, want %v", test.change, moved, test.moves)
		}
	}
}
