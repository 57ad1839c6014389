package router

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// childArgs is where a process finds what it runs as netkeep.
const childArgs = "NETKEEP_TEST_ARGS"

func TestMain(m *testing.M) {
	args, child := os.LookupEnv(childArgs)
	if !child {
		os.Exit(m.Run())
	}
	signal.Ignore(syscall.SIGXFSZ) // a write is an error then
	out := new(output)
	code := netkeep(context.Background(), time.Now, out, strings.Split(args, "\n")...)
	_, _ = os.Stderr.WriteString(out.String())
	os.Exit(code)
}

// cramped runs the program in a process whose files can have no more than a few
// bytes, as on a disk that is full.
func cramped(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", `ulimit -f 1; exec "$0"`, os.Args[0])
	c.Env = append(os.Environ(), childArgs+"="+strings.Join(args, "\n"))
	text, err := c.CombinedOutput()
	if err == nil {
		t.Fatalf("netkeep %q has found room: %s", args, text)
	}
	return string(text)
}

// TestNoRoom spends no token where there is no room for what it brings.
func TestNoRoom(t *testing.T) {
	s := servertest.Start(t)
	_, token := invite(t, s)
	dir := filepath.Join(t.TempDir(), "router")
	enroll := []string{"router", "enroll", token, "--data", dir, "--listen", "127.0.0.1:0", "--advertise", "localhost"}
	if got := cramped(t, enroll...); !strings.Contains(got, "router.yml cannot be written") || strings.Count(got, "\n") != 1 {
		t.Errorf("a router that has no room says %q", got)
	}
	says(t, 0, "netkeep router run", enroll...)

	id := s.Admin(t).Post(management+"identities", M{"name": servertest.Unique("me"), "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(201).ID()
	jwt := s.Admin(t).Get(management + "identities/" + id).Want(200).At("data.enrollment.ott.jwt").(string)
	enroll = []string{"enroll", jwt, "-o", filepath.Join(t.TempDir(), "me.json")}
	if got := cramped(t, enroll...); !strings.Contains(got, "me.json cannot be written") || strings.Count(got, "\n") != 1 {
		t.Errorf("an identity that has no room says %q", got)
	}
	says(t, 0, "me.json", enroll...)
}
