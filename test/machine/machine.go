// Package machine tells how busy the machine is that tests run on. What has to
// be prompt can then be told from what waits for something, whether the machine
// is slow, has one core or has other things to do. It imports nothing of ours.
package machine

import (
	"crypto/sha256"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Watch looks at the machine while something is measured.
type Watch struct {
	began time.Time
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	took  time.Duration
	worst time.Duration // that the same little work took
}

// share is how many times as long as the little work, whatever is measured may
// take beyond its limit. On a quiet machine that is a tenth of a second.
const share = 100

// Begin starts to measure, until Took is called or the test ends.
func Begin(t testing.TB) *Watch {
	w := &Watch{began: time.Now(), stop: make(chan struct{}), done: make(chan struct{})}
	t.Cleanup(w.end)
	go func() {
		defer close(w.done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		work := make([]byte, 64<<10) // a tenth of a millisecond, or two
		for {
			start := time.Now()
			sha256.Sum256(work)
			w.worst = max(w.worst, time.Since(start))
			select {
			case <-w.stop:
				return
			case <-tick.C:
				// A tick that is late is the machine's doing too.
			}
		}
	}()
	return w
}

func (w *Watch) end() {
	w.once.Do(func() {
		w.took = time.Since(w.began)
		close(w.stop)
		<-w.done
	})
}

// Took is how long it took since the beginning, and how long it may have taken
// on this machine if it may take so long on one that has nothing else to do.
func (w *Watch) Took(limit time.Duration) (took, most time.Duration) {
	w.end()
	return w.took, limit + share*w.worst
}

// Port is one of the loopback address that nothing listens on, for a program
// that has to be told. It is none that the system gives away by itself, so that
// nobody has it before the program does, and no other test is told the same one
// before this one ends: the same port of another loopback address stays taken
// for that long, which tests in other processes see too.
func Port(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20_000 + rand.IntN(12_000))
		claim, err := net.ListenPacket("udp", net.JoinHostPort("127.0.0.2", port))
		if err != nil {
			continue
		}
		if free(net.JoinHostPort("127.0.0.1", port)) {
			t.Cleanup(func() { _ = claim.Close() })
			return port
		}
		_ = claim.Close()
	}
	t.Fatal("no port is free")
	return ""
}

// free is whether nothing listens at an address, of either sort.
func free(address string) bool {
	tcp, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	_ = tcp.Close()
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	_ = udp.Close()
	return true
}
