package router

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"netkeep.internal/internal/router/home"
	"netkeep.internal/test/journal"
	"netkeep.internal/test/servertest"
)

// start runs a router at a time until the test ends or stop is called. What it logs
// goes to log, if there is one.
func (p *place) start(t *testing.T, now func() time.Time, log ...io.Writer) (stop func()) {
	t.Helper()
	s, err := home.Open(p.dir, home.Options{Now: now, Log: slog.New(slog.NewTextHandler(io.MultiWriter(log...), nil))})
	must(t, err)
	r, err := s.Start()
	must(t, err)
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		must(t, r.Stop(context.Background()))
		must(t, s.Close())
	}
	t.Cleanup(stop)
	return stop
}

// fingerprint is what the controller knows the router by.
func (p *place) fingerprint(t *testing.T) string {
	t.Helper()
	return p.server.Admin(t).Get(management + "edge-routers/" + p.id).Want(200).Data()["fingerprint"].(string)
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(p.path(name))
	must(t, err)
	return string(text)
}

// TestRenew has a router renew its certificates when a third of their life is
// left, and go on with them. What was planned is not told as a mishap.
func TestRenew(t *testing.T) {
	s := servertest.Start(t)
	p := enroll(t, s)
	was, file := p.fingerprint(t), p.read(t, "identity.json")
	stop := p.start(t, time.Now)
	p.online(t, true)
	stop()
	if p.read(t, "identity.json") != file {
		t.Fatal("certificates are renewed long before it is time")
	}
	late := func() time.Time { return time.Now().Add(9 * 30 * 24 * time.Hour) }
	var said journal.Journal
	stop = p.start(t, late, &said)
	servertest.Eventually(t, 2*soon, "the controller knows it by another certificate", func() bool { return p.fingerprint(t) != was })
	servertest.Eventually(t, soon, "the router keeps it", func() bool { return p.read(t, "identity.json") != file })
	stop()
	if !said.Has("the router has new certificates") || said.Has("level=WARN") || said.Has("level=ERROR") {
		t.Errorf("of a renewal that was planned it says\n%s", said.String())
	}
	stop = p.start(t, time.Now)
	p.online(t, true)
	stop()

	// Power was lost before the answer: the router has both, and does not know.
	p.online(t, false)
	renewed := p.read(t, "identity.json")
	must(t, os.WriteFile(p.path("identity.next.json"), []byte(renewed), 0o600))
	must(t, os.WriteFile(p.path("identity.json"), []byte(file), 0o600))
	stop = p.start(t, time.Now)
	p.online(t, true)
	servertest.Eventually(t, 2*soon, "it finds out which counts", func() bool { return p.read(t, "identity.json") == renewed })
	stop()

	// Or before the question: the new ones count for nothing.
	p.online(t, false)
	must(t, os.WriteFile(p.path("identity.next.json"), []byte(file), 0o600))
	stop = p.start(t, time.Now)
	p.online(t, true)
	servertest.Eventually(t, 2*soon, "it gives them up", func() bool {
		_, err := os.Stat(p.path("identity.next.json"))
		return os.IsNotExist(err)
	})
	stop()
	if p.read(t, "identity.json") != renewed {
		t.Error("it has given up the wrong ones")
	}
}
