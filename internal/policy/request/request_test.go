package request_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/request"
	"netkeep.internal/internal/policy/validity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	begin    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	askers   = []string{"ann", "bob"}
	deciders = []string{"cat", "dan", "eve"}
)

// world is a network in memory, of which the service pay can be asked for.
type world struct {
	st   *state.State
	desk request.Desk
	mu   sync.Mutex
	now  time.Time
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// fataler is a test of either sort.
type fataler interface {
	Helper()
	Fatal(...any)
	Cleanup(func())
}

func newWorld(t fataler) *world {
	t.Helper()
	return newWorldOn(t, storetest.NewMemory())
}

// newWorldOn is newWorld in a store that others may have opened.
func newWorldOn(t fataler, in store.Store) *world {
	t.Helper()
	w := &world{now: begin}
	st, err := state.Open(context.Background(), in, model.All, state.Options{Frozen: true, Now: w.clock, Judge: power.Judge})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	w.st, w.desk = st, request.Desk{State: st}
	w.give(t, func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		for _, id := range slices.Concat(askers, deciders) {
			err := model.Identities.Upsert(tx, id, func(i *model.Identity) {
				i.Name, i.Type = id, "User"
				if slices.Contains(deciders, id) {
					i.RoleAttributes = []string{"leads"}
				}
			})
			if err != nil {
				return err
			}
		}
		return model.Services.Upsert(tx, "pay", func(s *model.Service) {
			s.Name, s.Requests = "payroll", &model.Requests{Attribute: "finance", Approvers: "leads", Approvals: 1, LongestMinutes: 120}
		})
	})
	return w
}

// give writes what nobody judges.
func (w *world) give(t fataler, fn func(*state.Tx) error) {
	t.Helper()
	if err := w.st.Update(context.Background(), state.Program("test"), fn); err != nil {
		t.Fatal(err)
	}
}

func (w *world) identity(t fataler, id string, change func(*model.Identity)) {
	t.Helper()
	w.give(t, func(tx *state.Tx) error {
		return model.Identities.Edit(tx, id, func(i *model.Identity) error { change(i); return nil })
	})
}

func (w *world) service(t fataler, change func(*model.Service)) {
	t.Helper()
	w.give(t, func(tx *state.Tx) error {
		return model.Services.Edit(tx, "pay", func(s *model.Service) error { change(s); return nil })
	})
}

func by(id string) state.Author { return state.Author{Kind: model.Identities.Name, ID: id, Name: id} }

func (w *world) ask(who string, minutes int) (*model.AccessRequest, error) {
	return w.desk.Ask(context.Background(), by(who), who, request.Asked{Service: "payroll", Minutes: minutes, Reason: "quarter end"})
}

// asked is a request that must be taken.
func (w *world) asked(t fataler, who string) string {
	t.Helper()
	q, err := w.ask(who, 60)
	if err != nil {
		t.Fatal(err)
	}
	return q.ID
}

func (w *world) approve(who, id string) error {
	_, err := w.desk.Approve(context.Background(), by(who), who, id)
	return err
}

func (w *world) has(who string) bool {
	i, _ := model.Identities.Get(w.st.Snapshot(), who)
	return slices.Contains(i.RoleAttributes, "finance")
}

func (w *world) standing(id string) string {
	q, ok := model.AccessRequests.Get(w.st.Snapshot(), id)
	if !ok {
		return "gone"
	}
	return q.Standing
}

// refused fails unless an error has a code, and words.
func refused(t *testing.T, err error, code fault.Code, words string) {
	t.Helper()
	if !fault.Is(err, code) || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v, want %s: %s", err, code, words)
	}
}

// TestApprove walks from the question to the end of what was granted.
func TestApprove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.asked(t, "ann")
	if w.has("ann") {
		t.Fatal("to ask is enough")
	}
	refused(t, w.approve("ann", id), fault.CodeInvalid, "of their own")
	refused(t, w.approve("bob", id), fault.CodeNotFound, "")
	if err := w.approve("cat", id); err != nil {
		t.Fatal(err)
	}
	q, _ := model.AccessRequests.Get(w.st.Snapshot(), id)
	g, ok := model.Grants.Get(w.st.Snapshot(), q.GrantID)
	if !ok || g.RequestID != id || g.GrantedByID != "cat" || g.Attribute != "finance" || g.Reason != "quarter end" || !w.has("ann") || q.Standing != model.Approved || q.DecidedByID != "cat" {
		t.Fatalf("approved it is %+v with the grant %+v", q, g)
	}
	if lasts := g.ValidUntil.Sub(w.clock()); lasts > time.Hour || lasts < time.Hour-time.Minute {
		t.Errorf("it lasts %v", lasts)
	}
	refused(t, w.approve("cat", id), fault.CodeInvalid, "is approved")
	refused(t, w.approve("dan", id), fault.CodeInvalid, "is approved")
	refused(t, w.desk.Deny(t.Context(), by("dan"), "dan", id, "no"), fault.CodeInvalid, "is approved")
	if err := w.desk.Withdraw(t.Context(), by("ann"), "ann", id); err != nil || w.has("ann") || w.standing(id) != model.Withdrawn {
		t.Errorf("given back it is %s, and ann has it: %v; %v", w.standing(id), w.has("ann"), err)
	}
}

