package limit_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/ops/limit"
)

var (
	stranger = at("192.0.2.1")
	other    = at("192.0.2.2")
	member   = limit.Party{Rank: limit.Member, ID: "member"}
	admin    = limit.Party{Rank: limit.Admin, ID: "admin"}
)

// patient is the pace of somebody who is waited for.
var patient = limit.Pace{First: time.Hour}

// whole is a body that is all there.
func whole(r io.Reader) limit.Source {
	return limit.Source{Reader: r, Until: func(time.Time) error { return errors.ErrUnsupported }}
}

func ofSize(n int) limit.Source { return whole(strings.NewReader(strings.Repeat("x", n))) }

// wire is a body that comes when it is written to.
type wire struct {
	mu    sync.Mutex
	come  *sync.Cond
	data  []byte
	until time.Time
	ended bool
	timer *time.Timer
}

func newWire() *wire {
	w := new(wire)
	w.come = sync.NewCond(&w.mu)
	return w
}

func (w *wire) source() limit.Source { return limit.Source{Reader: w, Until: w.Until} }

func (w *wire) Until(until time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.until = until; !until.IsZero() {
		w.timer = time.AfterFunc(time.Until(until), w.come.Broadcast)
	}
	w.come.Broadcast()
	return nil
}

func (w *wire) late() bool { return !w.until.IsZero() && !time.Now().Before(w.until) }

func (w *wire) Read(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.data) == 0 && !w.ended && !w.late() {
		w.come.Wait()
	}
	switch {
	case w.late():
		return 0, os.ErrDeadlineExceeded
	case len(w.data) == 0:
		return 0, io.EOF
	}
	n := copy(p, w.data)
	w.data = w.data[n:]
	return n, nil
}

func (w *wire) send(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.data = append(w.data, make([]byte, n)...)
	w.come.Broadcast()
}

func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.come.Broadcast()
}

// slowly reads a body that comes by a wire, and tells how it went.
func slowly(b *limit.Bodies, p limit.Party, pace limit.Pace) (*wire, chan error) {
	w, result := newWire(), make(chan error, 1)
	go func() {
		_, release, err := b.Read(p, w.source(), 1<<20, pace)
		if err == nil {
			release()
		}
		result <- err
	}()
	return w, result
}

func TestBodies(t *testing.T) {
	b := limit.Bodies{Bytes: 64 << 10, Max: 10, Now: time.Now}
	text := strings.Repeat("x", 20<<10)
	got, release, err := b.Read(stranger, whole(strings.NewReader(text)), 1<<20, patient)
	if err != nil || string(got) != text {
		t.Fatalf("%d bytes are read: %v", len(got), err)
	}
	if _, _, err := b.Read(other, ofSize(60<<10), 1<<20, patient); !errors.Is(err, limit.ErrFull) {
		t.Errorf("more than fits beside one that is worked on gives %v", err)
	}
	release()
	if b.Used() != 0 {
		t.Errorf("%d bytes are held for nobody", b.Used())
	}
	got, release, err = b.Read(stranger, ofSize(20<<10), 100, patient)
	if err != nil || len(got) != 101 {
		t.Errorf("a body of more than the most is read to %d bytes: %v", len(got), err)
	}
	release()
	_, _, err = b.Read(stranger, whole(iotest.ErrReader(io.ErrUnexpectedEOF)), 100, patient)
	if !errors.Is(err, io.ErrUnexpectedEOF) || b.Used() != 0 {
		t.Errorf("a broken body gives %v and leaves %d bytes", err, b.Used())
	}
	if _, _, err := new(limit.Bodies).Read(stranger, ofSize(1), 100, patient); !errors.Is(err, limit.ErrFull) {
		t.Errorf("where there is no room for any, one gives %v", err)
	}
}

