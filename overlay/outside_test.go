package overlay_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// shellBlocks are the parts of a page that are for a shell.
var shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestOutside follows README and page to a program of somebody else, outside of
// the checkout and without anything but it and the modules that it needs: the
// program is built, enrolls, hosts and dials.
func TestOutside(t *testing.T) {
	n := networktest.New(t, servertest.Start(t))
	n.AddRouter("router")
	name := n.Word + "-hello"
	_, token := invite(n, name)
	everybody := []string{"#" + n.Word}
	n.Admin.Post(networktest.Management+"services", M{"name": "hello", "encryptionRequired": true, "roleAttributes": []string{n.Word}}).Want(201)
	for _, typ := range []string{"Dial", "Bind"} {
		n.Admin.Post(networktest.Management+"service-policies", M{"name": typ, "type": typ, "semantic": "AnyOf", "identityRoles": everybody, "serviceRoles": everybody}).Want(201)
	}
	script := "set -eu\n"
	for _, page := range []string{"README.md", "docs/go.md"} {
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
		must(t, err)
		blocks := shellBlocks.FindAllSubmatch(text, -1)
		if len(blocks) != 1 {
			t.Fatalf("%s has %d blocks for a shell, want 1", page, len(blocks))
		}
		script += string(blocks[0][1])
	}
	// Twice: it enrolls once.
	script += "printf %s \"$TOKEN\" > hello.jwt\n./hello\n./hello\n"

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash")
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.WaitDelay = time.Second
	shell.Stdin, shell.Dir = strings.NewReader(script), ".."
	// Only what has been fetched is there, and nobody is asked about it.
	shell.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "TOKEN="+token,
		"GOWORK=off", "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local")
	out, err := shell.CombinedOutput()
	if want := "hello, " + name + "\n"; err != nil || !strings.HasSuffix(string(out), want+want) {
		t.Fatalf("the program of the page: %v\n%s", err, out)
	}
}
