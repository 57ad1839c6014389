package posture_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"netkeep.internal/internal/policy/posture"
)

// history is a naive Failures: everything that ever failed, in order.
type history []struct{ who, request string }

// kept is what is to be kept of it: the last 20,000, of those that are among
// the last 100 of who made them.
func (h history) kept() map[string][]string {
	of, total := map[string][]string{}, 0
	for _, r := range slices.Backward(h) {
		if len(of[r.who]) < 100 && total < 20_000 {
			of[r.who] = append(of[r.who], r.request)
			total++
		}
	}
	return of
}

func TestFailures(t *testing.T) {
	var f posture.Failures
	if got := f.Of("nobody"); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var all history
	compare := func() {
		t.Helper()
		want := all.kept()
		for i := range 300 {
			who := fmt.Sprint("i", i)
			var got []string
			for _, r := range f.Of(who) {
				got = append(got, r.ServiceID)
			}
			if !slices.Equal(got, want[who]) {
				t.Fatalf("of %s: %d requests %.60q, want %d %.60q", who, len(got), got, len(want[who]), want[who])
			}
		}
	}
	for i := range 60_000 {
		// The first are many, so that some have few and others more than
		// enough.
		who := fmt.Sprint("i", int(float64(300)*random.Float64()*random.Float64()))
		request := fmt.Sprint("v", i)
		all = append(all, struct{ who, request string }{who, request})
		f.Add(who, posture.FailedRequest{ServiceID: request})
		if i == 5_000 || i == 30_000 {
			compare()
		}
	}
	compare()

	gone := func(who string) bool { return len(who)%2 == 0 }
	f.Keep(func(who string) bool { return !gone(who) })
	all = slices.DeleteFunc(all, func(r struct{ who, request string }) bool { return gone(r.who) })
	for who := range all.kept() {
		if got := len(f.Of(who)); got == 0 {
			t.Errorf("%s was to stay", who)
		}
	}
	for i := range 300 {
		if who := fmt.Sprint("i", i); gone(who) && len(f.Of(who)) > 0 {
			t.Errorf("%s was to go", who)
		}
	}
	f.Keep(func(string) bool { return false })
	f.Add("again", posture.FailedRequest{ServiceID: "v"})
	if got := f.Of("again"); len(got) != 1 || got[0].ServiceID != "v" {
		t.Errorf("after all went: %v", got)
	}
}

// TestLargeFailures checks that requests of many failures are bounded by those.
func TestLargeFailures(t *testing.T) {
	var f posture.Failures
	large := posture.FailedRequest{PolicyFailures: []posture.PolicyFailure{{Checks: make([]posture.CheckFailure, 4_999)}}}
	for i := range 100 {
		f.Add(fmt.Sprint("i", i), large)
	}
	total := 0
	for i := range 100 {
		total += len(f.Of(fmt.Sprint("i", i)))
	}
	if total != 40 || len(f.Of("i99")) != 1 || len(f.Of("i60")) != 1 || len(f.Of("i59")) != 0 {
		t.Errorf("%d are kept", total)
	}
	huge := posture.FailedRequest{PolicyFailures: []posture.PolicyFailure{{Checks: make([]posture.CheckFailure, 1_000_000)}}}
	f.Add("huge", huge)
	if len(f.Of("huge")) != 1 || len(f.Of("i99")) != 0 {
		t.Error("one that is larger than all may be is not the only one")
	}
	f.Add("small", posture.FailedRequest{})
	if len(f.Of("huge")) != 0 || len(f.Of("small")) != 1 {
		t.Error("it stays when the next one comes")
	}
}
