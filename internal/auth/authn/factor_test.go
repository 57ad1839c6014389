package authn

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pquerna/otp/hotp"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

// enrolled returns a caller that must show a second factor, and codes for it.
func enrolled(t *testing.T) (f *Factors, who *Caller, code func(steps int) string) {
	t.Helper()
	w := newWorld(t)
	f = &Factors{State: w.State, Now: time.Now, Issuer: "test"}
	who = w.open(t)
	if _, err := f.Start(t.Context(), By(who.identity), who); err != nil {
		t.Fatal(err)
	}
	m, _ := model.MFAOf(w.State.Snapshot(), who.Identity().ID)
	code = func(steps int) string {
		t.Helper()
		text, err := hotp.GenerateCode(m.Secret, uint64(time.Now().Unix()/30+int64(steps)))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if err := f.Confirm(t.Context(), By(who.identity), who, code(-2)); err != nil {
		t.Fatal(err)
	}
	return f, who, code
}

// TestGuesses tries codes until no more are taken, and waits.
func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, who, code := enrolled(t)
		for range 2 {
			for n := range maxGuesses {
				if err := f.Show(t.Context(), By(who.identity), who, "nocode"); !fault.Is(err, fault.CodeMFACode) {
					t.Fatalf("wrong code %d: %v", n, err)
				}
			}
			for _, try := range []func() error{
				func() error { return f.Show(t.Context(), By(who.identity), who, code(0)) },
				func() error { return f.Remove(t.Context(), By(who.identity), who, code(0)) },
				func() error { return f.Renew(t.Context(), By(who.identity), who, code(0)) },
				func() error { _, err := f.Recover(t.Context(), By(who.identity), who, code(0)); return err },
				func() error { return f.Confirm(t.Context(), By(who.identity), who, code(0)) },
			} {
				if err := try(); !fault.Is(err, fault.CodeRateLimited) {
					t.Errorf("after too many: %v", err)
				}
			}
			time.Sleep(guessWindow - time.Second)
			if err := f.Show(t.Context(), By(who.identity), who, code(0)); !fault.Is(err, fault.CodeRateLimited) {
				t.Errorf("before the time is over: %v", err)
			}
			time.Sleep(time.Second)
			if err := f.Show(t.Context(), By(who.identity), who, code(0)); err != nil {
				t.Errorf("after the time is over: %v", err)
			}
		}
	})
}

// TestGuessesOfADay tries as many wrong codes as are judged in a day, all at once and
// a few at a time: too few to be right by chance, and in the end the owner gets in.
func TestGuessesOfADay(t *testing.T) {
	const most = 300
	for _, pause := range []time.Duration{time.Second, time.Minute, 4 * time.Minute, guessWindow, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			f, who, code := enrolled(t)
			judged := 0
			for begun := time.Now(); time.Since(begun) < 24*time.Hour; time.Sleep(pause) {
				for range maxGuesses {
					if fault.Is(f.Show(t.Context(), By(who.identity), who, "nocode"), fault.CodeMFACode) {
						judged++
					}
				}
			}
			if judged < maxGuesses || judged > most {
				t.Errorf("of codes that are tried every %s %d were judged in a day, want at most %d", pause, judged, most)
			}
			time.Sleep(guessWindow)
			if err := f.Show(t.Context(), By(who.identity), who, code(0)); err != nil {
				t.Errorf("the right one after all of them: %v", err)
			}
		})
	}
}

// TestParallelCodes tries many codes at the same time.
func TestParallelCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, who, _ := enrolled(t)
		var judged atomic.Int64
		var all sync.WaitGroup
		for n := range 200 {
			all.Go(func() {
				err := f.Show(t.Context(), By(who.identity), who, fmt.Sprintf("%06d", n))
				if !fault.Is(err, fault.CodeRateLimited) {
					judged.Add(1)
				}
			})
		}
		all.Wait()
		if n := judged.Load(); n > maxGuesses {
			t.Errorf("%d codes were judged, want at most %d", n, maxGuesses)
		}
	})
}

// TestHangingUpIsNoWayAround leaves before the code is judged.
func TestHangingUpIsNoWayAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, who, _ := enrolled(t)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range maxGuesses {
			if err := f.Show(gone, By(who.identity), who, "nocode"); err == nil {
				t.Fatal("a wrong code was accepted")
			}
		}
		if err := f.Show(t.Context(), By(who.identity), who, "nocode"); !fault.Is(err, fault.CodeRateLimited) {
			t.Errorf("error %v", err)
		}
	})
}

// TestRightCodesDoNotCount uses more right codes than wrong ones are allowed,
// and asks for what is not there.
func TestRightCodesDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, who, code := enrolled(t)
		for n := range 3 * maxGuesses {
			time.Sleep(time.Second * 30)
			if err := f.Show(t.Context(), By(who.identity), who, code(0)); err != nil {
				t.Fatalf("right code %d: %v", n, err)
			}
		}
		time.Sleep(time.Second * 30)
		if err := f.Remove(t.Context(), By(who.identity), who, code(0)); err != nil {
			t.Fatal(err)
		}
		for range 3 * maxGuesses {
			if err := f.Show(t.Context(), By(who.identity), who, "nocode"); !fault.Is(err, fault.CodeMFAMissing) {
				t.Fatalf("without a second factor: %v", err)
			}
		}
	})
}

// TestGuessesAreForgotten checks that tries of long ago take no memory.
func TestGuessesAreForgotten(t *testing.T) {
	var g guesses
	now := time.Unix(0, 0)
	for n := range 1000 {
		g.take(fmt.Sprint(n), now)
		now = now.Add(time.Second)
	}
	if n := len(g.tries); n > 600 {
		t.Errorf("the tries of %d identities are remembered after 1000 s", n)
	}
}
