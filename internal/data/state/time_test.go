package state_test

import (
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
)

// inOrderOfTime returns the names of all places, by when they were created.
func inOrderOfTime(t *testing.T, r kind.Reader) (names []string) {
	t.Helper()
	all := slices.Collect(places.All(r))
	slices.SortFunc(all, func(a, b *place) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for i, p := range all {
		if i > 0 && !p.CreatedAt.After(all[i-1].CreatedAt) {
			t.Errorf("%s and %s have one time, %v", all[i-1].Name, p.Name, p.CreatedAt)
		}
		if !p.UpdatedAt.Equal(p.CreatedAt) {
			t.Errorf("%s is created at %v and updated at %v", p.Name, p.CreatedAt, p.UpdatedAt)
		}
		names = append(names, p.Name)
	}
	return names
}

// TestTimesOfRecords creates records while the clock stands still: several in
// one write, several writes in one commit, and commits one after the other, of
// this controller and another. Each has a time of its own, in order, and none
// is later than its commit.
func TestTimesOfRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory)
		s := open(t, faults, state.Options{})
		write := func(s *state.State, names ...string) error {
			return s.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
				for _, name := range names {
					if err := places.Create(tx, &place{Name: name}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		var want []string
		var writes []func() error
		for i := range 20 {
			a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
			want = append(want, a, b)
			writes = append(writes, func() error { return write(s, a, b) })
		}
		gate, results := queue(t, s, faults, writes...)
		gate.Open()
		for _, r := range results {
			must(t, <-r)
		}
		other := open(t, memory.Another(), state.Options{})
		must(t, write(other, "others"))
		synctest.Wait()
		must(t, write(s, "last"))
		want = slices.Concat([]string{""}, want, []string{"others", "last"})
		if got := inOrderOfTime(t, s.Snapshot()); !slices.Equal(got, want) {
			t.Errorf("by time they are %q, want %q", got, want)
		}
		var before time.Time
		for p := range places.All(s.Snapshot()) {
			if p.CreatedAt.Time().After(s.Snapshot().Time) {
				t.Errorf("%s is created at %v, after the last commit at %v", p.Name, p.CreatedAt, s.Snapshot().Time)
			}
		}
		err := memory.Follow(t.Context(), 0, func(b store.Batch) error {
			if !b.Head.Time.After(before) {
				t.Errorf("commit %d is at %v, after one at %v", b.Rev, b.Head.Time, before)
			}
			if before = b.Head.Time; b.Rev == s.Snapshot().Rev {
				return errEnough
			}
			return nil
		})
		if before.IsZero() {
			t.Fatal(err)
		}
	})
}

// TestTimesOfSessions shows the same of records that are put one by one.
func TestTimesOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory(), state.Options{})
		var before kind.Moment
		for range 3 {
			must(t, s.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
				for range 2 {
					v := new(visit)
					if err := visits.Create(tx, v); err != nil {
						return err
					}
					if !v.CreatedAt.After(before) {
						t.Errorf("a visit is created at %v, after one at %v", v.CreatedAt, before)
					}
					before = v.CreatedAt
				}
				return nil
			}))
		}
	})
}

// TestSortByTime pages through records of one millisecond: they come in the
// order of their creation, and a filter sees the millisecond that answers show.
func TestSortByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, storetest.NewMemory(), state.Options{})
		var want []string
		for i := range 10 {
			name := fmt.Sprint("p", i)
			want = append(want, name)
			must(t, s.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error { return places.Create(tx, &place{Name: name}) }))
		}
		shown := time.Now().UTC().Truncate(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
		names := func(query string) (names []string) {
			q, err := filter.Compile(places.Symbols, query)
			must(t, err)
			for offset := int64(0); ; offset += 3 {
				limit := int64(3)
				recs, total := s.Snapshot().Query(places.Def, q, q.Page(&limit, &offset))
				for _, rec := range recs {
					names = append(names, rec.(*place).Name)
				}
				if offset+3 >= total {
					return names
				}
			}
		}
		if got := names("true sort by createdAt"); !slices.Equal(got, want) {
			t.Errorf("by creation they are %q", got)
		}
		if got := names(fmt.Sprintf("createdAt = datetime(%s) sort by createdAt", shown)); !slices.Equal(got, want) {
			t.Errorf("of the millisecond are %q", got)
		}
		slices.Reverse(want)
		if got := names(fmt.Sprintf("createdAt >= datetime(%s) and createdAt <= datetime(%s) sort by createdAt desc", shown, shown)); !slices.Equal(got, want) {
			t.Errorf("from the last to the first they are %q", got)
		}
		if got := names(fmt.Sprintf("createdAt > datetime(%s) or createdAt < datetime(%s)", shown, shown)); len(got) > 0 {
			t.Errorf("before or after the millisecond are %q", got)
		}
	})
}
