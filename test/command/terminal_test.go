package command_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// typist runs the program on a terminal, with what was typed before it began.
type typist struct {
	t   *testing.T
	dir string
	tty *os.File // the program's end
	ptm *os.File // the person's
}

func newTypist(t *testing.T, dir string) *typist {
	t.Helper()
	ptm, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = tty.Close(), ptm.Close() })
	return &typist{t, dir, tty, ptm}
}

func (p *typist) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), filepath.Join(bin, "netkeep"), args...)
	cmd.Dir, cmd.Env = p.dir, []string{"HOME=" + p.dir, "TERM=dumb"}
	return cmd
}

// ends fails unless the program ended with a code, and said something.
func (p *typist) ends(err error, code int, said string, texts ...string) {
	p.t.Helper()
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	}
	for _, text := range texts {
		if got != code || !strings.Contains(said, text) {
			p.t.Errorf("it ended with %d, want %d, and said %q, want %q", got, code, said, text)
		}
	}
}

// TestPasted pastes several commands: one that asks takes none of those after it
// for the answer, does nothing, and leaves them to the shell.
func TestPasted(t *testing.T) {
	dir := t.TempDir()
	c, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	p := newTypist(t, dir)
	for _, args := range [][]string{{"login", "--data", "data", "--username", "admin"}, {"create", "service", "wiki"}} {
		cmd := p.command(args...)
		cmd.Env = append(cmd.Env, "NETKEEP_PASSWORD="+password)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	const next = "y; and more that was pasted\n"
	if _, err := p.ptm.WriteString(next); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := p.command("delete", "service", "wiki")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.tty, &said, &said
	p.ends(cmd.Run(), 7, said.String(), "none of them is taken for the answer; nothing was done; give --yes")
	if line, err := bufio.NewReader(p.tty).ReadString('\n'); line != next {
		t.Errorf("of what was pasted %q is left (%v)", line, err)
	}
	if out, err := p.command("get", "service", "wiki").CombinedOutput(); err != nil {
		t.Errorf("it was deleted: %s", out)
	}
}

// TestInterruptedPassword types Ctrl-C where a password is asked for.
func TestInterruptedPassword(t *testing.T) {
	dir := t.TempDir()
	c, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	p := newTypist(t, dir)
	cmd := p.command("login", "--data", "data", "--username", "admin")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = p.tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	for buf := make([]byte, 256); !strings.Contains(said.String(), "Password of admin: "); {
		n, err := out.Read(buf)
		if said.Write(buf[:n]); err != nil {
			t.Fatalf("it said %q: %v", said.String(), err)
		}
	}
	if _, err := p.ptm.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(&said, out)
	p.ends(cmd.Wait(), 7, said.String(), "no answer was given; nothing was done")
}

// TestLoginToRouter logs in at a port where a router listens, which speaks TLS
// and no HTTP.
func TestLoginToRouter(t *testing.T) {
	dir := t.TempDir()
	c, err := start(t, dir, "--router", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	if _, _, err := net.SplitHostPort(c.router); err != nil {
		t.Fatalf("the router is at %q", c.router)
	}
	p := newTypist(t, dir)
	out, err := p.command("login", c.router, "--username", "admin").CombinedOutput()
	p.ends(err, 6, string(out), "speaks TLS, and no HTTP: it may be the port of a router")
}
