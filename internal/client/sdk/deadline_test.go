package sdk

import (
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadline moves one while somebody waits for it.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDeadline()
		waited := func() time.Duration {
			began := time.Now()
			<-d.context().Done()
			return time.Since(began)
		}
		d.set(time.Now().Add(time.Minute))
		if got := waited(); got != time.Minute {
			t.Errorf("it came after %v", got)
		}
		if err := d.context().Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it says %v", err)
		}
		d.set(time.Now().Add(time.Hour))
		d.set(time.Time{})
		if d.context().Err() != nil {
			t.Error("it is over although there is none")
		}
		d.set(time.Now().Add(time.Second))
		waiting := d.passed()
		d.set(time.Now().Add(time.Hour)) // later than who waits expects
		time.Sleep(2 * time.Second)
		if isClosed(waiting) {
			t.Error("it came when it had been moved")
		}
		d.set(time.Now().Add(-time.Second))
		if !isClosed(waiting) {
			t.Error("who waited was not told that it has passed")
		}
		d.end()
		d.set(time.Now().Add(time.Hour))
		if !isClosed(d.passed()) {
			t.Error("it was moved after it ended for ever")
		}
	})
}
