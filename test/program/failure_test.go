package program_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadSettings gives settings that cannot be meant. The controller says
// which, and touches nothing.
func TestBadSettings(t *testing.T) {
	config := func(text string) []string { return []string{"--config", write(t, "netkeep.yaml", text)} }
	for name, test := range map[string]struct {
		s    settings
		want []string // in the one line
	}{
		"syntax":              {settings{args: config("data: x\nlisten: [\n")}, []string{"netkeep.yaml:2: is no YAML"}},
		"tab":                 {settings{args: config("\tdata: x\n")}, []string{"netkeep.yaml:1: is no YAML"}},
		"unknown key":         {settings{args: config("data: x\n\nlistne: y\n")}, []string{"netkeep.yaml:3: ", `"listne"`, "nearest known is listen"}},
		"unknown nested key":  {settings{args: config("log:\n  levl: info\n")}, []string{"netkeep.yaml:2: ", `"log.levl"`, "nearest known is log.level"}},
		"repeated key":        {settings{args: config("data: x\ndata: y\n")}, []string{"netkeep.yaml:2: data is given twice", "line 1"}},
		"wrong type":          {settings{args: config("listen: 127.0.0.1:2\ndata: [x]\n")}, []string{"netkeep.yaml:2: data must be", "not a list"}},
		"duration":            {settings{args: config("session:\n  timeout: soon\n")}, []string{"netkeep.yaml:2: ", "session.timeout", "soon"}},
		"several":             {settings{args: config("log:\n  level: loud\nlistne: y\n")}, []string{"netkeep.yaml:2: log.level", "netkeep.yaml:3: unknown key"}},
		"no config file":      {settings{args: []string{"--config", "/nonexistent/file"}}, []string{"config file", "/nonexistent/file"}},
		"environment":         {settings{env: []string{"NETKEEP_SESSION_TIMEOUT=soon"}}, []string{"NETKEEP_SESSION_TIMEOUT", "soon"}},
		"level":               {settings{env: []string{"NETKEEP_LOG_LEVEL=loud"}}, []string{"log.level", "loud"}},
		"format":              {settings{args: []string{"--log-format", "xml"}}, []string{"log.format", "xml"}},
		"flag value":          {settings{args: []string{"--session-timeout", "soon"}}, []string{"session.timeout", "soon"}},
		"too short a timeout": {settings{args: []string{"--session-timeout", "1s"}}, []string{"session.timeout", "1m"}},
		"unknown flag":        {settings{args: []string{"--colour", "red"}}, []string{"--colour"}},
		"argument":            {settings{args: []string{"fast"}}, []string{"fast"}},
		"half a certificate":  {settings{args: []string{"--tls-cert", "x"}}, []string{"tls.cert", "tls.key"}},
		"no password file":    {settings{args: []string{"--admin-password-file", "/nonexistent/file"}}, []string{"admin.passwordFile", "/nonexistent/file"}},
		"address":             {settings{args: []string{"--listen", "nonsense"}}, []string{"listen", "nonsense"}},
		"port":                {settings{args: []string{"--listen", "127.0.0.1:99999"}}, []string{"listen", "99999"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			s := test.s
			s.args = append([]string{"run", "--data", data}, s.args...)
			code := 1
			if name == "unknown flag" || name == "argument" {
				code = 2
			}
			launch(t, s).refuses(code, test.want...)
			if _, err := os.Stat(data); !os.IsNotExist(err) {
				t.Errorf("the data directory was made: %v", err)
			}
		})
	}
}

// TestUnknownCommand misspells commands and flags, and is told what was meant.
func TestUnknownCommand(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"walk"}, []string{"walk", "see: netkeep --help"}},
		{[]string{"versoin"}, []string{`there is no "versoin" in "netkeep"; did you mean version?`}},
		{[]string{"run", "--lisen", "x"}, []string{"there is no flag --lisen; did you mean --listen?"}},
	} {
		launch(t, settings{args: test.args}).misused(test.want...)
	}
}

