package audit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// write makes so many changes of a service, one a write.
func write(t *testing.T, s *state.State, changes int) {
	t.Helper()
	for i := range changes {
		must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
			return model.Services.Upsert(tx, "web", func(v *model.Service) { v.Name, v.TerminatorStrategy = fmt.Sprint("web ", i), "random" })
		}))
	}
}

// keys are those of blocks.
func keys(t *testing.T, m *storetest.Memory) []string {
	t.Helper()
	recs, more, err := m.Range(t.Context(), "+", "+z", 100_000, false)
	if err != nil || more {
		t.Fatal(more, err)
	}
	var all []string
	for _, rec := range recs {
		all = append(all, rec.Key)
	}
	return all
}

func numbers(entries []*model.AuditEntry) (all []int64) {
	for _, e := range entries {
		all = append(all, e.Number)
	}
	return all
}

func whole(t *testing.T, s *state.State, first, last int64) {
	t.Helper()
	v, err := (&audit.Log{State: s}).Verify(t.Context())
	if err != nil || len(v.Flaws) > 0 || v.First != first || v.Last != last || v.Found != last-first+1 {
		t.Errorf("the log is %+v (%v), want %d to %d", v, err, first, last)
	}
}

// TestKeeper packs a log and forgets the beginning of it.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s, other := open(t, memory.Another()), open(t, memory.Another())
		defer s.Close()
		defer other.Close()
		write(t, s, 2600)
		before := entries(t, s)
		k := &audit.Keeper{Log: &audit.Log{State: s}, Age: 24 * time.Hour, Entries: 1_000_000, Now: time.Now}
		must(t, k.Keep(t.Context()))
		if n := len(keys(t, memory)); n > 610 {
			t.Errorf("2600 entries have %d keys", n)
		}
		whole(t, s, 1, 2600)
		after := entries(t, s)
		if !slices.EqualFunc(before, after, func(a, b *model.AuditEntry) bool { return a.ID == b.ID && string(a.After) == string(b.After) }) {
			t.Error("entries are not what they were")
		}
		n := len(keys(t, memory))
		must(t, k.Keep(t.Context()))
		if again := len(keys(t, memory)); again != n {
			t.Errorf("%d keys became %d", n, again)
		}

		k.Entries = 1500
		must(t, k.Keep(t.Context()))
		synctest.Wait()
		kept := entries(t, other)
		if n := len(kept); n < 1500 || n > 2000 || kept[n-1].Number != 2600 {
			t.Errorf("of 2600 entries %d are left", n)
		}
		whole(t, other, kept[0].Number, 2600)

		time.Sleep(25 * time.Hour)
		write(t, other, 1)
		synctest.Wait()
		must(t, k.Keep(t.Context()))
		if left := entries(t, s); len(left) != 1 || left[0].Number != 2601 {
			t.Errorf("a day later there are %d", numbers(left))
		}
		whole(t, s, 2601, 2601)
	})
}

// counting counts what is read of a store, and what an engine looks at for that.
type counting struct {
	store.Store
	times, read, seen int
}

func (c *counting) Range(ctx context.Context, from, to string, most int, newest bool) ([]store.Record, bool, error) {
	recs, more, err := c.Store.Range(ctx, from, to, most, newest)
	c.times++
	c.read += len(recs)
	all, _, _ := c.Store.Range(ctx, from, to, 100_000, newest)
	c.seen += len(all)
	return recs, more, err
}

// TestKeeperLooksClose has a log of which as much leaves as comes to it: what is
// between is looked at by nobody.
func TestKeeperLooksClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counting{Store: storetest.NewMemory()}
		s := open(t, c)
		defer s.Close()
		archived := int64(0)
		k := &audit.Keeper{
			Log: &audit.Log{State: s}, Age: 24 * time.Hour, Entries: 2048, Now: time.Now,
			Archived: func() (int64, string) { return archived, "this one" },
		}
		keep := func() {
			t.Helper()
			for leaf, err := range k.Leaving(t.Context(), archived) {
				must(t, err)
				archived = leaf.Lines[len(leaf.Lines)-1].Number
			}
			must(t, k.Keep(t.Context()))
		}
		write(t, s, 3000)
		keep()
		keep() // what it packed leaves too
		for range 3 {
			write(t, s, 128)
			c.read, c.seen = 0, 0
			before := audit.First(audit.Head(s.Snapshot()))
			keep()
			if after := audit.First(audit.Head(s.Snapshot())); after != before+128 {
				t.Errorf("entries are kept from %d on, and %d before", after, before)
			}
			if c.read > 128+8 || c.seen > 128+64 {
				t.Errorf("for 128 entries that come and 128 that leave, %d blocks were read and %d looked at", c.read, c.seen)
			}
		}
	})
}

