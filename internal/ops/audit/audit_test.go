package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// tester is what tests and properties have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ann is an author as requests have them.
var ann = state.Author{
	Kind: "identity", ID: "ann", Name: "Ann", Operation: "createService", Request: "r1", Source: "192.0.2.1",
	Session: "s1", Factors: "password,code",
}

// open returns a controller on a store.
func open(t tester, st store.Store) *state.State {
	t.Helper()
	s, err := state.Open(context.Background(), st, model.All, state.Options{Journal: audit.Journal{}, Frozen: true})
	must(t, err)
	return s
}

// entries are all that there are.
func entries(t tester, s *state.State) []*model.AuditEntry {
	t.Helper()
	q, err := filter.Compile(model.AuditEntries.Symbols, "limit none")
	must(t, err)
	recs, total, err := (&audit.Log{State: s}).Query(context.Background(), q, q.Page(nil, nil))
	must(t, err)
	if int64(len(recs)) != total {
		t.Fatalf("there are %d entries of %d", len(recs), total)
	}
	all := make([]*model.AuditEntry, len(recs))
	for i, rec := range recs {
		all[i] = rec.(*model.AuditEntry)
	}
	return all
}

// network is what records hold that is no secret, by key and member.
type network map[string]map[string]string

// current is the network as memory has it.
func current(t tester, s *state.State) network {
	t.Helper()
	now := network{}
	for _, d := range model.All.Defs {
		if !d.Noted {
			continue
		}
		for rec := range s.Snapshot().All(d) {
			delta, err := d.Delta(nil, rec)
			must(t, err)
			now[d.Name+"/"+rec.Base().ID] = members(t, delta.After)
		}
	}
	return now
}

func members(t tester, object jsontext.Value) map[string]string {
	t.Helper()
	all := map[string]string{}
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	_, err := dec.ReadToken()
	must(t, err)
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		must(t, err)
		key := name.String()
		value, err := dec.ReadValue()
		must(t, err)
		all[key] = string(value)
	}
	return all
}

// step makes of a record what an entry says that it became: from holds what it was.
func (n network) step(t tester, e *model.AuditEntry, from, to jsontext.Value) {
	t.Helper()
	key := e.TargetKind + "/" + e.TargetID
	rec := n[key]
	if (from == nil) != (rec == nil) {
		t.Fatalf("%s %s at entry %d, and it was %v", key, e.Event, e.Number, rec)
	}
	if from != nil {
		for name, value := range members(t, from) {
			if rec[name] != value {
				t.Fatalf("%s had %s %s at entry %d, which says %s", key, name, rec[name], e.Number, value)
			}
			delete(rec, name)
		}
	}
	if to == nil {
		if len(rec) > 0 {
			t.Fatalf("of %s %v is left after entry %d", key, rec, e.Number)
		}
		delete(n, key)
		return
	}
	if rec == nil {
		rec = map[string]string{}
		n[key] = rec
	}
	maps.Copy(rec, members(t, to))
}

