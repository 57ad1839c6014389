package router

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// TestRotateRoot puts another root CA in place of the present one while a router
// is connected: it follows, is seen to have, and goes on when the one before has
// retired, over a restart of the controller, whose id stays.
func TestRotateRoot(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := servertest.Start(t, func(c *config.Config) { c.Data = data })
	rotate := func(code int, words string, args ...string) {
		t.Helper()
		says(t, code, words, append(append([]string{"keys"}, args...), "--data", data)...)
	}
	p := enroll(t, s)
	was, before := p.fingerprint(t), p.read(t, "identity.json")
	stop := p.start(t, time.Now)
	p.online(t, true)

	rotate(1, "there is nothing to finish", "rotate", "intermediate", "--finish")
	rotate(1, "none is under way", "rotate", "root", "--finish")
	rotate(0, "new intermediate CA", "rotate", "intermediate")
	rotate(0, "new root CA", "rotate", "root")
	rotate(1, "there can be only one at a time", "rotate", "root")
	servertest.Eventually(t, 4*soon, "the router follows", func() bool { return p.fingerprint(t) != was })
	servertest.Eventually(t, soon, "it keeps that", func() bool { return p.read(t, "identity.json") != before })
	servertest.Eventually(t, soon, "it is seen to have followed", func() bool {
		out := new(output)
		return netkeep(t.Context(), time.Now, out, "keys", "status", "--data", data) == 0 && strings.Contains(out.String(), "1 of 1 routers")
	})
	rotate(0, "has retired", "rotate", "root", "--finish")
	rotate(0, "No rotation of the root CA is under way", "status")
	stop()
	p.online(t, false)
	defer p.start(t, time.Now)()
	p.online(t, true)
}
