package sdk

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/client/remote"
)

// TestPace tries again at once after a while that went well, and ever more
// slowly otherwise.
func TestPace(t *testing.T) {
	var p pace
	if got := p.after(time.Millisecond, true); got != 0 {
		t.Errorf("the first loss is made up for after %v", got)
	}
	total := time.Duration(0)
	for range 20 {
		total += p.after(time.Millisecond, true)
	}
	if total < 5*time.Minute || p.wait() != lastPause {
		t.Errorf("20 losses in a row take %v, and then %v each", total, p.wait())
	}
	if got := p.after(time.Minute, false); got != 0 || p.wait() != lastPause {
		t.Errorf("what failed for long waits %v, then %v", got, p.wait())
	}
	if got := p.after(calm, true); got != 0 || p.wait() != firstPause {
		t.Errorf("what went well waits %v, then %v", got, p.wait())
	}
}

// TestEnough leaves the controller alone for an hour in which a service is
// hosted at as many routers as it should be.
func TestEnough(t *testing.T) {
	var asked atomic.Int32
	controller := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "not now", http.StatusServiceUnavailable)
	}))
	defer controller.Close()
	controller.Config.SetKeepAlivesEnabled(false) // no time passes while somebody reads
	synctest.Test(t, func(t *testing.T) {
		c := &Client{opt: Options{Now: time.Now, Poll: 5 * time.Second}, log: slog.New(slog.DiscardHandler), sessions: map[sessionKey]*session{}}
		c.catalog = &catalog{next: make(chan struct{}), byName: map[string]*Service{"web": {ID: "web", Name: "web", Bind: true}}}
		c.api = &api{id: &credentials{}, opt: c.opt}
		c.api.session.Store(&apiSession{})
		c.api.peer.Store(remote.WithTLS(remote.Account{Address: controller.URL}, &tls.Config{InsecureSkipVerify: true}))
		l := &Listener{client: c, service: "web", opt: ListenOptions{Routers: 2}, lost: make(chan struct{}, 1), never: make(chan struct{})}
		l.bindings = map[string]*binding{"one": {}, "two": {}}
		l.over, l.end = context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.keep()
		}()
		time.Sleep(time.Hour)
		l.end()
		<-done
		c.api.remote().Close()
	})
	if n := asked.Load(); n != 0 {
		t.Errorf("the controller was asked %d times", n)
	}
}
