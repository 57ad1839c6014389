package network

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPage pastes the page about the public programs into a shell, as a reader
// would who has them: both kinds of routers and tunnelers carry one service.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "openziti.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t, "--router", free(t))
	bin := t.TempDir()
	for name, target := range map[string]string{"curl": programs.paste, "netkeep": programs.netkeep, "ziti": programs.ziti} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := "set -eu\nnetkeep login --data data --username admin\n"
	for _, block := range regexp.MustCompile("(?s)```bash\n(.*?)```").FindAllSubmatch(page, -1) {
		script += string(block[1]) + "echo\n"
	}
	for theirs, ours := range map[string]string{"port: 1281": "port: " + portOf(t, n.metrics), "tls:127.0.0.1:1280": "tls:" + n.address, "3023": portOf(t, free(t)), ":8080": ":" + portOf(t, free(t))} {
		if !strings.Contains(script, theirs) {
			t.Errorf("the page says nothing of port %s", theirs)
		}
		script = strings.ReplaceAll(script, theirs, ours)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash")
	shell.Stdin, shell.Dir = strings.NewReader(script), n.dir
	shell.Env = append(os.Environ(), "HOME="+n.dir, "PATH="+bin+":"+os.Getenv("PATH"),
		"XDG_CONFIG_HOME=", "NETKEEP_PASSWORD="+password)
	// What the page leaves running ends with the test.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.WaitDelay = time.Second
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	out, err := shell.CombinedOutput()
	if shell.Process != nil {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
	}
	if err != nil || !strings.Contains(string(out), `{"status":"ok"`) || !strings.Contains(string(out), "local-router") || !strings.Contains(string(out), "router-1") {
		for _, name := range []string{"router-1.log", "server.log", "laptop.log"} {
			if text, err := os.ReadFile(filepath.Join(n.dir, name)); err == nil {
				t.Logf("%s:\n%s", name, text[max(0, len(text)-6000):])
			}
		}
		t.Fatalf("the page does not work: %v\n%s", err, out)
	}
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, p, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMove takes a network out with the public command line and makes it anew
// with ours: nothing is lost.
func TestMove(t *testing.T) {
	n := newNetwork(t)
	netkeep := func(args ...string) {
		t.Helper()
		cmd := exec.Command(programs.netkeep, args...)
		cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "HOME="+n.dir, "XDG_CONFIG_HOME=", "NETKEEP_PASSWORD="+password)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("netkeep %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	netkeep("login", "--data", "data")
	netkeep("demo")
	// Which the public export leaves out.
	netkeep("update", "service-policy", "finance uses payroll", "--posture-check-roles", "")
	netkeep("export", "before")
	for _, format := range []string{"YAML", "JSON"} {
		export := exec.Command(programs.ziti, "ops", "export", "all", "--output-format", format, "--controller-url", "https://"+n.address, "-u", "admin", "-p", password, "--yes")
		export.Dir, export.Env = n.dir, append(os.Environ(), "HOME="+n.dir)
		out, err := export.Output()
		if err != nil {
			t.Fatal(err)
		}
		netkeep("demo", "--remove")
		netkeep("apply", n.write("exported", string(out)), "--yes")
		after := "after-" + format
		netkeep("export", after)
		if out, err := exec.Command("diff", "-r", filepath.Join(n.dir, "before"), filepath.Join(n.dir, after)).CombinedOutput(); err != nil {
			t.Errorf("from %s: %v\n%s", format, err, out)
		}
	}
}
