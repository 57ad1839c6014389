// Package signin has people sign in with a real OpenID provider and the real binary: in a
// browser and on another device, as the first and as the second thing that is shown, on the
// command line and in a tunneler, and with all that can be wrong.
package signin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
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

var binary = func() string {
	path, err := filepath.Abs("../../bin/netkeep")
	if err != nil {
		panic(err)
	}
	return path
}()

// world is a controller, a provider that it knows, and the directories of people.
type world struct {
	t           *testing.T
	p           *provider
	dir         string
	address     string
	password    string
	fingerprint string
}

var ready = regexp.MustCompile(`(?s)netkeep is ready at (https://\S+)\n.*The first admin is admin with the password (\S+)\n.*SHA-256 ([0-9a-f]{64})\n`)

// jwt finds the beginning of a token in a text: its first three signs are those of some ids too.
var jwt = regexp.MustCompile(`eyJ[\w-]+\.eyJ`)

// start runs a controller with a router, and has it know a provider and a person of it.
func start(t *testing.T, life time.Duration, more ...string) *world {
	t.Helper()
	w := startAlone(t, life, more...)
	w.signer("Corp")
	w.good("admin", "create", "identity", "ann", "--is-admin=true", "--roles", "staff", "--external-id", person)
	return w
}

// startAlone is start, with a controller that knows nobody but an admin.
func startAlone(t *testing.T, life time.Duration, more ...string) *world {
	t.Helper()
	w := &world{t: t, p: newProvider(t, life), dir: t.TempDir()}
	args := append([]string{"run", "--data", w.data(), "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--router", "127.0.0.1:0"}, more...)
	cmd := exec.Command(binary, args...)
	cmd.Env = w.env("controller")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	logged := &safe{}
	cmd.Stderr = logged
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the controller: %s", logged)
		}
		if at := jwt.FindString(logged.String()); at != "" {
			t.Errorf("a token is in the controller's log: %s", at)
		}
	})
	text, lines := "", bufio.NewScanner(out)
	for lines.Scan() {
		text += lines.Text() + "\n"
		if m := ready.FindStringSubmatch(text); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			w.address, w.password, w.fingerprint = m[1], m[2], m[3]
			break
		}
	}
	if w.address == "" {
		t.Fatalf("the controller did not say that it is ready: %s", text)
	}
	w.good("admin", "login", "--data", w.data(), "--username", "admin")
	return w
}

func (w *world) data() string { return filepath.Join(w.dir, "data") }

// signer has the controller know the provider under a name.
func (w *world) signer(name string, more ...string) {
	w.t.Helper()
	w.good("admin", append([]string{"create", "ext-jwt-signer", name, "--enabled=true", "--issuer", w.p.URL, "--audience", application,
		"--jwks-endpoint", w.p.URL + "/keys", "--external-auth-url", w.p.URL, "--client-id", application, "--claims-property", "sub",
		"--use-external-id=true"}, more...)...)
}

// env is the variables of somebody with a directory of their own.
func (w *world) env(who string) []string {
	home := filepath.Join(w.dir, who)
	return []string{"HOME=" + home, "XDG_CONFIG_HOME=" + home, "PATH=" + os.Getenv("PATH"), "SSL_CERT_FILE=" + w.p.roots, "NETKEEP_PASSWORD=" + w.password}
}

// safe is a buffer that is written and read at the same time.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// running is a command under way.
type running struct {
	w    *world
	cmd  *exec.Cmd
	said *safe
	done chan struct{}
}

// command starts one of somebody who has a browser or has none.
func (w *world) command(who string, browser bool, args ...string) *running {
	w.t.Helper()
	if !browser {
		return w.commandWith(who, nil, args...)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.commandWith(who, []string{"BROWSER=" + self, actsAsBrowser + "=" + filepath.Join(w.dir, "browser")}, args...)
}

// commandWith starts one with further variables.
func (w *world) commandWith(who string, env []string, args ...string) *running {
	w.t.Helper()
	r := &running{w, exec.Command(binary, args...), &safe{}, make(chan struct{})}
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = append(w.env(who), env...), r.said, r.said
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.done })
	go func() {
		_ = r.cmd.Wait()
		close(r.done)
	}()
	return r
}

