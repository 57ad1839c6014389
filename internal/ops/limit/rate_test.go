package limit_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/ops/limit"
)

// at is whoever is at an address.
func at(address string) limit.Party { return limit.At(netip.MustParseAddr(address)) }

// TestRate tries more than an address may, and again after the time that it
// was told to wait.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := limit.Rate[limit.Party]{PerMinute: 60, Now: time.Now}
		one, other := at("192.0.2.1"), at("192.0.2.2")
		for i := range 60 {
			if wait := r.Take(one); wait != 0 {
				t.Fatalf("attempt %d has to wait %v", i, wait)
			}
		}
		if wait := r.Take(one); wait != time.Second {
			t.Errorf("one too many has to wait %v, want a second", wait)
		}
		if wait := r.Take(other); wait != 0 {
			t.Errorf("another address has to wait %v", wait)
		}
		<-time.After(time.Second)
		if first, second := r.Take(one), r.Take(one); first != 0 || second == 0 {
			t.Errorf("after a second the waits are %v and %v, want none and some", first, second)
		}
	})
}

func TestRateCountsNetworks(t *testing.T) {
	r := limit.Rate[limit.Party]{PerMinute: 1, Now: func() time.Time { return time.Unix(0, 0) }}
	for _, test := range []struct {
		address string
		free    bool
	}{
		{"192.0.2.1", true}, {"192.0.2.1", false}, {"::ffff:192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8::1", true}, {"2001:db8::ffff:2", false}, {"2001:db8:0:1::1", true},
	} {
		if free := r.Take(at(test.address)) == 0; free != test.free {
			t.Errorf("%s may go on: %v", test.address, free)
		}
	}
	if r.Take(limit.Party{}) != 0 {
		t.Error("whoever has no address has to wait at once")
	}
	if any := (&limit.Rate[limit.Party]{}); any.Take(limit.Party{}) != 0 {
		t.Error("a limit of nothing holds somebody up")
	}
}

// TestRateForgets has more addresses than are remembered.
func TestRateForgets(t *testing.T) {
	r := limit.Rate[limit.Party]{PerMinute: 1, Now: func() time.Time { return time.Unix(0, 0) }}
	a := netip.MustParseAddr("10.0.0.0")
	for range 200_000 {
		if r.Take(limit.At(a)) != 0 {
			t.Fatal("a new address has to wait")
		}
		a = a.Next()
	}
}

// TestRateProperty counts against a naive model: no window of a minute and no
// longer one lets more through than the rate and one minute's worth.
func TestRateProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := time.Unix(1_000_000, 0)
		per := rapid.IntRange(1, 100).Draw(rt, "rate")
		r := limit.Rate[limit.Party]{PerMinute: per, Now: func() time.Time { return now }}
		var let []time.Time
		for range 300 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(rt, "pause")))
			if r.Take(at("192.0.2.1")) == 0 {
				let = append(let, now)
			}
		}
		for i := range let {
			for j := i; j < len(let); j++ {
				minutes := let[j].Sub(let[i]).Minutes()
				if most := float64(per)*(1+minutes) + 1; float64(j-i+1) > most {
					rt.Fatalf("%d in %v, want at most %v", j-i+1, let[j].Sub(let[i]), most)
				}
			}
		}
		if len(let) < min(300, per) {
			rt.Fatalf("only %d of 300 were let through at %d a minute", len(let), per)
		}
	})
}

// TestRateOfWhatHappened counts what was not asked for: it never counts for
// longer than a minute and one.
func TestRateOfWhatHappened(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	r := limit.Rate[string]{PerMinute: 4, Now: func() time.Time { return now }}
	if r.Wait("x") != 0 || r.Since("x") != 0 {
		t.Errorf("what never happened counts for %v and %v", r.Wait("x"), r.Since("x"))
	}
	r.Note("x")
	if r.Wait("x") != 0 || r.Since("x") != 15*time.Second {
		t.Errorf("one of four has to wait for %v and counts for %v", r.Wait("x"), r.Since("x"))
	}
	for range 100 {
		r.Note("x")
	}
	if r.Wait("x") != 15*time.Second || r.Since("x") != time.Minute {
		t.Errorf("a hundred have to wait for %v and count for %v", r.Wait("x"), r.Since("x"))
	}
	now = now.Add(time.Hour)
	if r.Since("x") != 0 {
		t.Errorf("after an hour it counts for %v", r.Since("x"))
	}
	var free limit.Rate[string]
	if free.Note("x"); free.Wait("x") != 0 {
		t.Error("a limit of nothing counts")
	}
}
