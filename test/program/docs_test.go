package program_test

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

	"netkeep.internal/test/machine"
)

// TestDocs pastes pages into a shell, as a reader would who has logged in.
func TestDocs(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "curl"), "../paste").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, target := range map[string]string{"openssl": "curl", "netkeep": binary} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	router, metrics, port, second := machine.Port(t), machine.Port(t), machine.Port(t), machine.Port(t)
	t.Run("getting-started", func(t *testing.T) {
		paste(t, bin, "getting-started", []string{
			"alice cannot use wiki", "alice may dial wiki by policy", "FAIL  session", "FAIL  terminator", "Enrolled",
			`{"status":"ok"`, "laptop can use wiki", "From local-router to", "branch", "loses  laptop    wiki", "~ service wiki", "Nothing would change",
		}, map[string]string{"port: 1281": "port: " + metrics, ":8080": ":" + port, ":3023": ":" + second},
			"--router", "127.0.0.1:"+router, "--metrics-listen", "127.0.0.1:"+metrics)
	})
	t.Run("audit", func(t *testing.T) {
		paste(t, bin, "audit", []string{
			"ann may dial payroll by policy", "identityRoles: #finance -> #finance,#staff", "entry", "0 to create, 1 to change, 0 to delete", "loses  ann",
		}, map[string]string{
			// There is no router yet, and the network is a minute old.
			"explain ann payroll\n": "explain ann payroll || true\n", "explain ann payroll --at $ENTRY": "explain ann payroll --at $ENTRY || true",
			"--at 3d": "--at $ENTRY", "--at 2026-01-31T08:00:00Z": "--at $ENTRY", "diff 2h": "diff $((10#$ENTRY - 1))", "undo $ENTRY": "undo $ENTRY --yes",
		})
	})
	t.Run("assertions", func(t *testing.T) {
		paste(t, bin, "assertions", []string{
			"holds  contractors stay out", `breaks contractors stay out: eve may dial payroll by the policy "wide"`, "exit code 5",
			`broken  contractors stay out   eve may dial payroll by the policy "wide"`, "exit code 8", "assertion-overridden",
		}, nil)
	})
	t.Run("access-in-time", func(t *testing.T) {
		paste(t, bin, "access-in-time", []string{
			"bob has finance until", "quarter end", "bob will not be able to use payroll", "pass  service-policy", "exit code 9", "contract", "1 within a day",
		}, nil)
	})
	t.Run("administrators", func(t *testing.T) {
		paste(t, bin, "administrators", []string{"policy-author", "web-team", "the nearest is service:delete", "exit code 5"}, nil)
	})
	t.Run("tokens", func(t *testing.T) {
		paste(t, bin, "tokens", []string{"policy-author", "exit code 4", "shop", "Nothing would change", `"name":"shop"`, "token ci changed", "it was revoked", "deploy"}, nil)
	})
	t.Run("lint", func(t *testing.T) {
		paste(t, bin, "lint", []string{
			"service policy web-again gives nothing that web does not give as things are", "selects no identities, by #staf", "netkeep invite ann --no-qr", "Nothing was found.", `"count": 0`,
		}, nil)
	})
	t.Run("requests", func(t *testing.T) {
		paste(t, bin, "requests", []string{"waits until", "decide", "pending", "Approved.", "payroll-now", "The request is withdrawn."}, nil)
	})
	for page, answers := range map[string][]string{
		"by-hand": {
			`"link":"service-policy","passed":true,"what":"alice may dial wiki by policy`, `"link":"session","passed":false,"what":"alice has no API session"`,
			`"link":"router","passed":false,"what":"none of the edge routers that both may use is online"`,
			`"name":"wiki"`, `"permissions":["Dial"]`, `"type":"Dial"`, `"name":"phone"`,
		},
		"changes": {
			`{"applied":false,`, `"counts":{"created":3,"changed":0,"unchanged":0,"deleted":0}`,
			`"identity":"alice","serviceId":"","service":"wiki","type":"Dial","change":"gained"`, `{"applied":true,`,
		},
	} {
		t.Run(page, func(t *testing.T) { paste(t, bin, page, answers, nil) })
	}
}

// refusal is how the stand-in for curl says that something was refused.
var refusal = regexp.MustCompile(`(?m)^[A-Z]+ https://\S+: 4.*$`)

// paste follows a page, with some words replaced in it, and looks for what is to
// be said. The controller is started with more flags.
func paste(t *testing.T, bin, name string, wanted []string, instead map[string]string, more ...string) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("the page has %d blocks to paste", len(blocks))
	}
	dir := t.TempDir()
	p := controller(t, filepath.Join(dir, "data"), more...)
	script := "set -eu\nTOKEN=\nnetkeep login --data data --username admin\n"
	for _, b := range blocks {
		script += string(b[1]) + "echo\n"
	}
	for word, other := range instead {
		if !strings.Contains(script, word) {
			t.Errorf("the page says nothing of %q", word)
		}
		script = strings.ReplaceAll(script, word, other)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*waitTime)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash")
	// What the page leaves running ends with the test.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.WaitDelay = time.Second
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.Stdin, shell.Dir = strings.NewReader(script), dir
	shell.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "PATH="+bin+":"+os.Getenv("PATH"), "NETKEEP_PASSWORD="+password,
		"CONTROLLER="+p.ready(), "CA="+filepath.Join("data", "pki", "root.crt"), "PASSWORD="+password)
	out, err := shell.CombinedOutput()
	if shell.Process != nil {
		_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
	}
	if err != nil || refusal.Match(out) {
		logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
		for _, name := range logs {
			text, _ := os.ReadFile(name)
			t.Logf("%s:\n%s", filepath.Base(name), text)
		}
		t.Fatalf("the page does not work: %v\n%s", err, out)
	}
	for _, want := range wanted {
		if !strings.Contains(string(out), want) {
			t.Errorf("following the page nothing says %s:\n%s", want, out)
		}
	}
	p.stop()
}
