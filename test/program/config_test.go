package program_test

import (
	"net/http"
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
		launch(t, settings{args: []string{"config", command, "fast"}}).fails("fast")
	}
	launch(t, settings{args: []string{"config", "walk"}}).fails("walk")
}

func TestConfigCheck(t *testing.T) {
	file := write(t, "netkeep.yaml", "listen: 127.0.0.1:1\n")
	p := launch(t, settings{args: []string{"config", "check", "--config", file}})
	if code := p.wait(); code != 0 || p.stderr.String() != "" {
		t.Errorf("exit code %d: %s", code, p.stderr.String())
	}
}

// TestManagementListener runs a controller with a listener for each API: what
// it prints leads to the right one.
func TestManagementListener(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data, "--management-listen", "127.0.0.1:0")
	lines := curlLines(t, p.stdout.String(), password)
	if len(lines) != 2 {
		t.Fatalf("%d curl lines in:\n%s", len(lines), p.stdout.String())
	}
	for _, args := range lines {
		curl(t, args)
	}
	c := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	c.must(t, http.StatusNotFound, http.MethodGet, "version", nil)
	p.stop()
}