// TestBodiesProperty reads bodies in whatever pieces they come.
func TestBodiesProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 20_000).Draw(rt, "body")
		most := rapid.Int64Range(0, 25_000).Draw(rt, "most")
		b := limit.Bodies{Bytes: 1 << 20, Max: 1, Now: time.Now}
		var r io.Reader = bytes.NewReader(body)
		if rapid.Bool().Draw(rt, "slowly") {
			r = iotest.OneByteReader(r)
		}
		got, release, err := b.Read(stranger, whole(r), most, patient)
		if want := body[:min(len(body), int(most)+1)]; err != nil || !bytes.Equal(got, want) {
			rt.Fatalf("%d of %d bytes are read, want %d: %v", len(got), len(body), len(want), err)
		}
		if int64(len(got)) > b.Used() {
			rt.Fatalf("%d bytes are held for %d", b.Used(), len(got))
		}
		release()
		if b.Used() != 0 {
			rt.Fatalf("%d bytes are held for nobody", b.Used())
		}
	})
}

// TestSlowestGivesWay fills all places with bodies that do not come.
func TestSlowestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &limit.Bodies{Bytes: 1 << 20, Max: 3, Now: time.Now}
		_, lone := slowly(b, other, patient)
		synctest.Wait()
		_, first := slowly(b, stranger, patient)
		synctest.Wait()
		second, later := slowly(b, stranger, patient)
		synctest.Wait()
		_, release, err := b.Read(other, ofSize(100), 1<<20, patient)
		if err != nil {
			t.Fatalf("a body that is there finds no room: %v", err)
		}
		release()
		if err := <-first; !errors.Is(err, limit.ErrSlow) {
			t.Errorf("the oldest of the one who has most gets %v", err)
		}
		select {
		case err := <-lone:
			t.Errorf("the one who has only one loses it: %v", err)
		case err := <-later:
			t.Errorf("the younger one goes too: %v", err)
		default:
		}
		second.send(100)
		second.end()
		if err := <-later; err != nil {
			t.Errorf("the younger one comes after all: %v", err)
		}
		_, _ = slowly(b, stranger, patient)
		_, _ = slowly(b, stranger, patient)
		synctest.Wait()
		for range 3 { // whatever is left gives way to members
			_, result := slowly(b, member, patient)
			synctest.Wait()
			select {
			case err := <-result:
				t.Errorf("a member has to go: %v", err)
			default:
			}
		}
		if _, _, err := b.Read(stranger, ofSize(1), 100, patient); !errors.Is(err, limit.ErrFull) {
			t.Errorf("a stranger takes the place of a member: %v", err)
		}
		if err := <-lone; !errors.Is(err, limit.ErrSlow) {
			t.Errorf("a stranger keeps its place from a member: %v", err)
		}
		time.Sleep(2 * time.Hour) // nobody is waited for that long
		synctest.Wait()
		if b.Used() != 0 {
			t.Errorf("%d bytes are held for nobody", b.Used())
		}
	})
}

// TestLargestGivesWay fills the memory with bodies that end short of their end.
func TestLargestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &limit.Bodies{Bytes: 256 << 10, Max: 100, Share: 50, Now: time.Now}
		var results []chan error
		for range 10 {
			w, result := slowly(b, member, patient)
			w.send(50 << 10)
			synctest.Wait()
			results = append(results, result)
		}
		held := b.Used()
		if held > 128<<10 || held < 100<<10 {
			t.Errorf("one party holds %d bytes, want up to its half", held)
		}
		for i, result := range results[:8] {
			select {
			case err := <-result:
				if !errors.Is(err, limit.ErrSlow) {
					t.Errorf("body %d gets %v", i, err)
				}
			default:
				t.Errorf("body %d is still there", i)
			}
		}
		// One that is large has room all the same, and then there is no other.
		_, release, err := b.Read(admin, ofSize(200<<10), 1<<20, patient)
		if err != nil {
			t.Fatalf("another party has no room: %v", err)
		}
		if _, _, err := b.Read(admin, ofSize(10), 1<<20, patient); !errors.Is(err, limit.ErrShare) {
			t.Errorf("one that has more than its share gets %v", err)
		}
		release()
		time.Sleep(2 * time.Hour)
	})
}

