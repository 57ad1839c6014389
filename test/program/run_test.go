package program_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestVersion(t *testing.T) {
	p := launch(t, settings{args: []string{"version"}})
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := p.stdout.String(); !regexp.MustCompile(`^netkeep v\d+\.\d+\.\d+ \(.*go1\..*\)\n$`).MatchString(got) {
		t.Errorf("it printed %q", got)
	}
	if got := p.stderr.String(); got != "" {
		t.Errorf("it complained: %q", got)
	}
}

func TestHelp(t *testing.T) {
	p := launch(t, settings{args: []string{"run", "--help"}, env: []string{"NETKEEP_ADMIN_PASSWORD=hush hush"}})
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	help := p.stdout.String()
	for _, flag := range []string{"--data", "--listen", "--config", "--admin-password-file", "--tls-cert", "--session-timeout"} {
		if !strings.Contains(help, flag) {
			t.Errorf("the help lacks %s", flag)
		}
	}
	if strings.Contains(help, "hush") {
		t.Error("the help shows the password")
	}
}

var generated = regexp.MustCompile(`The first admin is (\S+) with the password (\S+)\n`)

// TestFirstStart follows what a first start prints, and what the second does
// not.
func TestFirstStart(t *testing.T) {
	data := filepath.Join(t.TempDir(), "it's a directory")
	args := []string{"run", "--data", data, "--listen", "127.0.0.1:0"}
	p := launch(t, settings{args: args})
	p.ready()
	found := generated.FindStringSubmatch(p.stdout.String())
	if found == nil {
		t.Fatalf("no password in:\n%s", p.stdout.String())
	}
	secret := found[2]
	if len(secret) < 20 {
		t.Errorf("the password %q is short", secret)
	}
	lines := curlLines(t, p.stdout.String(), "")
	if len(lines) != 2 {
		t.Fatalf("%d curl lines in:\n%s", len(lines), p.stdout.String())
	}
	for _, args := range lines {
		curl(t, args)
	}
	checkModes(t, data)
	p.stop()
	if strings.Contains(p.stderr.String(), secret) {
		t.Error("the log has the password")
	}
	checkNowhere(t, data, secret)

	again := launch(t, settings{args: args})
	again.ready()
	if text := again.stdout.String() + again.stderr.String(); strings.Contains(text, secret) || generated.MatchString(text) {
		t.Errorf("the second start shows a password:\n%s", text)
	}
	for _, args := range curlLines(t, again.stdout.String(), secret) {
		curl(t, args)
	}
	again.stop()
}

// curlLines returns the arguments of the curl commands in a text, as a shell
// would take them apart.
func curlLines(t *testing.T, text, password string) [][]string {
	t.Helper()
	var lines [][]string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "curl ")
		if !ok {
			continue
		}
		shell := exec.Command("sh", "-c", `printf '%s\0' `+rest)
		shell.Env = []string{"NETKEEP_ADMIN_PASSWORD=" + password}
		out, err := shell.Output()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
	}
	return lines
}

// curl does what curl would do with the arguments.
func curl(t *testing.T, args []string) {
	t.Helper()
	var url, ca, body string
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--cacert":
			i++
			ca = args[i]
		case "-d":
			i++
			body = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Set(name, value)
		default:
			if url != "" || strings.HasPrefix(args[i], "-") {
				t.Fatalf("a curl line has the argument %q", args[i])
			}
			url = args[i]
		}
	}
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: trust(t, ca)}}
	defer c.CloseIdleConnections()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("the line with %v answers %s", args, resp.Status)
	}
	if body != "" && resp.Header.Get("net-session") == "" {
		t.Errorf("the line with %v does not log in", args)
	}
}

// checkModes checks that the data is for its owner alone.
func checkModes(t *testing.T, data string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		files++
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}

// checkNowhere checks that no file holds a text.
func checkNowhere(t *testing.T, data, text string) {
	t.Helper()
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			t.Errorf("%s holds %q", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAdminPassword gives the first admin's password in every way there is.
func TestAdminPassword(t *testing.T) {
	file := write(t, "password", "from a file\n")
	for name, test := range map[string]struct {
		s    settings
		want string
	}{
		"environment":      {settings{env: []string{"NETKEEP_ADMIN_PASSWORD=from the environment"}}, "from the environment"},
		"file environment": {settings{env: []string{"NETKEEP_ADMIN_PASSWORD_FILE=" + file}}, "from a file"},
		"file flag":        {settings{args: []string{"--admin-password-file", file}}, "from a file"},
		"config file": {
			settings{args: []string{"--config", write(t, "c.yaml", "admin:\n  password: from the config\n  username: boss\n")}},
			"from the config",
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			test.s.args = append([]string{"run", "--data", data, "--listen", "127.0.0.1:0"}, test.s.args...)
			p := launch(t, test.s)
			c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
			username := "admin"
			if name == "config file" {
				username = "boss"
			}
			if err := c.login(username, test.want); err != nil {
				t.Error(err)
			}
			p.stop()
			if text := p.stdout.String() + p.stderr.String(); strings.Contains(text, test.want) || generated.MatchString(text) {
				t.Errorf("the password is shown:\n%s", text)
			}
		})
	}
}

// TestPasswordOnTheCommandLine gives it where every user of the machine sees
// it: nothing starts, and the error says where to put it instead.
func TestPasswordOnTheCommandLine(t *testing.T) {
	for _, args := range [][]string{{"run"}, {"config", "print"}, {"config", "check"}} {
		data := filepath.Join(t.TempDir(), "data")
		p := launch(t, settings{args: append(args, "--data", data, "--admin-password", "hush hush")})
		p.fails("--admin-password", "NETKEEP_ADMIN_PASSWORD", "--admin-password-file")
		if text := p.stdout.String() + p.stderr.String(); strings.Contains(text, "hush") {
			t.Errorf("the password is shown:\n%s", text)
		}
		if _, err := os.Stat(data); !os.IsNotExist(err) {
			t.Errorf("the data directory was made: %v", err)
		}
	}
}

// TestPasswordIsForTheFirstStart checks that a later password changes nothing.
func TestPasswordIsForTheFirstStart(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	controller(t, data).stop()
	p := launch(t, settings{
		args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}, env: []string{"NETKEEP_ADMIN_PASSWORD=another password"},
	})
	c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	if err := c.login("admin", "another password"); err == nil {
		t.Error("the password of the second start works")
	}
	if err := c.login("admin", password); err != nil {
		t.Error(err)
	}
	p.stop()
}

// TestFirstRequest measures how long a new controller takes to its first
// answer. On a busy machine one start may be slow, so the best of a few counts.
func TestFirstRequest(t *testing.T) {
	const limit, attempts = 2 * time.Second, 5
	best := time.Duration(1<<63 - 1)
	for i := 0; i < attempts && best > limit; i++ {
		data := filepath.Join(t.TempDir(), "data")
		p := launch(t, settings{
			args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"},
			env:  []string{"NETKEEP_ADMIN_PASSWORD=" + password},
		})
		c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
		c.must(t, http.StatusOK, http.MethodGet, "version", nil)
		took := time.Since(p.started)
		best = min(best, took)
		p.stop()
		used := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
		t.Logf("first answer after %s, with %s of processor time in all", took.Round(time.Millisecond), used.Round(time.Millisecond))
	}
	if best > limit {
		t.Errorf("the first answer took %s, want at most %s", best, limit)
	}
}