// TestRefused is what nobody may ask for.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, minutes := range []int{-1, 0, 121, 10 * 365 * 24 * 60} {
		_, err := w.ask("ann", minutes)
		refused(t, err, fault.CodeInvalid, "minutes")
	}
	ask := func(service, reason string) error {
		_, err := w.desk.Ask(t.Context(), by("ann"), "ann", request.Asked{Service: service, Minutes: 1, Reason: reason})
		return err
	}
	refused(t, ask("payroll", strings.Repeat("x", 1001)), fault.CodeInvalid, "reason")
	refused(t, ask("payroll", ""), fault.CodeInvalid, "reason")
	w.give(t, func(tx *state.Tx) error {
		return model.Services.Upsert(tx, "closed", func(s *model.Service) { s.Name = "closed" })
	})
	closed, none := ask("closed", "x"), ask("nothing", "x")
	refused(t, closed, fault.CodeNotFound, "service")
	if got := strings.ReplaceAll(closed.Error(), "closed", "nothing"); got != none.Error() {
		t.Errorf("a service that cannot be asked for is %q, and none %q", got, none.Error())
	}
	id := w.asked(t, "ann")
	_, err := w.ask("ann", 1)
	refused(t, err, fault.CodeInvalid, "already")
	refused(t, w.desk.Withdraw(t.Context(), by("bob"), "bob", id), fault.CodeNotFound, "")
}