// TestPace sends bodies at all speeds.
func TestPace(t *testing.T) {
	pace := limit.Pace{First: 5 * time.Second, Least: 1000, Last: 20 * time.Second}
	for name, test := range map[string]struct {
		pace   limit.Pace
		perSec int
		send   time.Duration
		gone   time.Duration // 0 if it arrives
	}{
		"at once":                {pace, 50_000, time.Second, 0},
		"nothing":                {pace, 0, time.Hour, 5 * time.Second},
		"a stranger's":           {limit.Pace{First: 5 * time.Second}, 20_000, 6 * time.Second, 5 * time.Second},
		"fast enough":            {pace, 5000, 15 * time.Second, 0},
		"fast but without end":   {pace, 5000, time.Hour, 20 * time.Second},
		"a stranger's in time":   {limit.Pace{First: 5 * time.Second}, 20_000, 4 * time.Second, 0},
		"slower than it has to":  {pace, 500, time.Hour, 8 * time.Second},
		"slow and soon complete": {pace, 100, 4 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &limit.Bodies{Bytes: 1 << 20, Max: 10, Now: time.Now}
				start := time.Now()
				w, result := slowly(b, member, test.pace)
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					for range int(min(test.send, time.Minute) / time.Second) {
						w.send(test.perSec)
						time.Sleep(time.Second)
					}
					w.end()
				}()
				err := <-result
				took := time.Since(start)
				if test.gone == 0 && err != nil {
					t.Errorf("it is lost after %v: %v", took, err)
				}
				// Time is given for what has filled its room, so it may be less by that.
				if test.gone != 0 && (!errors.Is(err, limit.ErrSlow) || took > test.gone || took < test.gone-4*time.Second) {
					t.Errorf("it ends after %v with %v, want to lose it after %v", took, err, test.gone)
				}
				if b.Used() != 0 {
					t.Errorf("%d bytes are held for nobody", b.Used())
				}
				<-sent
			})
		})
	}
}

// TestFinishedBodyIsLeftAlone reads a body to its end: whatever its source is
// used for next is not bounded by it.
func TestFinishedBodyIsLeftAlone(t *testing.T) {
	b := limit.Bodies{Bytes: 64 << 10, Max: 1, Now: time.Now}
	w := newWire()
	w.send(10)
	w.end()
	_, release, err := b.Read(stranger, w.source(), 100, patient)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if !w.until.IsZero() {
		t.Errorf("its source fails at %v", w.until)
	}
}

// TestUnreadAnswersGiveWay has answers that nobody takes.
func TestUnreadAnswersGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &limit.Bodies{Bytes: 1000, Max: 10, Share: 50, Now: time.Now}
		var mu sync.Mutex
		cut := map[string]bool{}
		hold := func(p limit.Party, size int, name string) func() {
			t.Helper()
			release, err := b.Hold(p, size, func(until time.Time) error {
				mu.Lock()
				defer mu.Unlock()
				cut[name] = !until.After(time.Now())
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return release
		}
		expect := func(name string, want bool) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if cut[name] != want {
				t.Errorf("%s is cut: %v", name, cut[name])
			}
		}
		first, second := hold(stranger, 300, "the first"), hold(stranger, 200, "the second")
		third := hold(stranger, 200, "one over its share")
		expect("the first", true)
		expect("the second", false)
		members := hold(member, 700, "a member's that is large")
		expect("the second", true)
		if _, err := b.Hold(other, 400, nil); !errors.Is(err, limit.ErrFull) {
			t.Errorf("a stranger's takes the place of a member's: %v", err)
		}
		admins := hold(admin, 5000, "one that is larger than all may be")
		expect("a member's that is large", true)
		expect("one over its share", true)
		for _, release := range []func(){first, second, third, members, admins} {
			release()
		}
		if b.Used() != 0 {
			t.Errorf("%d bytes are held for nobody", b.Used())
		}
		_ = hold(stranger, 1000, "the last")
		expect("one that is larger than all may be", false)
	})
}