func same(t tester, got, want network) {
	t.Helper()
	for key := range want {
		if !maps.Equal(got[key], want[key]) {
			t.Fatalf("%s is %v, want %v", key, got[key], want[key])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("there are %d records, want %d", len(got), len(want))
	}
}

// TestReplay has two controllers write at random, with a store that fails at
// times and may get another format meanwhile. Its entries lead from nothing to the
// network as it is, and back.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(*testing.T) {
			memory := storetest.NewMemory()
			faulty := storetest.NewFaulty(memory.Another())
			say(rt, memory, rapid.SampledFrom([]int{format.Ends - 1, format.Current}).Draw(rt, "format"))
			states := []*state.State{open(rt, faulty), open(rt, memory.Another())}
			for _, s := range states {
				defer s.Close()
			}
			must(rt, states[0].Update(context.Background(), state.Program("seed"), func(tx *state.Tx) error { return model.Seed(tx) }))
			for range rapid.IntRange(1, 30).Draw(rt, "writes") {
				switch rapid.IntRange(0, 9).Draw(rt, "fault") {
				case 0:
					faulty.FailNext(storetest.Commit, storetest.ErrInjected)
				case 1:
					faulty.LoseNext(storetest.Commit, storetest.ErrInjected)
				case 2:
					newer(rt, memory)
				}
				s := rapid.SampledFrom(states).Draw(rt, "controller")
				if rapid.IntRange(0, 4).Draw(rt, "told") == 0 {
					_ = s.UpdateSessions(context.Background(), ann, tell("router-connected"))
				} else {
					_ = s.Update(context.Background(), ann, func(tx *state.Tx) error { return change(rt, tx) })
				}
				synctest.Wait()
			}
			for _, s := range states {
				_, err := s.Current(context.Background())
				must(rt, err)
			}
			all := entries(rt, states[0])
			now := network{}
			for _, e := range all {
				now.step(rt, e, e.Before, e.After)
			}
			same(rt, now, current(rt, states[0]))
			same(rt, now, current(rt, states[1]))
			for _, e := range slices.Backward(all) {
				now.step(rt, e, e.After, e.Before)
			}
			same(rt, now, network{})
			verdict, err := (&audit.Log{State: states[1]}).Verify(context.Background())
			if err != nil || len(verdict.Flaws) > 0 || verdict.Found != int64(len(all)) {
				rt.Fatalf("%+v, %v", verdict, err)
			}
		})
	})
}

// change is a write at random, which may be refused.
func change(t *rapid.T, tx *state.Tx) error {
	for range rapid.IntRange(1, 4).Draw(t, "changes") {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		var err error
		switch rapid.IntRange(0, 6).Draw(t, "change") {
		case 0:
			err = model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"})
		case 1:
			err = model.Services.Edit(tx, name, func(s *model.Service) error {
				s.RoleAttributes, s.MaxIdleTimeMillis = rapid.SliceOfN(rapid.StringMatching("[a-z]+"), 0, 3).Draw(t, "attributes"), rapid.Int64Range(0, 3).Draw(t, "idle")
				return nil
			})
		case 2:
			err = model.Services.Delete(tx, name)
		case 3:
			err = model.Identities.Create(tx, &model.Identity{
				Meta: kind.Meta{ID: name}, Name: name, Type: "Device", AuthPolicyID: "default",
				SeldomIdentity: &model.SeldomIdentity{
					DefaultHostingPrecedence: "default", ServiceHostingCosts: map[string]int{"a": rapid.IntRange(0, 2).Draw(t, "cost")},
				},
			})
		case 4:
			err = model.MFAs.Create(tx, &model.MFA{Meta: kind.Meta{ID: name}, IdentityID: name, Secret: hush, RecoveryCodes: []string{hush}})
		case 5:
			err = model.Enrollments.Create(tx, &model.Enrollment{Meta: kind.Meta{ID: name}, IdentityID: name, Method: "ott", Token: hush + name, JWT: hush})
		case 6:
			err = model.Identities.Delete(tx, name)
		}
		if err != nil && rapid.Bool().Draw(t, "give up") {
			return err
		}
	}
	return nil
}

// hush is in every secret of these tests.
const hush = "hush-hush"

