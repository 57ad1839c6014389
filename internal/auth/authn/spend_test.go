package authn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

// desk is a controller on a store that can fail, with the second factor of its
// first identity.
type desk struct {
	*world
	faults  *storetest.Faulty
	factors *Factors
}

func newDesk(t *testing.T, memory *storetest.Memory) *desk {
	t.Helper()
	faults := storetest.NewFaulty(memory)
	w := newController(t, faults)
	return &desk{world: w, faults: faults, factors: &Factors{State: w.State, Now: time.Now, Issuer: "test"}}
}

// newDesks returns two controllers of one network and the recovery codes of
// its first identity, whose second factor is verified.
func newDesks(t *testing.T) (here, there *desk, codes []string) {
	t.Helper()
	memory := storetest.NewMemory()
	here, there = newDesk(t, memory), newDesk(t, memory.Another())
	update(t, here.State, func(tx *state.Tx) error { return model.Seed(tx) })
	here.proof = here.vouched(t, here.add(t, adminName))
	there.proof = here.proof
	who := here.open(t)
	if _, err := here.factors.Start(t.Context(), By(who.identity), who); err != nil {
		t.Fatal(err)
	}
	update(t, here.State, func(tx *state.Tx) error {
		m, _ := model.MFAOf(tx, who.identity.ID)
		codes = m.RecoveryCodes
		return model.MFAs.Edit(tx, m.ID, func(m *model.MFA) error { m.IsVerified = true; return nil })
	})
	synctest.Wait()
	return here, there, codes
}

// show completes a session with a code.
func (d *desk) show(t *testing.T, who *Caller, code string) error {
	return d.factors.Show(t.Context(), By(who.identity), who, code)
}

// spent reports whether a recovery code is used up.
func (d *desk) spent(code string) bool {
	m, _ := model.MFAOf(d.State.Snapshot(), d.proof.identity.ID)
	return !slices.Contains(m.RecoveryCodes, code)
}

func (d *desk) complete(who *Caller) bool {
	s, _ := model.APISessions.Get(d.State.Snapshot(), who.session.ID)
	return s.IsMFAComplete && s.MFAPassedAt != nil
}

// TestCodeIsSpentWithSession has the store fail at every write. A code is used
// up if and only if the session that it was shown for is complete, and one
// that is not used up works.
func TestCodeIsSpentWithSession(t *testing.T) {
	for name, inject := range map[string]func(f *storetest.Faulty){
		"nothing fails":       func(*storetest.Faulty) {},
		"a commit fails":      func(f *storetest.Faulty) { f.FailNext(storetest.Commit, storetest.ErrInjected) },
		"a put fails":         func(f *storetest.Faulty) { f.FailNext(storetest.Put, storetest.ErrInjected) },
		"a commit is too big": func(f *storetest.Faulty) { f.FailNext(storetest.Commit, store.ErrTooLarge) },
		"a commit is lost":    func(f *storetest.Faulty) { f.LoseNext(storetest.Commit, storetest.ErrInjected) },
		"a put is lost":       func(f *storetest.Faulty) { f.LoseNext(storetest.Put, storetest.ErrInjected) },
		"the feed is late and a commit lost": func(f *storetest.Faulty) {
			f.LoseNext(storetest.Commit, storetest.ErrInjected)
			gate := f.HoldNext()
			time.AfterFunc(time.Second, gate.Open)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there, codes := newDesks(t)
				who := here.open(t)
				synctest.Wait()
				inject(here.faults)
				err := here.show(t, who, codes[0])
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, d := range []*desk{here, there} {
					if d.spent(codes[0]) != d.complete(who) {
						t.Fatalf("spent is %t, complete is %t", d.spent(codes[0]), d.complete(who))
					}
				}
				if err == nil && !here.complete(who) {
					t.Error("the code was accepted and the session is not complete")
				}
				done := here.complete(who)
				switch again := here.show(t, who, codes[0]); {
				case done && !fault.Is(again, fault.CodeMFACode):
					t.Errorf("the same code again: %v", again)
				case !done && (again != nil || !here.complete(who)):
					t.Errorf("the code is lost: %v", again)
				}
			})
		})
	}
}

// TestOneSessionPerCode shows one code for two sessions on two controllers at
// the same moment.
func TestOneSessionPerCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, codes := newDesks(t)
		one, two := here.open(t), there.open(t)
		synctest.Wait()
		gate := here.faults.BlockNext(storetest.Commit)
		late := make(chan error)
		go func() { late <- here.show(t, one, codes[0]) }()
		<-gate.Reached() // it has found the code good
		if err := there.show(t, two, codes[0]); err != nil {
			t.Fatal(err)
		}
		gate.Open()
		if err := <-late; !fault.Is(err, fault.CodeMFACode) {
			t.Errorf("the second to show the code: %v", err)
		}
		synctest.Wait()
		for _, d := range []*desk{here, there} {
			if d.complete(one) || !d.complete(two) || !d.spent(codes[0]) {
				t.Errorf("complete are %t and %t, spent is %t", d.complete(one), d.complete(two), d.spent(codes[0]))
			}
		}
	})
}

// TestSessionChangesMeanwhile has another controller write to the session, and
// end it, while a code is being spent for it.
func TestSessionChangesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, codes := newDesks(t)
		used, ended := here.open(t), here.open(t)
		synctest.Wait()
		meanwhile := func(who *Caller, code string, do func()) error {
			gate := here.faults.BlockNext(storetest.Commit)
			result := make(chan error)
			go func() { result <- here.show(t, who, code) }()
			<-gate.Reached()
			do()
			gate.Open()
			return <-result
		}
		var at time.Time
		err := meanwhile(used, codes[0], func() {
			time.Sleep(time.Second)
			at = time.Now().UTC().Truncate(time.Millisecond)
			there.touch(used.session.ID, at)
			there.flush(t.Context(), 0)
		})
		s, _ := model.APISessions.Get(here.State.Snapshot(), used.session.ID)
		if err != nil || !here.complete(used) || !s.LastActivityAt.Time().Equal(at) {
			t.Errorf("after use elsewhere: %v, and the session is %+v, want one used at %v", err, s, at)
		}
		err = meanwhile(ended, codes[1], func() {
			if err := there.End(t.Context(), state.Program("test"), ended.session.ID); err != nil {
				t.Fatal(err)
			}
		})
		if !fault.Is(err, fault.CodeNotFound) || here.spent(codes[1]) {
			t.Errorf("after the end: %v, spent is %t", err, here.spent(codes[1]))
		}
	})
}
