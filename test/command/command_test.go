// Package command_test runs scripts of the real program against a real
// controller, as people and their scripts do: every command, its output, its
// refusals and its exit codes, on a terminal where that matters.
package command_test

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/pquerna/otp/totp"
	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// password is that of every controller's admin.
const password = "a password for scripts"

// bin is a directory with the program.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "netkeep-command"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(bin, "netkeep"), "../../cmd/netkeep")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("TERM", "xterm")
			env.Setenv("PASSWORD", password)
			c, err := start(t, env.WorkDir)
			if err != nil {
				return err
			}
			env.Defer(c.stop)
			env.Setenv("URL", "https://"+c.address)
			env.Setenv("HOSTPORT", c.address)
			env.Setenv("FINGERPRINT", c.fingerprint)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "code": code, "mode": mode, "setenv": setenv, "terminal": terminal, "damage": damage, "many": many, "jwt": signJWT, "issue": issue,
		},
	})
}

// controller is one that runs.
type controller struct {
	address     string // host and port
	fingerprint string // of its CA
	router      string // host and port of the one inside it, if there is one
	stop        func()
}

// start runs a controller with its data in the directory data of another.
func start(t *testing.T, dir string, more ...string) (*controller, error) {
	cmd := exec.Command(filepath.Join(bin, "netkeep"), append([]string{"run", "--data", "data", "--listen", "127.0.0.1:0", "--log-level", "error"}, more...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "NETKEEP_ADMIN_PASSWORD="+password)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &controller{stop: func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the controller: %v\n%s", err, &log)
		}
	}}
	lines := bufio.NewScanner(out)
	for c.fingerprint == "" && lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if at, ok := strings.CutPrefix(text, "netkeep is ready at https://"); ok {
			c.address = at
		}
		if at, ok := strings.CutPrefix(text, "A router for clients is at "); ok {
			c.router = at
		}
		if sum, ok := strings.CutPrefix(text, "SHA-256 "); ok {
			c.fingerprint = sum
		}
	}
	if c.fingerprint == "" {
		return nil, fmt.Errorf("the controller did not start: %w\n%s", errors.Join(lines.Err(), cmd.Wait()), &log)
	}
	return c, nil
}

// exits runs a program that must end with an exit code: exits 3 netkeep …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := err.(*exec.ExitError); ok {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

var keyURL = regexp.MustCompile(`otpauth://\S+`)

// code puts into a variable a one-time code for the key in a file: code NAME
// FILE [PERIODS-FROM-NOW]
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code NAME FILE [PERIODS]")
	}
	text := ts.ReadFile(args[1])
	at, err := url.Parse(keyURL.FindString(text))
	ts.Check(err)
	periods := 0
	if len(args) > 2 {
		periods, err = strconv.Atoi(args[2])
		ts.Check(err)
	}
	value, err := totp.GenerateCode(at.Query().Get("secret"), time.Now().Add(time.Duration(periods)*30*time.Second))
	ts.Check(err)
	ts.Setenv(args[0], value)
}

// mode checks who may open a file: mode 600 FILE
func mode(ts *testscript.TestScript, neg bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); (got == args[0]) == neg {
		ts.Fatalf("%s has mode %s", args[1], got)
	}
}

// setenv puts what a file holds, without its end, into a variable: setenv NAME
// FILE
func setenv(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// wiped is what a terminal shows in the end: a line that says how far something
// has come, which a slow machine may show, is wiped.
func wiped(text string) string {
	parts := strings.Split(text, "\r\x1b[K")
	for i, part := range parts[:len(parts)-1] {
		parts[i] = part[:strings.LastIndex(part, "\n")+1]
	}
	return strings.Join(parts, "")
}

// terminal runs a program on a terminal of so many columns, types what a file
// holds, and gives what the terminal showed to stdout: terminal 80 FILE CODE
// PROGRAM [ARGUMENT…]
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: terminal COLUMNS FILE CODE PROGRAM [ARGUMENT…]")
	}
	columns, err := strconv.ParseUint(args[0], 10, 16)
	ts.Check(err)
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	program, err := exec.LookPath(filepath.Join(strings.Split(ts.Getenv("PATH"), string(os.PathListSeparator))[0], args[3]))
	ts.Check(err)
	cmd := exec.Command(program, args[4:]...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TERM", "NO_COLOR", "NETKEEP_PASSWORD"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: uint16(columns)})
	ts.Check(err)
	defer tty.Close()
	var shown bytes.Buffer
	answers := strings.SplitAfter(ts.ReadFile(args[1]), "\n")
	read := make(chan struct{})
	go func() {
		defer close(read)
		// Each question is answered once it is there: what comes before a
		// password is asked for would be shown.
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			shown.Write(buf[:n])
			if text := shown.String(); n > 0 && len(answers) > 0 && question.MatchString(text) {
				_, _ = tty.WriteString(answers[0])
				answers = answers[1:]
			}
			if err != nil {
				return // the program has ended
			}
		}
	}()
	err = cmd.Wait()
	<-read
	fmt.Fprint(ts.Stdout(), strings.ReplaceAll(wiped(shown.String()), "\r\n", "\n"))
	got := 0
	if e, ok := err.(*exec.ExitError); ok {
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d; the terminal showed:\n%s", got, want, shown.String())
	}
}

// question is how what is shown ends while a program waits for an answer.
var question = regexp.MustCompile(`(\] |: )$`)

// damage changes a byte in the middle of a file: damage FILE
func damage(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.WriteFile(path, data, 0o600))
}

// many writes a file with so many identities: many FILE COUNT
func many(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b strings.Builder
	b.WriteString("identities:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: identity-%d, roleAttributes: [staff]}\n", i)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}