// TestEntry reads what there is to say of one change, and looks for secrets.
func TestEntry(t *testing.T) {
	memory := storetest.NewMemory()
	s := open(t, memory)
	defer s.Close()
	must(t, s.Update(t.Context(), state.Program("seed"), func(tx *state.Tx) error { return model.Seed(tx) }))
	n := int64(len(entries(t, s)))
	must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
		if err := model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: "bob"}, Name: "Bob", Type: "User", AuthPolicyID: "default"}); err != nil {
			return err
		}
		password := model.NewPassword("bob", "bobby", hush)
		password.ID = "pw"
		if err := model.Authenticators.Create(tx, password); err != nil {
			return err
		}
		return model.Enrollments.Create(tx, &model.Enrollment{Meta: kind.Meta{ID: "in"}, IdentityID: "bob", Method: "ott", Token: hush, JWT: hush})
	}))
	must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
		return model.Authenticators.Edit(tx, "pw", func(a *model.Authenticator) error { a.PasswordHash = hush + "2"; return nil })
	}))
	all := entries(t, s)[n:]
	var said []string
	for _, e := range all {
		said = append(said, fmt.Sprintf("%s %s %s (%s) by %s %s: %s", e.Event, e.TargetKind, e.TargetID, e.TargetName, e.ActorName, e.Factors, strings.Join(e.Withheld, " ")))
		if e.ActorID != "ann" || e.APISessionID != "s1" || e.Address != "192.0.2.1" || e.Operation != "createService" || e.RequestID != "r1" {
			t.Errorf("entry %d is by %+v", e.Number, e)
		}
		if strings.Contains(string(e.Before)+string(e.After), hush) {
			t.Errorf("entry %d tells a secret: %s, %s", e.Number, e.Before, e.After)
		}
	}
	want := []string{
		"created identity bob (Bob) by Ann password,code: ",
		"created authenticator pw (pw) by Ann password,code: passwordHash",
		"created enrollment in (in) by Ann password,code: token jwt",
		"updated authenticator pw (pw) by Ann password,code: passwordHash",
	}
	if !slices.Equal(said, want) {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	recs, _, err := memory.Range(t.Context(), "+", "+z", 1000, false)
	must(t, err)
	if len(recs) != 3 {
		t.Errorf("three writes made %d blocks", len(recs))
	}
	entry, ok, err := (&audit.Log{State: s}).Lookup(t.Context(), all[1].ID)
	if err != nil || !ok || entry.(*model.AuditEntry).TargetID != "pw" {
		t.Errorf("%+v, %v", entry, err)
	}
}

// TestLarge has records change that are larger than an entry: it says that they did.
func TestLarge(t *testing.T) {
	s := open(t, storetest.NewMemory())
	defer s.Close()
	must(t, s.Update(t.Context(), state.Program("seed"), func(tx *state.Tx) error { return model.Seed(tx) }))
	n := len(entries(t, s))
	data := jsontext.Value(`{"x":"` + strings.Repeat("x", 400<<10) + `"}`)
	must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
		return model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: "bob"}, Name: "Bob", Type: "User", AuthPolicyID: "default", SeldomIdentity: &model.SeldomIdentity{DefaultHostingPrecedence: "default", AppData: data}})
	}))
	e := entries(t, s)[n]
	if !slices.Equal(e.Withheld, []string{"appData"}) || len(e.After) > 1000 || members(t, e.After)["name"] != `"Bob"` {
		t.Errorf("it says %s and withholds %q", e.After, e.Withheld)
	}
}

// TestTried has a write that fits into a commit without its entry alone: who tries it
// hears the same as who makes it.
func TestTried(t *testing.T) {
	s := open(t, storetest.NewMemoryWithin(store.Limits{Ops: 1000, Bytes: 200 << 10}))
	defer s.Close()
	must(t, s.Update(t.Context(), state.Program("seed"), func(tx *state.Tx) error { return model.Seed(tx) }))
	create := func(size int) func(*state.Tx) error {
		return func(tx *state.Tx) error {
			return model.Identities.Create(tx, &model.Identity{
				Meta: kind.Meta{ID: "bob"}, Name: "Bob", Type: "User", AuthPolicyID: "default",
				SeldomIdentity: &model.SeldomIdentity{DefaultHostingPrecedence: "default", AppData: jsontext.Value(`{"x":"` + strings.Repeat("x", size) + `"}`)},
			})
		}
	}
	_, tried := s.Try(t.Context(), state.Nobody, s.Snapshot(), create(150<<10))
	made := s.Update(t.Context(), ann, create(150<<10))
	if !fault.Is(tried, fault.CodeTooLarge) || !fault.Is(made, fault.CodeTooLarge) {
		t.Errorf("tried: %v; made: %v", tried, made)
	}
	step, err := s.Try(t.Context(), state.Nobody, s.Snapshot(), create(50<<10))
	if err != nil || len(step.Changed) != 1 {
		t.Errorf("a small one is %v (%v)", step.Changed, err)
	}
	must(t, s.Update(t.Context(), ann, create(50<<10)))
}
