package audit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// TestHeld has a controller that does not archive: entries stay for it, until there is
// room for no more.
func TestHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory())
		defer s.Close()
		archived := int64(0)
		k := &audit.Keeper{
			Log: &audit.Log{State: s}, Age: 24 * time.Hour, Entries: 1000, Now: time.Now,
			Archived: func() (int64, string) { return archived, "another" },
		}
		first := func() int64 { return audit.First(audit.Head(s.Snapshot())) }
		write(t, s, 1700)
		must(t, k.Keep(t.Context()))
		if first() != 1 {
			t.Errorf("the first is %d, and nobody has archived the one before", first())
		}
		archived = 127 // of a block of 128
		must(t, k.Keep(t.Context()))
		if first() != 1 {
			t.Errorf("the first is %d, and one before is not archived", first())
		}
		archived = 128
		must(t, k.Keep(t.Context()))
		if first() != 129 {
			t.Errorf("the first is %d, and 128 are archived", first())
		}
		write(t, s, 1800)
		must(t, k.Keep(t.Context()))
		if n := first(); n <= 129 || n > 1501 {
			t.Errorf("of 3500 entries the first that is kept is %d", n)
		}
		n := first()
		time.Sleep(25 * time.Hour)
		must(t, k.Keep(t.Context()))
		if first() != n {
			t.Errorf("after a day the first is %d and no longer %d", first(), n)
		}
		time.Sleep(8 * 24 * time.Hour)
		must(t, k.Keep(t.Context()))
		if first() != 3500 {
			t.Errorf("after nine days the first is %d", first())
		}
		whole(t, s, 3500, 3500)
	})
}

// TestUnreadableBlock has blocks that nobody can read, one among those that are to be
// packed: others are packed, and in their time all are forgotten. What is left follows.
func TestUnreadableBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		s := open(t, memory.Another())
		defer s.Close()
		write(t, s, 2600)
		spoil := func(first, last int64) {
			t.Helper()
			value, err := model.AuditBlocks.Encode(&model.AuditBlock{Meta: kind.Meta{ID: audit.ID(first), CreatedAt: kind.MomentOf(time.Now()), UpdatedAt: kind.MomentOf(time.Now())}, Last: last, Deflated: []byte("spoilt")})
			must(t, err)
			_, err = memory.Put(t.Context(), store.Head{}, []store.Op{{Key: "+audit-block/" + audit.ID(first), Value: value, Prev: store.Any}})
			must(t, err)
		}
		spoil(1, 1)
		spoil(700, 700)
		k := &audit.Keeper{Log: &audit.Log{State: s}, Age: 24 * time.Hour, Entries: 1_000_000, Now: time.Now}
		must(t, k.Keep(t.Context()))
		if n := len(keys(t, memory)); n > 1010 {
			t.Errorf("2600 entries have %d keys", n)
		}
		v, err := k.Verify(t.Context())
		must(t, err)
		if len(v.Flaws) != 2 || v.Flaws[0].From != 1 || v.Flaws[1].From != 700 {
			t.Errorf("the log is %+v", v)
		}
		k.Entries = 1000
		must(t, k.Keep(t.Context()))
		first := audit.First(audit.Head(s.Snapshot()))
		if first < 1000 {
			t.Errorf("the first is %d", first)
		}
		whole(t, s, first, 2600)
	})
}