// TestFlood has somebody ask again and again.
func TestFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.give(t, func(tx *state.Tx) error {
		for i := range request.MaxPending + 1 {
			err := model.Services.Upsert(tx, fmt.Sprint("s", i), func(s *model.Service) {
				s.Name, s.Requests = fmt.Sprint("s", i), &model.Requests{Attribute: "x", Approvers: "leads", Approvals: 1, LongestMinutes: 1}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	ask := func(i int) (*model.AccessRequest, error) {
		return w.desk.Ask(t.Context(), by("ann"), "ann", request.Asked{Service: fmt.Sprint("s", i), Minutes: 1, Reason: "x"})
	}
	for i := range request.MaxPending {
		if _, err := ask(i); err != nil {
			t.Fatal(err)
		}
	}
	_, err := ask(request.MaxPending)
	refused(t, err, fault.CodeInvalid, "withdraw one")
	for i := 0; err == nil || i == 0; i++ {
		for q := range model.AccessRequests.Select(w.st.Snapshot(), "identityId", "ann") {
			if q.Pending() {
				if err := w.desk.Withdraw(t.Context(), by("ann"), "ann", q.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, err = ask(0)
	}
	refused(t, err, fault.CodeRateLimited, "too often")
	if n := w.st.Snapshot().Len(model.AccessRequests.Def); n > request.MaxKept {
		t.Errorf("%d are kept", n)
	}
	w.pass(2 * time.Hour)
	if _, err := ask(0); err != nil {
		t.Error(err)
	}
	if n := w.st.Snapshot().Len(model.AccessRequests.Def); n > request.MaxKept {
		t.Errorf("%d are kept", n)
	}
}

// TestTwo wants two who may at the moment of the second.
func TestTwo(t *testing.T) {
	t.Parallel()
	two := func(s *model.Service) {
		s.Requests = &model.Requests{Attribute: "finance", Approvers: "leads", Approvals: 2, LongestMinutes: 120}
	}
	for name, lose := range map[string]func(*world){
		"attribute": func(w *world) { w.identity(t, "cat", func(i *model.Identity) { i.RoleAttributes = nil }) },
		"disabled":  func(w *world) { w.identity(t, "cat", func(i *model.Identity) { i.Disable(w.clock(), 0) }) },
		"deleted": func(w *world) {
			w.give(t, func(tx *state.Tx) error { return model.Identities.Delete(tx, "cat") })
		},
	} {
		w := newWorld(t)
		w.service(t, two)
		id := w.asked(t, "ann")
		if err := w.approve("cat", id); err != nil || w.has("ann") {
			t.Fatalf("%s: after one ann has it: %v, %v", name, w.has("ann"), err)
		}
		refused(t, w.approve("cat", id), fault.CodeInvalid, "already")
		lose(w)
		if err := w.approve("dan", id); err != nil || w.has("ann") || w.standing(id) != model.Pending {
			t.Fatalf("%s: cat counts still: %s, %v", name, w.standing(id), err)
		}
		if err := w.approve("eve", id); err != nil || !w.has("ann") {
			t.Fatalf("%s: dan and eve are not enough: %v", name, err)
		}
	}
}

// TestMeanwhile changes the service, or takes it away, while somebody waits.
func TestMeanwhile(t *testing.T) {
	t.Parallel()
	for name, try := range map[string]struct {
		change   func(*world)
		standing string
	}{
		"closed": {func(w *world) { w.service(t, func(s *model.Service) { s.Requests = nil }) }, model.Expired},
		"another attribute": {func(w *world) {
			w.service(t, func(s *model.Service) { c := *s.Requests; c.Attribute = "more"; s.Requests = &c })
		}, model.Expired},
		"shorter": {func(w *world) {
			w.service(t, func(s *model.Service) { c := *s.Requests; c.LongestMinutes = 5; s.Requests = &c })
		}, model.Pending},
		"deleted": {func(w *world) {
			w.give(t, func(tx *state.Tx) error { return model.Services.Delete(tx, "pay") })
		}, "gone"},
		"a day": {func(w *world) { w.pass(model.RequestLife) }, model.Pending},
	} {
		w := newWorld(t)
		id := w.asked(t, "ann")
		try.change(w)
		if err := w.approve("cat", id); err == nil || w.has("ann") {
			t.Errorf("%s: it can be approved", name)
		}
		if got := w.standing(id); got != try.standing {
			t.Errorf("%s: it is %s", name, got)
		}
	}
}

// TestRace has many decide at once, for and against: there is one outcome.
func TestRace(t *testing.T) {
	t.Parallel()
	for range 20 {
		w := newWorld(t)
		id := w.asked(t, "ann")
		var all sync.WaitGroup
		for _, who := range deciders {
			all.Go(func() { _ = w.approve(who, id) })
			all.Go(func() { _ = w.desk.Deny(context.Background(), by(who), who, id, "") })
		}
		all.Go(func() { _ = w.desk.Withdraw(context.Background(), by("ann"), "ann", id) })
		all.Wait()
		standing, grants := w.standing(id), 0
		for range model.Grants.All(w.st.Snapshot()) {
			grants++
		}
		if want := standing == model.Approved; w.has("ann") != want || (grants == 1) != want || standing == model.Pending {
			t.Fatalf("it is %s, ann has it: %v, %d grants", standing, w.has("ann"), grants)
		}
	}
}

// TestPower is that nobody gets power by asking, and that nobody needs any to approve.
func TestPower(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bind := func(by state.Author, roles ...string) error {
		return w.st.Update(t.Context(), by, func(tx *state.Tx) error {
			return model.RoleBindings.Create(tx, &model.RoleBinding{Name: roles[0], RoleID: model.RoleAdmin, Semantic: model.AllOf, IdentityRoles: roles})
		})
	}
	refused(t, bind(state.Program("test"), "#finance"), fault.CodeInvalid, "payroll")
	refused(t, bind(state.Program("test"), "#other", "#finance"), fault.CodeInvalid, "payroll")
	if err := bind(state.Program("test"), "#other"); err != nil {
		t.Fatal(err)
	}
	err := w.st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		return model.Services.Edit(tx, "pay", func(s *model.Service) error {
			s.Requests = &model.Requests{Attribute: "other", Approvers: "leads", Approvals: 1, LongestMinutes: 1}
			return nil
		})
	})
	refused(t, err, fault.CodeInvalid, "gives an admin role")
	w.identity(t, "ann", func(i *model.Identity) { i.IsAdmin = true })
	if err := w.approve("cat", w.asked(t, "ann")); err != nil || !w.has("ann") {
		t.Errorf("an admin who asks is answered %v", err)
	}
	w.identity(t, "bob", func(i *model.Identity) { i.AdminRoles = []string{"policy-author"} })
	err = w.st.Update(t.Context(), by("bob"), func(tx *state.Tx) error {
		return model.Services.Edit(tx, "pay", func(s *model.Service) error { c := *s.Requests; c.Approvers = "bobs"; s.Requests = &c; return nil })
	})
	refused(t, err, fault.CodeUnauthorized, "grant:create")
	err = w.st.Update(t.Context(), by("bob"), func(tx *state.Tx) error {
		return model.Services.Edit(tx, "pay", func(s *model.Service) error { s.MaxIdleTimeMillis = 1; return nil })
	})
	if err != nil {
		t.Error(err)
	}
}

// TestForgotten lets a request wait, expire and be forgotten.
func TestForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keeper := &validity.Keeper{State: w.st, Now: w.clock, Log: slog.New(slog.DiscardHandler)}
	id := w.asked(t, "ann")
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{model.RequestLife - time.Second, model.Pending}, {time.Second, model.Expired}, {model.RequestsKept - time.Second, model.Expired}, {2 * time.Second, "gone"}} {
		w.pass(step.after)
		if err := keeper.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := w.standing(id); got != step.want {
			t.Fatalf("after %v more it is %s, want %s", step.after, got, step.want)
		}
	}
}
