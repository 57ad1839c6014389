package program_test

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// waitTime bounds everything that a test waits for. It is long because the
// machine may be busy.
const waitTime = 60 * time.Second

const password = "a password for tests"

// process is a running program.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr output
	started        time.Time
	ended          chan struct{}
}

// output keeps what a process prints and tells when there is more.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed at the next write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(p)
}

// look returns everything so far, and what to wait on for more.
func (o *output) look() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.text.String(), o.more
}

func (o *output) String() string {
	text, _ := o.look()
	return text
}

// settings is how a process is started.
type settings struct {
	binary string // instead of the one that was built for all tests
	args   []string
	env    []string // only these; the test's own environment is kept away
}

// launch starts the program. It ends with the test at the latest.
func launch(t *testing.T, s settings) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(cmp.Or(s.binary, binary), s.args...), started: time.Now(), ended: make(chan struct{})}
	p.cmd.Env = append([]string{"HOME=" + os.TempDir(), "NETKEEP_METRICS_LISTEN=off", "XDG_RUNTIME_DIR=" + filepath.Join(filepath.Dir(binary), "run")}, s.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%v printed:\n%s\nand logged:\n%s", p.cmd.Args, p.stdout.String(), tail(p.stderr.String(), 4000))
		}
	})
	return p
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// controller starts a controller on a free port, with a password unless env
// gives another, and returns when it is ready.
func controller(t *testing.T, data string, more ...string) *process {
	t.Helper()
	p := launch(t, settings{
		args: append([]string{"run", "--data", data, "--listen", "127.0.0.1:0"}, more...),
		env:  []string{"NETKEEP_ADMIN_PASSWORD=" + password},
	})
	p.ready()
	return p
}

// welcomed is the text that a controller prints at its start, whole.
var welcomed = regexp.MustCompile(`(?s)netkeep is ready at ([^\n]*)\n.*SHA-256 [0-9a-f]{64}\n\n$`)

// ready waits until the controller says so and returns where it is.
func (p *process) ready() (url string) {
	p.t.Helper()
	return p.said(welcomed)
}

// said waits until the process has said something, and returns what is in its
// first group.
func (p *process) said(what *regexp.Regexp) string {
	p.t.Helper()
	timeout := time.NewTimer(waitTime)
	defer timeout.Stop()
	for {
		text, more := p.stdout.look()
		if found := what.FindStringSubmatch(text); found != nil {
			return found[1]
		}
		select {
		case <-more:
		case <-p.ended:
			p.t.Fatalf("the process ended: %v\n%s\n%s", p.cmd.ProcessState, text, p.stderr.String())
		case <-timeout.C:
			p.t.Fatalf("%v was not said within %s:\n%s\n%s", what, waitTime, text, p.stderr.String())
		}
	}
}

// wait returns the exit code of a process that ends by itself.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(waitTime):
		p.t.Fatalf("%v did not end within %s", p.cmd.Args, waitTime)
	}
	return p.cmd.ProcessState.ExitCode()
}

// logs waits until the process has logged a text.
func (p *process) logs(text string) {
	p.t.Helper()
	timeout := time.NewTimer(waitTime)
	defer timeout.Stop()
	for {
		all, more := p.stderr.look()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-more:
		case <-timeout.C:
			p.t.Fatalf("it did not log %q within %s", text, waitTime)
		}
	}
}

// signal sends a signal to the process.
func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// stop ends a controller in the orderly way.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		p.t.Fatalf("the controller ended with %d after SIGTERM:\n%s", code, p.stderr.String())
	}
}

// fails checks that the program refused to work in the way it should: one
// line, which holds every text given, nothing else, and exit code 1.
func (p *process) fails(texts ...string) {
	p.t.Helper()
	p.refuses(1, texts...)
}

// misused checks that the program was called in a way that it does not know.
func (p *process) misused(texts ...string) {
	p.t.Helper()
	p.refuses(2, texts...)
}

func (p *process) refuses(code int, texts ...string) {
	p.t.Helper()
	p.ends(code, texts...)
	if text := p.stderr.String(); text != complaints(text) {
		p.t.Errorf("it logged before it failed: %s", text)
	}
}

// failsLate is fails of a program that has begun to log.
func (p *process) failsLate(texts ...string) {
	p.t.Helper()
	p.ends(1, texts...)
}

func (p *process) ends(want int, texts ...string) {
	p.t.Helper()
	if code := p.wait(); code != want {
		p.t.Errorf("exit code %d, want %d", code, want)
	}
	if got := p.stdout.String(); got != "" {
		p.t.Errorf("it printed %q", got)
	}
	p.complains(complaints(p.stderr.String()), texts...)
}

// complains checks that the text is one line of complaint.
func (p *process) complains(text string, about ...string) {
	p.t.Helper()
	line, rest, ended := strings.Cut(text, "\n")
	if !strings.HasPrefix(line, "netkeep: ") || !ended || rest != "" {
		p.t.Errorf("want one line of complaint, got:\n%s", text)
	}
	for _, want := range about {
		if !strings.Contains(line, want) {
			p.t.Errorf("the line lacks %q: %s", want, line)
		}
	}
}

// complaints returns the lines of a log that are not log entries.
func complaints(log string) string {
	var lines strings.Builder
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, `{"time":`) {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

// write puts a text into a file of a new directory.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