func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	data := filepath.Join(t.TempDir(), "data")
	launch(t, settings{args: []string{"run", "--data", data, "--listen", taken.Addr().String()}}).
		fails(taken.Addr().String(), "address already in use", "--listen")
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

// TestBadFirstStart fails once the data directory is open: the next start
// works with what is there.
func TestBadFirstStart(t *testing.T) {
	short := write(t, "short", "abc")
	for name, test := range map[string]struct{ args, want []string }{
		"algorithm":      {[]string{"--keys-algorithm", "ROT13"}, []string{"ROT13", "P-256"}},
		"short password": {[]string{"--admin-password-file", short}, []string{"password", "5 to 100"}},
		"short name":     {[]string{"--admin-username", "abc"}, []string{"username", "4 to 100"}},
		"advertise":      {[]string{"--advertise", "nonsense"}, []string{"advertise", "nonsense"}},
		"certificate":    {[]string{"--tls-cert", "/nonexistent/c", "--tls-key", "/nonexistent/k"}, []string{"/nonexistent/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			args := append([]string{"run", "--data", data, "--listen", "127.0.0.1:0"}, test.args...)
			launch(t, settings{args: args}).failsLate(test.want...)
			p := controller(t, data)
			p.client(data)
			p.stop()
		})
	}
}

// TestBadData starts on a data directory that cannot be used.
func TestBadData(t *testing.T) {
	file := write(t, "file", "this is no directory")
	for _, data := range []string{file, filepath.Join(file, "below"), ""} {
		launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}}).fails("data")
	}
}

// TestDamagedKeys damages the keystore in every way: the controller names the
// file, replaces nothing, and goes on once the file is back.
func TestDamagedKeys(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	p.client(data).must(t, 201, http.MethodPost, "identities", M{"name": "kept", "type": "User", "isAdmin": false})
	p.stop()
	overwrite := func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) }
	expose := func(path string) error { return os.Chmod(path, 0o644) }
	for name, test := range map[string]struct {
		file   string
		damage func(path string) error
	}{
		"garbage secret":       {"mac.key", overwrite},
		"garbage root":         {"root.crt", overwrite},
		"garbage intermediate": {"intermediate.crt", overwrite},
		"garbage key":          {"intermediate.key", overwrite},
		"empty root":           {"root.crt", func(path string) error { return os.Truncate(path, 0) }},
		"lost key":             {"intermediate.key", os.Remove},
		"lost secret":          {"mac.key", os.Remove},
		"open key":             {"root.key", expose},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(data, "pki", test.file)
			backup, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.damage(path); err != nil {
				t.Fatal(err)
			}
			launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}}).fails(path)
			if err := os.WriteFile(path, backup, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	checkKept(t, data)
}

// TestDamagedStore damages the store: the controller names it and gives up.
// What etcd says about it is in the log.
func TestDamagedStore(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	p.client(data).must(t, 201, http.MethodPost, "identities", M{"name": "kept", "type": "User", "isAdmin": false})
	p.stop()
	member := filepath.Join(data, "store", "member")
	for _, pattern := range []string{"wal/*.wal", "snap/db"} {
		found, err := filepath.Glob(filepath.Join(member, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		path := found[0]
		backup, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		broken := append([]byte(nil), backup...)
		copy(broken[64:], strings.Repeat("garbage ", 2048))
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		p := launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}})
		if code := p.wait(); code != 1 || p.stdout.String() != "" {
			t.Errorf("%s: exit code %d, output %q", pattern, code, p.stdout.String())
		}
		p.complains(complaints(p.stderr.String()), filepath.Join(data, "store"))
		if err := os.WriteFile(path, backup, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	checkKept(t, data)
}

// checkKept checks that the record "kept" is still there.
func checkKept(t *testing.T, data string) {
	t.Helper()
	p := controller(t, data)
	defer p.stop()
	for _, identity := range p.client(data).list(t, "identities") {
		if identity["name"] == "kept" {
			return
		}
	}
	t.Error("what was there before is gone")
}
