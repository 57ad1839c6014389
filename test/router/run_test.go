package router

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// TestRun enrolls a router, runs it, looks at it as monitoring does, stops it
// and runs it again.
func TestRun(t *testing.T) {
	s := servertest.Start(t)
	p := enroll(t, s)
	for _, name := range []string{".", "identity.json"} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read %s: %v, %v", name, info.Mode(), err)
		}
	}
	for range 2 {
		out, stop := p.run(t)
		got := p.online(t, true)
		_, port, _ := net.SplitHostPort(logged(t, out, "ready", "listen"))
		if at := got["supportedProtocols"].(M)["tls"]; at != "tls://localhost:"+port {
			t.Errorf("clients are told %v, and it listens at %s", at, port)
		}
		at := "http://" + logged(t, out, "ready", "metrics")
		if code, body := get(t, at+"/health/ready"); code != 200 {
			t.Errorf("it is not ready: %s", body)
		}
		if _, body := get(t, at+"/metrics"); !strings.Contains(body, "netkeep_router_connected 1") || !strings.Contains(body, "netkeep_router_circuits 0") {
			t.Errorf("monitoring sees %s", body)
		}
		says(t, 1, "running already", "router", "run", "--data", p.dir)
		says(t, 1, "is running: stop it first", "router", "enroll", tokenOf(t, s), "--data", p.dir, "--advertise", "localhost", "--force")
		if code := stop(); code != 0 {
			t.Fatalf("it ended with %d: %s", code, out)
		}
		p.online(t, false)
	}
}

func tokenOf(t *testing.T, s *servertest.Server) string {
	_, file := invite(t, s)
	return file
}

// TestNotReady has a router say that it cannot reach its controller, and why.
func TestNotReady(t *testing.T) {
	s := servertest.Start(t)
	p := enroll(t, s)
	s.Admin(t).Patch(management+"edge-routers/"+p.id, M{"disabled": true}).Want(200)
	out, _ := p.run(t)
	at := "http://" + logged(t, out, "ready", "metrics")
	if why := logged(t, out, "there is no connection to the controller; it is tried again", "reason"); !strings.Contains(why, "the router is disabled") {
		t.Errorf("it says %s", why)
	}
	if code, body := get(t, at+"/health/ready"); code != 503 || !strings.Contains(body, "no connection to the controller") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := get(t, at+"/health/live"); code != 200 {
		t.Errorf("it does not live: %d", code)
	}
}

// TestBadEnrollment says what is wrong before the token is spent.
func TestBadEnrollment(t *testing.T) {
	s := servertest.Start(t)
	_, token := invite(t, s)
	dir := filepath.Join(t.TempDir(), "router")
	with := func(args ...string) []string {
		return append([]string{"router", "enroll", token, "--data", dir}, args...)
	}
	says(t, 2, "--advertise HOST", with()...)
	says(t, 2, "leave out --data", with("--host", "x")...)
	says(t, 2, "needs --data", "router", "enroll", token, "--listen", "127.0.0.1:1")
	says(t, 1, "listen must be a host and port", with("--listen", "3022", "--advertise", "localhost")...)
	says(t, 1, "advertise is", with("--advertise", "0.0.0.0")...)
	says(t, 1, "advertise is", with("--advertise", "https://localhost")...)
	says(t, 1, "whose port is none", with("--advertise", "localhost:99999")...)
	says(t, 1, "metricsListen must be a host and port, auto or off", with("--advertise", "localhost", "--metrics-listen", "x")...)
	says(t, 1, "linkGroups must be a list of words", with("--advertise", "localhost", "--link-group", "a b")...)
	says(t, 2, "needs --data", "router", "enroll", token, "--link-group", "a")
	says(t, 2, "--data DIRECTORY", "router", "run")
	says(t, 1, "there is no router in", "router", "run", "--data", dir)
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	says(t, 1, "not a directory", "router", "enroll", token, "--data", filepath.Join(file, "x"), "--advertise", "localhost")
	says(t, 0, "Enrolled", with("--advertise", "localhost", "--advertise", "127.0.0.1:443", "--link-listen", "127.0.0.1:0")...)
	says(t, 1, "there is a router in", "router", "enroll", tokenOf(t, s), "--data", dir, "--advertise", "localhost")
	says(t, 0, "Enrolled", "router", "enroll", tokenOf(t, s), "--data", dir, "--advertise", "localhost", "--force")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBadDirectory says in a sentence why a router cannot run, and what to do.
func TestBadDirectory(t *testing.T) {
	s := servertest.Start(t)
	p := enroll(t, s)
	other := enroll(t, s)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	read := func(p *place, name string) string {
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		must(t, err)
		return string(text)
	}
	identity, settings := read(p, "identity.json"), read(p, "router.yml")
	key := func(text string) string {
		_, rest, _ := strings.Cut(text, `"key": "`)
		k, _, _ := strings.Cut(rest, `"`)
		return k
	}
	later := func(d time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(d) } }
	for name, c := range map[string]struct {
		identity, settings string
		now                func() time.Time
		mode               os.FileMode
		words              string
	}{
		"open to others":   {mode: 0o044, words: "run chmod 600 on it"},
		"cut short":        {identity: identity[:len(identity)/2], words: "identity.json is damaged"},
		"nothing in it":    {identity: "{}", words: "does not say who the router is"},
		"another's key":    {identity: strings.Replace(identity, key(identity), key(read(other, "identity.json")), 1), words: "its certificate is of another key"},
		"another's id":     {identity: strings.Replace(identity, `"id": "`, `"id": "x`, 1), words: "its certificate is that of"},
		"no settings":      {settings: "listen: [", words: "router.yml:1: is no YAML"},
		"unknown setting":  {settings: settings + "lissten: x\n", words: "lissten"},
		"no place":         {settings: strings.Replace(settings, "127.0.0.1:0", "nowhere", 1), words: "router.yml:4: listen must be a host and port"},
		"taken port":       {settings: strings.Replace(settings, "127.0.0.1:0", taken.Addr().String(), 1), words: "another program has it, maybe a copy of this router"},
		"expired":          {now: later(2 * 365 * 24 * time.Hour), words: "have an admin re-enroll the router"},
		"clock far behind": {now: later(-365 * 24 * time.Hour), words: "set the clock"},
	} {
		t.Run(name, func(t *testing.T) {
			for file, texts := range map[string][2]string{"identity.json": {c.identity, identity}, "router.yml": {c.settings, settings}} {
				text := texts[0]
				if text == "" {
					text = texts[1]
				}
				must(t, os.WriteFile(filepath.Join(p.dir, file), []byte(text), 0o600))
			}
			must(t, os.Chmod(filepath.Join(p.dir, "identity.json"), 0o600|c.mode))
			now := c.now
			if now == nil {
				now = time.Now
			}
			saysAt(t, now, 1, c.words, "router", "run", "--data", p.dir)
		})
	}
}

// TestAnotherController says what to do when the controller is not the one that
// the router was enrolled with.
func TestAnotherController(t *testing.T) {
	s, other := servertest.Start(t), servertest.Start(t)
	p := enroll(t, s)
	host := func(s *servertest.Server) string { return strings.TrimPrefix(s.URL, "https://") }
	must(t, os.WriteFile(p.path("identity.json"), []byte(strings.ReplaceAll(p.read(t, "identity.json"), host(s), host(other))), 0o600))
	out, _ := p.run(t)
	servertest.Eventually(t, soon, "the way back is told", func() bool {
		return strings.Contains(out.String(), "it is another controller, or was set up anew; enroll the router again with --force if that is right")
	})
}
