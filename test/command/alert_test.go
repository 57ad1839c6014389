package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
)

// TestAlerts lists who is sent alerts and tries them: one that takes a test, and one that
// does not.
func TestAlerts(t *testing.T) {
	var takes atomic.Bool
	takes.Store(true)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !takes.Load() {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, "noted")
	}))
	defer hook.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret":    "correct-horse-battery-staple\n",
		"conf.yaml": "alerts:\n  - {name: ops, url: " + hook.URL + "/x, secretFile: " + filepath.Join(dir, "secret") + "}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := start(t, dir, "--config", "conf.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	says := func(pattern string, fails bool, args ...string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "netkeep"), args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "NETKEEP_PASSWORD="+password)
		out, err := cmd.CombinedOutput()
		if (err != nil) != fails || !regexp.MustCompile(pattern).Match(out) {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	says("Logged in", false, "login", "--data", "data")
	says(`ops took it in .*s and said: noted`, false, "alerts", "test")
	says(`ops took it`, false, "alerts", "test", "ops")
	says(`^ops\n$`, false, "alerts", "-o", "name")
	says(`NAME +HOST.*\nops +127\.0\.0\.1`, false, "alerts")
	takes.Store(false)
	says(`ops did not take it: .*418`, true, "alerts", "test")
}