// end waits for the end of a command.
func (r *running) end() (text string, code int) {
	r.w.t.Helper()
	for late := time.After(2 * time.Minute); ; {
		select {
		case <-r.done:
		case <-late:
			r.w.t.Fatalf("%v does not end: %s", r.cmd.Args, r.said)
		case <-time.After(50 * time.Millisecond):
			if odd, err := os.ReadFile(filepath.Join(r.w.dir, "browser")); err == nil {
				r.w.t.Fatalf("the browser: %s", odd)
			}
			continue
		}
		break
	}
	if jwt.MatchString(r.said.String()) {
		r.w.t.Errorf("%v prints a token: %s", r.cmd.Args, r.said)
	}
	return r.said.String(), r.cmd.ProcessState.ExitCode()
}

// says waits until a command has said something.
func (r *running) says(pattern string) []string {
	r.w.t.Helper()
	what := regexp.MustCompile(pattern)
	for late := time.After(2 * time.Minute); ; {
		if m := what.FindStringSubmatch(r.said.String()); m != nil {
			return m
		}
		select {
		case <-r.done:
			if m := what.FindStringSubmatch(r.said.String()); m != nil {
				return m
			}
			r.w.t.Fatalf("%v ended and did not say %s: %s", r.cmd.Args, pattern, r.said)
		case <-late:
			r.w.t.Fatalf("%v does not say %s: %s", r.cmd.Args, pattern, r.said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// good runs a command that has to succeed, and returns what it says.
func (w *world) good(who string, args ...string) string {
	w.t.Helper()
	text, code := w.command(who, false, args...).end()
	if code != 0 {
		w.t.Fatalf("netkeep %s: %d\n%s", strings.Join(args, " "), code, text)
	}
	return text
}

// signIn logs somebody in with a browser.
func (w *world) signIn(who string, args ...string) (string, int) {
	w.t.Helper()
	text, code := w.command(who, true, append([]string{"login", w.address, "--sso", "--ca", filepath.Join(w.data(), "pki", "root.crt")}, args...)...).end()
	return text, code
}

// profile is what is kept of somebody.
func (w *world) profile(who string) (file string, kept map[string]any) {
	w.t.Helper()
	file = filepath.Join(w.dir, who, "netkeep", "profiles.json")
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var book struct {
		Current  string
		Profiles map[string]map[string]any
	}
	if err := json.Unmarshal(data, &book); err != nil {
		w.t.Fatal(err)
	}
	return file, book.Profiles[book.Current]
}

// sessions are the ids of those that somebody has.
func (w *world) sessions(who string) (ids []string) {
	w.t.Helper()
	var list []struct {
		ID       string
		Identity struct{ Name string }
	}
	text := w.good("admin", "list", "api-sessions", "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	for _, s := range list {
		if s.Identity.Name == who {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// TestLogin signs in in a browser, goes on when tokens end, and signs out.
func TestLogin(t *testing.T) {
	w := start(t, 20*time.Second) // of which the last 30 do not count
	text, code := w.signIn("ann")
	if code != 0 || !strings.Contains(text, "as ann") {
		t.Fatalf("%d: %s", code, text)
	}
	file, kept := w.profile("ann")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || kept["signedIn"] == nil {
		t.Errorf("it is kept in %v, %v", info.Mode(), err)
	}
	if text := w.good("ann", "whoami"); !strings.Contains(text, "ann, an admin") {
		t.Error(text)
	}
	w.good("admin", append([]string{"delete", "api-session", "--yes"}, w.sessions("ann")...)...)
	if text := w.good("ann", "whoami"); !strings.Contains(text, "ann, an admin") {
		t.Error(text)
	}
	if w.p.store.renewed.Load() == 0 {
		t.Error("the provider was not asked for newer tokens")
	}
	if text := w.good("ann", "logout"); !strings.Contains(text, "Logged out") || strings.Contains(text, "not told") {
		t.Error(text)
	}
	if _, kept := w.profile("ann"); kept["signedIn"] != nil || len(w.sessions("ann")) != 0 {
		t.Errorf("after that there is %v", kept)
	}
	if text, code := w.command("ann", false, "whoami").end(); code != 4 {
		t.Errorf("%d: %s", code, text)
	}
}

// TestDevice signs in on another device.
func TestDevice(t *testing.T) {
	w := start(t, time.Hour)
	login := w.command("ann", false, "login", w.address, "--sso", "corp", "--ca", filepath.Join(w.data(), "pki", "root.crt"))
	shown := login.says(`(https://\S+/device)\s[\s\S]*\n  ([A-Z-]{8,})\n`)
	if !strings.HasPrefix(shown[1], w.p.URL) {
		t.Errorf("people are sent to %s", shown[1])
	}
	if err := w.p.store.CompleteDeviceAuthorization(t.Context(), shown[2], person); err != nil {
		t.Fatal(err)
	}
	if text, code := login.end(); code != 0 || !strings.Contains(text, "as ann") {
		t.Fatalf("%d: %s", code, text)
	}
	again := w.command("bob", false, "login", w.address, "--sso", "--ca", filepath.Join(w.data(), "pki", "root.crt"))
	shown = again.says(`\n  ([A-Z-]{8,})\n`)
	if err := w.p.store.DenyDeviceAuthorization(t.Context(), shown[1]); err != nil {
		t.Fatal(err)
	}
	if text, code := again.end(); code != 4 || !strings.Contains(text, "begin again with netkeep login") {
		t.Errorf("%d: %s", code, text)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "bob", "netkeep", "profiles.json")); err == nil {
		t.Error("something is left of who was not let in")
	}
}

// TestBadInput signs in where that cannot be: each is one sentence that says what to do, and
// nothing is left behind.
func TestBadInput(t *testing.T) {
	w := start(t, time.Hour)
	fails := func(code int, says string, args ...string) {
		t.Helper()
		who := "nobody"
		text, got := w.signIn(who, args...)
		if lines := strings.Count(strings.TrimSpace(text), "\n"); got != code || !strings.Contains(text, says) || lines > 0 {
			t.Errorf("%v: %d: %s", args, got, text)
		}
		if left, err := os.ReadDir(filepath.Join(w.dir, who)); err == nil {
			t.Errorf("%v leaves %v", args, left)
		}
	}
	fails(3, `there is no signer "Crop"; there is: "Corp"`, "--signer", "Crop")
	fails(3, `there is no signer "Crop"; there is: "Corp"`, "--sso=Crop")
	fails(2, "leave the others out", "--username", "admin")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	fails(1, "name another port with --sso-port", "--sso-port", port)
	w.p.away.Store(true)
	fails(6, "cannot be reached")
	w.p.away.Store(false)
	w.good("admin", "create", "ext-jwt-signer", "Guests", "--enabled=true", "--issuer", "https://guests.example", "--audience", "guests",
		"--jwks-endpoint", "https://127.0.0.1:1/keys", "--external-auth-url", "https://127.0.0.1:1", "--client-id", "guests")
	fails(3, `name one with --signer: "Corp", "Guests"`)
	fails(6, "look whether this machine reaches and trusts it", "--signer", "guests")
	w.good("admin", "delete", "identity", "ann", "--yes")
	text, code := w.signIn("stranger", "--signer", "Corp")
	if code != 4 || !strings.Contains(text, `"Corp" knows you, and this network does not let you in`) {
		t.Errorf("%d: %s", code, text)
	}
	if left, err := os.ReadDir(filepath.Join(w.dir, "stranger")); err == nil {
		t.Errorf("a stranger leaves %v", left)
	}
}

// chromium is a real browser, in which the person has logged in before: the program, and
// where the page is left that it shows in the end. There is no program if there is none.
func (w *world) chromium() (script, page string) {
	w.t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless_shell", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return "", ""
	}
	w.p.known.Store(true)
	script, page = filepath.Join(w.dir, "browser.sh"), filepath.Join(w.dir, "page.html")
	data, err := os.MkdirTemp("", "chromium")
	if err != nil {
		w.t.Fatal(err)
	}
	// Its processes may write for a moment after it has gone.
	w.t.Cleanup(func() { _ = os.RemoveAll(data) })
	text := "#!/bin/sh\nexec " + path + " --headless --no-sandbox --disable-gpu --ignore-certificate-errors --user-data-dir=" + data +
		" --dump-dom \"$1\" >" + page + " 2>/dev/null\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return script, page
}

// TestChromium signs in with a real browser.
func TestChromium(t *testing.T) {
	w := start(t, time.Hour)
	script, page := w.chromium()
	if script == "" {
		t.Fatal("there is no Chromium; test/browser/prepare gets it")
	}
	login := w.commandWith("ann", []string{"BROWSER=" + script}, "login", w.address, "--sso", "--ca", filepath.Join(w.data(), "pki", "root.crt"))
	if said, code := login.end(); code != 0 || !strings.Contains(said, "as ann") {
		t.Fatalf("%d: %s", code, said)
	}
	for late := time.Now().Add(time.Minute); ; {
		if shown, err := os.ReadFile(page); err == nil && strings.Contains(string(shown), "You may close this page") {
			return
		} else if time.Now().After(late) {
			t.Fatalf("the browser shows %s, %v", shown, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}
