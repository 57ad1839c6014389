package router

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// patience is after how long a router waits no longer.
const patience = 4 * time.Minute

// quiesced is whether the controller avoids the router.
func (p *place) quiesced(t *testing.T) bool {
	t.Helper()
	return p.server.Admin(t).Get("/fabric/v1/routers/" + p.id).Want(200).Data()["quiesced"] == true
}

// TestStop stops a router that carries a connection: it goes on until its ends
// are done with it, nobody new is sent here meanwhile, and the next start takes
// that back.
func TestStop(t *testing.T) {
	s := servertest.Start(t)
	n := networktest.New(t, s)
	service := n.AddService("echo", true)
	p := enroll(t, s)
	s.Admin(t).Patch(management+"edge-routers/"+p.id, M{"roleAttributes": []string{n.Word}}).Want(200)
	text := p.read(t, "router.yml")
	if !strings.Contains(text, "drain: 10s") {
		t.Errorf("the settings are %s", text)
	}
	// On a machine that is slow, too, it shows that it does not wait so long.
	must(t, os.WriteFile(p.path("router.yml"), []byte(strings.Replace(text, "drain: 10s", "drain: "+patience.String(), 1)), 0o600))
	stop := p.start(t, time.Now)
	p.online(t, true)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	dialer := n.Client(n.AddIdentity("dialer"))
	conn, err := dialer.Dial(t.Context(), service, sdk.DialOptions{})
	must(t, err)
	defer conn.Close()
	say := func(text string) {
		t.Helper()
		_, err := io.WriteString(conn, text)
		must(t, err)
		got := make([]byte, len(text))
		_, err = io.ReadFull(conn, got)
		if must(t, err); string(got) != text {
			t.Fatalf("%q came back as %q", text, got)
		}
	}
	say("hello")
	done := make(chan struct{})
	go func() {
		defer close(done)
		stop()
	}()
	servertest.Eventually(t, soon, "the controller avoids the router", func() bool { return p.quiesced(t) })
	say("still here")
	began := time.Now()
	must(t, conn.Close())
	<-done
	if took := time.Since(began); took > patience/2 {
		t.Errorf("it stopped %v after the last connection ended", took)
	}
	p.start(t, time.Now)
	p.online(t, true)
	servertest.Eventually(t, soon, "the controller uses the router again", func() bool { return !p.quiesced(t) })
	servertest.Eventually(t, soon, "there is no note of it", func() bool {
		_, err := os.Stat(p.path("stopped"))
		return os.IsNotExist(err)
	})
}
