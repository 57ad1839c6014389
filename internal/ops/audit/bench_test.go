package audit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// forgetful is a store that keeps nothing that is written to it, and repeats nothing:
// what is left is what a State does.
type forgetful struct {
	store.Store
	rev store.Rev
}

func (f *forgetful) Load(context.Context, func(store.Record) error) (store.Mark, error) {
	f.rev = 1
	return store.Mark{Rev: 1, Head: 1}, nil
}

func (f *forgetful) Commit(ctx context.Context, _ store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	return f.Put(ctx, head, ops)
}

func (f *forgetful) Put(context.Context, store.Head, []store.Op) (store.Written, error) {
	f.rev++
	return store.Written{Rev: f.rev, After: f.rev - 1}, nil
}

func (f *forgetful) Follow(ctx context.Context, _ store.Rev, _ func(store.Batch) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// BenchmarkWrite changes an identity among ten thousand, with entries and without:
// once with a store that costs nothing, and once with the real one.
func BenchmarkWrite(b *testing.B) {
	for _, journal := range []state.Journal{nil, audit.Journal{}} {
		name := "without"
		if journal != nil {
			name = "with"
		}
		b.Run("memory/"+name, func(b *testing.B) { benchmarkWrite(b, &forgetful{Store: storetest.NewMemory()}, journal) })
		b.Run("etcd/"+name, func(b *testing.B) {
			st, err := etcdstore.Open(b.Context(), etcdstore.Options{Dir: b.TempDir()})
			must(b, err)
			defer st.Close()
			benchmarkWrite(b, st, journal)
		})
	}
}

func benchmarkWrite(b *testing.B, st store.Store, journal state.Journal) {
	s, err := state.Open(b.Context(), st, model.All, state.Options{Journal: journal})
	must(b, err)
	defer s.Close()
	must(b, s.Update(b.Context(), ann, func(tx *state.Tx) error { return model.Seed(tx) }))
	for part := range 10 {
		must(b, s.Update(b.Context(), ann, func(tx *state.Tx) error {
			for i := range 1000 {
				rec := model.Identities.New()
				rec.ID, rec.Name, rec.Type = fmt.Sprint("i", part*1000+i), fmt.Sprint("identity-", part*1000+i, ".branch.example"), "Device"
				rec.RoleAttributes = []string{fmt.Sprint("branch-", i%97), "all-devices"}
				if err := model.Identities.Create(tx, rec); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		must(b, s.Update(b.Context(), ann, func(tx *state.Tx) error {
			return model.Identities.Edit(tx, fmt.Sprint("i", i%10_000), func(rec *model.Identity) error {
				rec.RoleAttributes = []string{fmt.Sprint("branch-", i%89), "all-devices"}
				return nil
			})
		}))
	}
}

// BenchmarkQuery asks for a page of a hundred thousand entries, a tenth of what a
// store keeps by default, by who, what, target and time.
func BenchmarkQuery(b *testing.B) {
	const all, each = 100_000, 1000
	st, err := etcdstore.Open(b.Context(), etcdstore.Options{Dir: b.TempDir()})
	must(b, err)
	defer st.Close()
	s, err := state.Open(b.Context(), st, model.All, state.Options{Journal: audit.Journal{}})
	must(b, err)
	defer s.Close()
	for part := range all / each {
		by := ann
		by.ID = fmt.Sprint("admin-", part%7)
		must(b, s.Update(b.Context(), by, func(tx *state.Tx) error {
			for i := range each {
				name := fmt.Sprint("service-", part*each+i)
				if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	k := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 10 * all, Now: time.Now}
	must(b, k.Keep(b.Context()))
	for _, text := range []string{
		"sort by number desc", `targetId = "service-70000"`, `actorId = "admin-3" and number > 99000 sort by number desc`,
		`targetKind = "service" and createdAt > datetime(2100-01-01T00:00:00Z)`, `event = "deleted"`,
	} {
		b.Run(text, func(b *testing.B) {
			q, err := filter.Compile(model.AuditEntries.Symbols, text)
			must(b, err)
			for b.Loop() {
				if _, _, err := k.Query(b.Context(), q, q.Page(nil, nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
