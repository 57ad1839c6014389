package program_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConfigPrint prints settings from everywhere: it tells where each is from
// and keeps the password to itself.
func TestConfigPrint(t *testing.T) {
	file := write(t, "netkeep.yaml", "log:\n  level: debug\nadmin:\n  password: hush-file\n")
	secret := write(t, "password", "hush-password-file\n")
	for name, test := range map[string]struct {
		s    settings
		want []string // lines
	}{
		"defaults": {settings{}, []string{"data: data # default", `  password: "" # default`, "  level: info # default"}},
		"file": {settings{args: []string{"--config", file}}, []string{
			"  level: debug # " + file + ":2", "  # password: hidden # " + file + ":4",
		}},
		"file by environment": {settings{env: []string{"NETKEEP_CONFIG=" + file}}, []string{"  level: debug # " + file + ":2"}},
		"environment": {
			settings{args: []string{"--config", file}, env: []string{"NETKEEP_ADMIN_PASSWORD=hush-environment", "NETKEEP_LOG_LEVEL=warn"}},
			[]string{"  level: warn # environment variable NETKEEP_LOG_LEVEL", "  # password: hidden # environment variable NETKEEP_ADMIN_PASSWORD"},
		},
		"flag": {
			settings{args: []string{"--log-level", "error"}, env: []string{"NETKEEP_LOG_LEVEL=warn"}},
			[]string{"  level: error # flag --log-level"},
		},
		"password file": {
			settings{args: []string{"--admin-password-file", secret}},
			[]string{`  password: "" # default`, "  passwordFile: " + secret + " # flag --admin-password-file"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.s
			s.args = append([]string{"config", "print"}, s.args...)
			p := launch(t, s)
			if code := p.wait(); code != 0 || p.stderr.String() != "" {
				t.Errorf("exit code %d: %s", code, p.stderr.String())
			}
			out := p.stdout.String()
			if strings.Contains(out, "hush") {
				t.Errorf("it shows the password:\n%s", out)
			}
			for _, line := range test.want {
				if !strings.Contains("\n"+out, "\n"+line+"\n") {
					t.Errorf("it lacks the line %q:\n%s", line, out)
				}
			}
			// What it prints is a file with the same settings.
			again := launch(t, settings{args: []string{"config", "print", "--config", write(t, "again.yaml", out)}})
			if code := again.wait(); code != 0 {
				t.Errorf("what it printed is refused: %s", again.stderr.String())
			}
			if got, want := values(again.stdout.String()), values(out); got != want {
				t.Errorf("what it printed is read as\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// values leaves comments and passwords out of printed settings.
func values(text string) string {
	return regexp.MustCompile(`(?m)^ *(# )?password: .*\n| #.*$`).ReplaceAllString(text, "")
}

// TestConfigMistakes gives the commands that only look at settings some that
// are wrong.
func TestConfigMistakes(t *testing.T) {
	file := write(t, "netkeep.yaml", "admin:\n  password: hush\n\nlistne: 127.0.0.1:1\n")
	for _, command := range []string{"print", "check"} {
		launch(t, settings{args: []string{"config", command, "--config", file}}).
			fails(file+":4: ", `unknown key "listne"`, "the nearest known is listen")
		launch(t, settings{args: []string{"config", command, "--tls-cert", "x"}}).fails("tls.cert", "tls.key")
		launch(t, settings{args: []string{"config", command, "fast"}}).misused("fast")
	}
	launch(t, settings{args: []string{"config", "walk"}}).misused("walk")
}

func TestConfigCheck(t *testing.T) {
	file := write(t, "netkeep.yaml", "listen: 127.0.0.1:1\n")
	p := launch(t, settings{args: []string{"config", "check", "--config", file}})
	if code := p.wait(); code != 0 || p.stderr.String() != "" {
		t.Errorf("exit code %d: %s", code, p.stderr.String())
	}
}

// TestIgnoredVariable has one that is no setting: it is told of, by commands
// and in the log, and everything goes on.
func TestIgnoredVariable(t *testing.T) {
	env := []string{"NETKEEP_LISTNE=x"}
	const want = "is no setting and is ignored; the nearest that is one is NETKEEP_LISTEN"
	check := launch(t, settings{args: []string{"config", "check"}, env: env})
	if code := check.wait(); code != 0 || !strings.Contains(check.stderr.String(), want) {
		t.Errorf("exit code %d: %s", code, check.stderr.String())
	}
	run := launch(t, settings{args: []string{"run", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, env: append(env, "NETKEEP_ADMIN_PASSWORD="+password)})
	run.ready()
	if !strings.Contains(run.stderr.String(), want) {
		t.Errorf("it logs %s", run.stderr.String())
	}
}

// TestCheckedAsRun gives settings that are right one by one and that no
// controller can run with: a check says what a run says, and neither leaves
// anything behind.
func TestCheckedAsRun(t *testing.T) {
	file := write(t, "text", "no PEM\n")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"no certificate":   {[]string{"--tls-cert", "/nonexistent/crt", "--tls-key", "/nonexistent/key"}, []string{"/nonexistent/crt"}},
		"no PEM":           {[]string{"--tls-cert", file, "--tls-key", file}, []string{file}},
		"profiles for all": {[]string{"--metrics-listen", "0.0.0.0:0", "--metrics-pprof"}, []string{"metrics.pprof", "loopback"}},
		"two in one place": {[]string{"--listen", "127.0.0.1:17", "--management-listen", "127.0.0.1:17"}, []string{"listen and management.listen", "127.0.0.1:17"}},
		"metrics on top":   {[]string{"--listen", "127.0.0.1:17", "--metrics-listen", "0.0.0.0:17"}, []string{"listen and metrics.listen"}},
		"all addresses":    {[]string{"--listen", "0.0.0.0:1280"}, []string{"listen is 0.0.0.0:1280", "--advertise", ":1280"}},
		"all of IPv6":      {[]string{"--listen", "[::]:1280"}, []string{"listen is [::]:1280", "--advertise"}},
		"no host":          {[]string{"--listen", ":1280"}, []string{"listen is :1280", "--advertise"}},
		"for admins":       {[]string{"--management-listen", "0.0.0.0:1290"}, []string{"management.listen is 0.0.0.0:1290", "--management-advertise"}},
		"no CA of etcd":    {[]string{"--store-endpoints", "https://127.0.0.1:1", "--store-ca", "/nonexistent/ca"}, []string{"store.ca", "/nonexistent/ca"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			check := launch(t, settings{args: append([]string{"config", "check", "--data", data}, test.args...)})
			check.fails(test.want...)
			run := launch(t, settings{args: append([]string{"run", "--data", data}, test.args...)})
			run.fails(test.want...)
			if check.stderr.String() != run.stderr.String() {
				t.Errorf("a check says %s and a run %s", check.stderr.String(), run.stderr.String())
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("the data directory was made: %v", err)
			}
		})
	}
}

// TestManagementListener runs a controller with a listener for each API: what
// it prints leads to the right one.
func TestManagementListener(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data, "--management-listen", "127.0.0.1:0")
	try(t, p.stdout.String(), password)
	c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	c.must(t, http.StatusNotFound, http.MethodGet, "version", nil)
	p.stop()
}
