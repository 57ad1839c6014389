package control

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// TestPace holds that nobody who waits as told does more than the rate and what
// may be done at once, and that nobody waits who does less than the rate.
func TestPace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := pace{rate: rapid.IntRange(1, 1000).Draw(t, "rate"), ahead: rapid.IntRange(1, 1000).Draw(t, "ahead")}
		start := time.Unix(1_000_000, 0)
		now, done := start, 0
		for range rapid.IntRange(1, 50).Draw(t, "times") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "later")) * time.Millisecond)
			n := rapid.IntRange(1, 500).Draw(t, "n")
			now = now.Add(p.take(now, n))
			done += n
			if most := float64(p.ahead) + now.Sub(start).Seconds()*float64(p.rate); float64(done) > most+1e-3*float64(p.rate) {
				t.Fatalf("%d are done after %v, at most %g may be", done, now.Sub(start), most)
			}
		}
		now = now.Add(p.lasts(p.ahead) + time.Hour)
		if wait := p.take(now, p.ahead); wait != 0 {
			t.Errorf("one that was quiet has to wait %v", wait)
		}
		if wait := p.take(now.Add(p.lasts(p.ahead)), p.ahead); wait != 0 {
			t.Errorf("one that keeps to the rate has to wait %v", wait)
		}
	})
}

// TestPaceOfWords has a router say and write more than one may at once. The rest
// waits, whether it is read or passed over, and nobody is cut off for it.
func TestPaceOfWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := New(Options{Now: time.Now, Misbehaved: func(string) {}, Log: slog.New(slog.DiscardHandler)})
		r, err := rs.newRouter(&model.Router{}, &channel.Hello{Headers: wire.Headers{message.HeaderVersion: []byte("v1.6.20||||")}}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.ch.Close(nil)
		for _, typ := range []int32{message.TypeCreateCircuit, message.TypeRouterLinks} {
			start, size := time.Now(), 4<<20-frameCost
			for range 24 {
				r.unfit(typ, 0, size)
			}
			if took, want := time.Since(start), time.Second; took != want {
				t.Errorf("96 MiB are heard within %v, want %v: 64 MiB at once and 32 a second", took, want)
			}
			<-time.After(time.Minute)
		}
		start := time.Now()
		for range maxWriteAhead + maxWriteRate {
			if err := r.Writing(t.Context(), func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if took, want := time.Since(start), time.Second; took != want {
			t.Errorf("10,100 writes are made within %v, want %v: 10,000 at once and 100 a second", took, want)
		}
		if r.Context().Err() != nil {
			t.Error("a router is cut off that says much")
		}
	})
}

// TestSeats has one dial be thought about at a time, and another while that waits
// for others.
func TestSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Router{seats: make(seats, 1)}
		ctx, done := r.Think(t.Context())
		second := make(chan func(), 1)
		go func() {
			_, done := r.Think(context.Background())
			second <- done
		}()
		synctest.Wait()
		if len(second) != 0 {
			t.Error("two are thought about at once")
		}
		resume := Rest(ctx)
		synctest.Wait()
		if len(second) != 1 {
			t.Fatal("one that waits for others is in the way")
		}
		go (<-second)()
		resume()
		done()
		Rest(t.Context())() // of what has no seat
	})
}

// TestRecounts has a router connect again and again: it is asked what it carries
// as often as is told, and waits then.
func TestRecounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rs := &Routers{}
		rs.conduct.init(time.Now)
		r, start := &Router{ID: "r", all: rs}, time.Now()
		for range maxRecounts {
			if !r.Recounts(t.Context()) || time.Since(start) != 0 {
				t.Fatal("a router that is quiet has to wait")
			}
		}
		if !r.Recounts(t.Context()) || time.Since(start) != time.Minute/maxRecounts {
			t.Errorf("a restless router is asked again after %v", time.Since(start))
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r.Recounts(gone) {
			t.Error("a router is asked that is gone")
		}
	})
}
