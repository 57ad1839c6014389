package alert_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/egress"
)

// TestReceiverMisbehaves has a receiver answer in every wrong way that is not the
// alert's fault: nothing is lost, nobody else is told instead, its words and the path of
// the URL are shown to nobody, and what waited comes once it is well again.
func TestReceiverMisbehaves(t *testing.T) {
	elsewhere := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { elsewhere <- r.Method }))
	t.Cleanup(other.Close)
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, "an inner word")
		}
	}
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		says  string
	}{
		"fails":        {answer(http.StatusInternalServerError), "500"},
		"is gone":      {answer(http.StatusGone), "410"},
		"wants less":   {answer(http.StatusTooManyRequests), "429"},
		"knows us not": {answer(http.StatusForbidden), "403"},
		"took nothing": {answer(http.StatusNotModified), "304"},
		"sends us on": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "307"},
		"sends us away": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, "302"},
		"hangs up":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "ended early"},
		"never answers": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, in, bad := open(t, storetest.NewMemory(), time.Now), new(inbox), true
			in.before = func(w http.ResponseWriter, r *http.Request) bool {
				in.mu.Lock()
				is := bad
				in.mu.Unlock()
				if is {
					_, _ = io.Copy(io.Discard, r.Body) // or it would not be noticed that the sender has left
					test.serve(w, r)
				}
				return is
			}
			r, _ := begin(t, s, in, time.Now, func(r *alert.Receiver) {
				r.Client = egress.New(egress.Options{Timeout: time.Second})
			})
			happen(t, s, audit.RouterOffline, "a", "b")
			record := func() *model.AlertReceiver {
				rec, _ := model.AlertReceivers.Get(s.Snapshot(), r.ID)
				return rec
			}
			eventually(t, "it is noted", func() bool { return strings.Contains(record().Error, test.says) })
			if said := record().Error; strings.Contains(said, "inner") || strings.Contains(said, "path") {
				t.Errorf("it tells what it should not: %s", said)
			}
			in.mu.Lock()
			bad = false
			in.mu.Unlock()
			eventually(t, "it is well", func() bool { rec := record(); return rec.Error == "" && rec.Delivered == 2 && rec.Dropped == 0 })
			// A machine that is busy may be late to hear that one was taken.
			if got := fmt.Sprint(slices.Compact(in.list())); got != "[router-offline a router-offline b]" {
				t.Errorf("%s came", got)
			}
		})
	}
	t.Cleanup(func() { // when those that run at once are done
		if len(elsewhere) > 0 {
			t.Errorf("%s went to where a receiver sent us", <-elsewhere)
		}
	})
}

// TestReceiverGoesOn has a receiver take what it is sent and then not stop to talk: it was
// taken, and is not sent again.
func TestReceiverGoesOn(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"trickles": func(w http.ResponseWriter, r *http.Request) {
			for tick := time.NewTicker(time.Millisecond); ; {
				select {
				case <-r.Context().Done():
					return
				case <-tick.C:
					fmt.Fprint(w, ".")
					_ = http.NewResponseController(w).Flush()
				}
			}
		},
		"says far too much": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, in := open(t, storetest.NewMemory(), time.Now), new(inbox)
			var posts atomic.Int64
			in.before = func(w http.ResponseWriter, r *http.Request) bool {
				posts.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				serve(w, r)
				return true
			}
			r, _ := begin(t, s, in, time.Now, func(*alert.Receiver) {})
			happen(t, s, audit.RouterOffline, "a", "b")
			eventually(t, "both are taken", func() bool {
				rec, ok := model.AlertReceivers.Get(s.Snapshot(), r.ID)
				return ok && rec.Delivered == 2
			})
			if rec, _ := model.AlertReceivers.Get(s.Snapshot(), r.ID); rec.Error != "" || rec.Dropped != 0 || posts.Load() != 2 {
				t.Errorf("%d were sent, and it says %+v", posts.Load(), rec)
			}
		})
	}
}
