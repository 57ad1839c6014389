package access

import (
	"testing"
	"testing/synctest"
)

// TestWatch wakes those whom a change concerns, and nobody else.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l LastChange
		ann, again, bob := l.Watch("ann"), l.Watch("ann"), l.Watch("bob")
		go l.Wake(t.Context())
		woken := func(w *Watcher) bool {
			synctest.Wait()
			select {
			case <-w.C:
				return true
			default:
				return false
			}
		}
		l.watch.note(concern{one: "ann"})
		if !woken(ann) || !woken(again) || woken(bob) {
			t.Error("a change for one wakes others, or not the one")
		}
		again.Close()
		again.Close()               // which does nothing
		for range 3 * maxConcerns { // more than are kept
			l.watch.note(concern{one: "carol"})
		}
		l.watch.note(concern{})
		if !woken(ann) || woken(again) || !woken(bob) {
			t.Error("a load does not wake everybody who waits")
		}
		ann.Close()
		bob.Close()
		if l.watch.waiting != 0 || len(l.watch.by) != 0 {
			t.Errorf("%d wait, %d are known", l.watch.waiting, len(l.watch.by))
		}
		l.watch.note(concern{one: "bob"})
		if len(l.watch.news) != 0 {
			t.Error("what nobody waits for is kept")
		}
	})
}
