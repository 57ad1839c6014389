package server

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
)

// TestDoor has connections come while nobody is let in, and after that.
func TestDoor(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var refusing atomic.Bool
	refusing.Store(true)
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go srv.Serve(door{l, refusing.Load})
	defer srv.Close()
	ask := func() error {
		resp, err := http.Get("http://" + l.Addr().String())
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := ask(); err == nil {
		t.Error("somebody is let in")
	}
	refusing.Store(false)
	if err := ask(); err != nil {
		t.Error(err)
	}
}

// TestRefusing loses the store for longer than a controller takes connections, with
// and without others in the network.
func TestRefusing(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	s := &Server{state: st}
	s.cfg.Cluster.Listen, s.cfg.Store.Grace, s.cfg.Store.Refuse = "127.0.0.1:1", 10*time.Second, 20*time.Second
	heard := func(ago time.Duration) {
		at := time.Now().Add(-ago)
		s.heard.Store(&at)
	}
	add := func(id string) {
		t.Helper()
		err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
			c := &model.Controller{Name: id}
			c.ID = id
			return model.Controllers.Create(tx, c)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	closes := func() bool {
		w := httptest.NewRecorder()
		s.parting(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Header().Get("Connection") == "close"
	}
	add("one")
	heard(time.Hour)
	if s.refusing() || closes() {
		t.Error("the only controller sends clients away")
	}
	add("two")
	if !s.refusing() || !closes() {
		t.Error("a controller that has lost its store keeps its clients")
	}
	heard(time.Minute / 4)
	if s.refusing() || closes() {
		t.Error("it sends clients away too soon")
	}
	s.cfg.Store.Grace = time.Hour
	heard(time.Minute)
	if s.refusing() {
		t.Error("it sends those away whom it still answers")
	}
}
