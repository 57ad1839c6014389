package history_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/history"
)

// BenchmarkAt asks for the network as it was ten thousand changes ago, with a hundred
// thousand identities, by a time: nothing that was made for others is there.
func BenchmarkAt(b *testing.B) {
	const identities, changes, each = 100_000, 10_000, 1000
	st, err := etcdstore.Open(b.Context(), etcdstore.Options{Dir: b.TempDir()})
	must(b, err)
	defer st.Close()
	s, err := state.Open(b.Context(), st, model.All, state.Options{Journal: audit.Journal{}})
	must(b, err)
	defer s.Close()
	log := &audit.Log{State: s}
	w := &world{State: s}
	w.write(b, func(tx *state.Tx) error { return model.Seed(tx) })
	for part := range identities / each {
		w.write(b, func(tx *state.Tx) error {
			for i := range each {
				rec := model.Identities.New()
				rec.ID, rec.Name, rec.Type = fmt.Sprint("i", part*each+i), fmt.Sprint("identity-", part*each+i, ".branch.example"), "Device"
				rec.RoleAttributes = []string{fmt.Sprint("branch-", i%97), "all-devices"}
				if err := model.Identities.Create(tx, rec); err != nil {
					return err
				}
			}
			return nil
		})
	}
	then := w.Snapshot().Time
	for part := range changes / 10 {
		w.write(b, func(tx *state.Tx) error {
			for i := range 10 {
				err := model.Identities.Edit(tx, fmt.Sprint("i", (part*10+i)*7%identities), func(rec *model.Identity) error {
					rec.RoleAttributes = []string{fmt.Sprint("branch-", part%89), "all-devices"}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(b, (&audit.Keeper{Log: log, Age: time.Hour, Entries: 1_000_000, Now: time.Now}).Keep(b.Context()))
	last := w.last()
	for name, moment := range map[string]string{"time": then.Format(time.RFC3339Nano), "number": strconv.FormatInt(last-changes, 10)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if past, err := history.New(log, time.Now).At(b.Context(), "at", moment); err != nil || past.Number > last-changes {
					b.Fatal(err, past)
				}
			}
		})
	}
}
