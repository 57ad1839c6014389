package recent_test

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/ops/recent"
)

// noted is one look, as somebody writes it down who has all the room there is.
type noted struct {
	minute  int64
	grew    recent.Minute
	carried map[string]uint64
}

// TestDay looks at random times at what grew at random, and compares with a list of all
// looks.
func TestDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 31, 0, 0, rapid.IntRange(0, 59).Draw(t, "second"), 0, time.UTC)
		totals := recent.Totals{Carried: map[string]uint64{}}
		day := recent.New(func() recent.Totals {
			told := totals
			told.Carried = maps.Clone(totals.Carried)
			return told
		}, func() time.Time { return now })
		var all []noted
		for range rapid.IntRange(0, 40).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 30, 60, 61, 600, 3600, 7 * 3600, 25 * 3600}).Draw(t, "seconds")) * time.Second)
			grew := recent.Minute{
				Logins: rapid.Uint64Range(0, 9).Draw(t, "logins"), LoginsRefused: rapid.Uint64Range(0, 9).Draw(t, "refused"),
				Dials: rapid.Uint64Range(0, 9).Draw(t, "dials"), DialsRefused: rapid.Uint64Range(0, 9).Draw(t, "failed"),
				Circuits: rapid.IntRange(0, 9).Draw(t, "circuits"), Slowest: time.Duration(rapid.IntRange(0, 9).Draw(t, "slowest")),
			}
			carried := rapid.MapOfN(rapid.SampledFrom([]string{"", "a", "b", "c"}), rapid.Uint64Range(0, 1000), 0, 4).Draw(t, "carried")
			totals.Logins += grew.Logins
			totals.LoginsRefused += grew.LoginsRefused
			totals.Dials += grew.Dials
			totals.DialsRefused += grew.DialsRefused
			totals.Circuits, totals.Slowest = grew.Circuits, grew.Slowest
			for id, n := range carried {
				totals.Carried[id] += n
				grew.Bytes += n
			}
			all = append(all, noted{now.Unix() / 60, grew, carried})
			day.Look()
		}
		totals.Circuits, totals.Slowest = 0, 0
		step := rapid.SampledFrom([]int{1, 2, 5, 10, 15, 20, 30, 60}).Draw(t, "step")
		compare(t, day.Report(step), all, now, int64(step))
	})
}

// compare holds a report beside all looks.
func compare(t *rapid.T, r recent.Report, all []noted, now time.Time, step int64) {
	if len(r.Steps) != recent.Minutes/int(step) || r.From.Add(time.Duration(len(r.Steps))*r.Step).Before(now) || r.From.Unix()%(60*step) != 0 {
		t.Fatalf("%d steps of %s from %s at %s", len(r.Steps), r.Step, r.From, now)
	}
	first, want := r.From.Unix()/60, make([]recent.Minute, len(r.Steps))
	services := map[string]uint64{}
	for _, look := range all {
		if look.minute < first {
			continue
		}
		w := &want[(look.minute-first)/step]
		w.Logins += look.grew.Logins
		w.LoginsRefused += look.grew.LoginsRefused
		w.Dials += look.grew.Dials
		w.DialsRefused += look.grew.DialsRefused
		w.Bytes += look.grew.Bytes
		w.Circuits, w.Slowest = max(w.Circuits, look.grew.Circuits), max(w.Slowest, look.grew.Slowest)
		for id, n := range look.carried {
			if n > 0 {
				services[id] += n
			}
		}
	}
	for i := range want {
		if r.Steps[i] != want[i] {
			t.Fatalf("step %d is %+v, want %+v", i, r.Steps[i], want[i])
		}
	}
	got := map[string]uint64{}
	for i, s := range r.Services {
		got[s.ID] = s.Bytes
		if i > 0 && s.Bytes > r.Services[i-1].Bytes {
			t.Fatalf("%v are not in order", r.Services)
		}
	}
	if !maps.Equal(got, services) {
		t.Fatalf("services carried %v, want %v", got, services)
	}
}

// TestManyServices has more services than are told apart: nothing that they carried is
// lost, and those with most are named.
func TestManyServices(t *testing.T) {
	now := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	totals := recent.Totals{Carried: map[string]uint64{}}
	day := recent.New(func() recent.Totals { return recent.Totals{Carried: maps.Clone(totals.Carried)} }, func() time.Time { return now })
	var all uint64
	for i := range 2 * recent.MaxServices {
		n := uint64(1 + i)
		totals.Carried[fmt.Sprint("service-", i)] = n
		all += n
		day.Look()
		now = now.Add(time.Second)
	}
	r := day.Report(10)
	if len(r.Services) > recent.MaxServices+1 {
		t.Errorf("%d services are told apart", len(r.Services))
	}
	var sum, most uint64
	for _, s := range r.Services {
		sum += s.Bytes
		if s.ID != recent.Other {
			most = max(most, s.Bytes)
		}
	}
	if sum != all || most != 2*recent.MaxServices {
		t.Errorf("they carried %d, want %d; the largest %d", sum, all, most)
	}
}

// TestBegunAnew has a count begin anew, and the clock go back.
func TestBegunAnew(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	totals := recent.Totals{Dials: 10, Carried: map[string]uint64{"a": 100}}
	day := recent.New(func() recent.Totals { return totals }, func() time.Time { return now })
	day.Look()
	totals = recent.Totals{Dials: 12, Carried: map[string]uint64{"a": 30}}
	now = now.Add(-time.Hour)
	r := day.Report(60)
	if last := r.Steps[len(r.Steps)-1]; last.Dials != 12 || last.Bytes != 130 {
		t.Errorf("the last hour is %+v", last)
	}
}

// TestRun looks by itself.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		day := recent.New(func() recent.Totals { looks++; return recent.Totals{Circuits: looks} }, time.Now)
		go day.Run(t.Context())
		time.Sleep(time.Hour + time.Second)
		synctest.Wait()
		if looks != 60 {
			t.Errorf("there were %d looks in an hour", looks)
		}
	})
}