// TestKeeperReadsOnce packs blocks of many changes that were made at once, which is no
// reason to read those that come after them again and again.
func TestKeeperReadsOnce(t *testing.T) {
	memory := storetest.NewMemory()
	c := &counting{Store: memory.Another()}
	s := open(t, c)
	defer s.Close()
	const writes, each = 40, 200
	for part := range writes {
		must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
			for i := range each {
				name := fmt.Sprint("service ", part*each+i)
				if err := model.Services.Create(tx, &model.Service{Name: name, TerminatorStrategy: "random"}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	blocks := len(keys(t, memory))
	c.read = 0
	must(t, (&audit.Keeper{Log: &audit.Log{State: s}, Age: 24 * time.Hour, Entries: 1_000_000, Now: time.Now}).Keep(t.Context()))
	if c.read > 3*blocks {
		t.Errorf("%d blocks were read %d times", blocks, c.read)
	}
	whole(t, s, 1, writes*each)
}

// TestKeepersMeet has a block go that is about to be packed: all goes on, and a
// check tells of it.
func TestKeepersMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faulty := storetest.NewFaulty(memory.Another())
		s := open(t, faulty)
		defer s.Close()
		write(t, s, 1100)
		k := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1_000_000, Now: time.Now}
		gate := faulty.BlockNext(storetest.Put)
		kept := make(chan error)
		go func() { kept <- k.Keep(t.Context()) }()
		<-gate.Reached()
		_, err := memory.Put(t.Context(), store.Head{}, []store.Op{{Key: "+audit-block/" + audit.ID(7), Prev: store.Any}})
		must(t, err)
		gate.Open()
		if err := <-kept; err == nil {
			t.Error("a block that is gone was packed")
		}
		must(t, k.Keep(t.Context()))
		v, err := (&audit.Log{State: s}).Verify(t.Context())
		must(t, err)
		if want := []audit.Flaw{{From: 7, To: 7, What: "missing"}}; !slices.Equal(v.Flaws, want) {
			t.Errorf("the log is %+v", v)
		}
		write(t, s, 1)
	})
}

// TestQuery asks for entries in all orders.
func TestQuery(t *testing.T) {
	s := open(t, storetest.NewMemory())
	defer s.Close()
	write(t, s, 1200)
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: "db"}, Name: "db", TerminatorStrategy: "random"})
	}))
	k := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1_000_000, Now: time.Now}
	must(t, k.Keep(t.Context()))
	for _, tt := range []struct {
		filter string
		want   []int64
		total  int64
	}{
		{"limit 3", []int64{1, 2, 3}, 1201},
		{"sort by id desc limit 3", []int64{1201, 1200, 1199}, 1201},
		{"sort by createdAt desc skip 1199 limit 3", []int64{2, 1}, 1201},
		{"skip 1200 limit 3", []int64{1201}, 1201},
		{"skip 5000 limit 3", nil, 1201},
		{`targetId = "db"`, []int64{1201}, 1},
		{`event = "created"`, []int64{1, 1201}, 2},
		{`actorId = "ann" and event != "updated"`, []int64{1}, 1},
		{`actorName = "tester"`, []int64{1201}, 1},
		{`targetId = "web" and number > 600 sort by number desc skip 1 limit 2`, []int64{1199, 1198}, 600},
		{`targetName = "web 7"`, []int64{8}, 1},
		{`targetId = "nothing"`, nil, 0},
		{"sort by targetName limit 2", []int64{1201, 1}, 1201},
	} {
		q, err := filter.Compile(model.AuditEntries.Symbols, tt.filter)
		must(t, err)
		recs, total, err := k.Query(t.Context(), q, q.Page(nil, nil))
		must(t, err)
		var got []int64
		for _, rec := range recs {
			got = append(got, rec.(*model.AuditEntry).Number)
		}
		if !slices.Equal(got, tt.want) || total != tt.total {
			t.Errorf("%s: %d of %d, want %d of %d", tt.filter, got, total, tt.want, tt.total)
		}
	}
	for _, id := range []string{"", "1", "000000001202", "000000000000", "x"} {
		if _, ok, err := k.Lookup(t.Context(), id); ok || err != nil {
			t.Errorf("%q is found (%v)", id, err)
		}
	}
	for _, n := range []int64{1, 7, 500, 501, 1201} {
		if rec, ok, err := k.Lookup(t.Context(), audit.ID(n)); err != nil || !ok || rec.(*model.AuditEntry).Number != n {
			t.Errorf("%d is %v (%v)", n, rec, err)
		}
	}
}
