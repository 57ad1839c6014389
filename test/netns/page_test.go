//go:build linux

package netns

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPage pastes the page about devices, each part on the machine that it is for.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/devices.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.server.starts("ready", "serve")
	w.tools()
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```")
	said, pasted := "", 0
	var on *machine
	for _, part := range strings.Split(string(text), "\n## ") {
		switch {
		case strings.HasPrefix(part, "With the account of the company"):
			continue // which takes a provider, and is pasted where there is one, in test/signin
		case strings.HasPrefix(part, "On the server"):
			on = w.server
		case strings.HasPrefix(part, "On the laptop"):
			on = w.laptop
		}
		for _, block := range blocks.FindAllStringSubmatch(part, -1) {
			said += w.paste(on, block[1])
			pasted++
		}
	}
	if pasted < 5 {
		t.Errorf("the page has %d blocks to paste", pasted)
	}
	for _, want := range []string{"page of payroll.corp", "AmbientCapabilities=CAP_NET_ADMIN", "payroll.corp", "local-router"} {
		if !strings.Contains(said, want) {
			t.Errorf("following the page nothing says %s:\n%s", want, said)
		}
	}
}

// tools puts what the page uses where shells find it: root needs no sudo, and a
// machine that has no curl has what stands in for it.
func (w *world) tools() {
	w.t.Helper()
	bin := filepath.Dir(w.binary)
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		w.must("ln", "-sf", filepath.Join(bin, "paste"), filepath.Join(bin, "curl"))
	}
}

// paste has a shell on a machine do something, and returns what it says. What it
// leaves running ends with the test.
func (w *world) paste(on *machine, script string) string {
	w.t.Helper()
	name, args := "bash", []string{"-eu", "-c", script}
	if on != nil {
		name, args = "nsenter", on.enter("env", append([]string{"-C", w.dir, name}, args...))
	}
	p := w.launch(&syscall.SysProcAttr{Setpgid: true}, []string{"PATH=" + filepath.Dir(w.binary) + ":" + os.Getenv("PATH")}, name, args...)
	w.t.Cleanup(func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	late := time.After(waitTime)
	for _, done := range []chan struct{}{p.ended, p.heard} {
		select {
		case <-done:
		case <-late:
		}
	}
	if p.cmd.ProcessState == nil || p.cmd.ProcessState.ExitCode() != 0 {
		logs, _ := filepath.Glob(filepath.Join(w.dir, "*.log"))
		for _, name := range logs {
			log, _ := os.ReadFile(name)
			w.t.Logf("%s:\n%s", filepath.Base(name), log)
		}
		w.t.Fatalf("the page does not work:\n%s\nsays\n%s", script, p.text())
	}
	return p.text()
}
