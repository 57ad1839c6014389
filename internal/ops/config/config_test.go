package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/lang/document/documenttest"
	"netkeep.internal/internal/ops/config"
)

// write puts a text into a file called netkeep.yaml and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "netkeep.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDefault checks that the settings of a controller that was told nothing
// are right.
func TestDefault(t *testing.T) {
	c := config.Default()
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if c.Listen != "127.0.0.1:1280" || c.Session.Timeout != 30*time.Minute || c.Limits.Body != 1<<20 || c.Egress.Strict {
		t.Errorf("the defaults are %+v", c)
	}
}

// TestSettings checks that every setting is declared in full: all of its names,
// a sentence, and an example that is right.
func TestSettings(t *testing.T) {
	c := config.Default()
	seen := map[string]bool{}
	for s := range c.Settings() {
		for _, name := range []string{"key " + s.Key, "variable " + s.Env, "flag --" + s.Flag} {
			if seen[name] {
				t.Errorf("%s: the %s is taken", s.Key, name)
			}
			seen[name] = true
		}
		if !strings.HasSuffix(s.Doc, ".") || strings.ToUpper(s.Doc[:1]) != s.Doc[:1] {
			t.Errorf("%s: %q is no sentence", s.Key, s.Doc)
		}
		if s.Get() != s.Default {
			t.Errorf("%s: the default %q is written as %q", s.Key, s.Default, s.Get())
		}
		if err := s.Set(s.Example()); err != nil || s.Example() == "" || s.Get() != s.Example() {
			t.Errorf("%s: the example %q: %v", s.Key, s.Example(), err)
		}
	}
}

// fileMistakes are files that cannot be meant, and what is said of them after
// the file's name.
var fileMistakes = map[string]struct{ text, want string }{
	"webhook without a secret": {"alerts:\n  - url: https://hooks.example.org/x\n", `:1: alerts number 1 must have a secretFile, with which alerts are signed, such as /etc/netkeep/hook.secret: openssl rand -hex 32 writes one`},
	"webhook misspelt":         {"alerts:\n  - ulr: https://hooks.example.org/x\n", `:1: alerts number 1 has an unknown key "ulr"; the nearest known is url`},
	"webhook that is a text":   {"alerts: [x]\n", `:1: alerts number 1 must have keys with values, such as url and secretFile, not be a plain value`},
	"webhook of no URL":        {"alerts: [{url: hooks, secretFile: s}]\n", `:1: alerts number 1 must have a URL without a user name as url, such as https://hooks.example.org/netkeep`},
	"webhooks of one name":     {"alerts: [{url: http://h/1, secretFile: s}, {url: http://h/2, secretFile: s}]\n", `:1: alerts number 2 is called h like another: give each a name of its own`},
	"webhook for nothing":      {"alerts: [{url: http://h/1, secretFile: s, on: []}]\n", `:1: alerts number 1 has no event in on; leave it out for the usual ones`},
	"alerts by themselves":     {"alerts: on\n", `:1: alerts must be a list, not a plain value`},
	"unknown key":              {"data: x\n\nlistne: y\n", `:3: unknown key "listne"; the nearest known is listen`},
	"unknown section":          {"sesion:\n  timeout: 1h\n", `:1: unknown key "sesion"; the nearest known is session`},
	"unknown below":            {"log:\n  # comment\n  levl: info\n", `:3: unknown key "log.levl"; the nearest known is log.level`},
	"unlike any":               {"log:\n  colour: red\n", `:2: unknown key "log.colour"; the nearest known is log.format`},
	"of another section":       {"algorithm: P-256\n", `:1: unknown key "algorithm"; the nearest known is keys.algorithm`},
	"too deep":                 {"log:\n  level:\n    deep: 1\n", `:2: log.level must be debug, info, warn or error, such as info, not keys with values`},
	"other case":               {"Listen: x\n", `:1: unknown key "Listen"; the nearest known is listen`},
	"dotted key":               {"log.level: info\n", `:1: unknown key "log.level"; write level below log`},
	"unknown dotted key":       {"log.levl: info\n", `:1: unknown key "log.levl"; the nearest known is log.level`},
	"number as key":            {"1: x\n", `:1: unknown key "1"; the nearest known is tls`},
	"merge key":                {"<<: x\n", `:1: unknown key "<<"; the nearest known is tls`},
	"long key":                 {strings.Repeat("x", 200) + ": x\n", `:1: unknown key "` + strings.Repeat("x", 60) + `…"; the nearest known is store.prefix`},
	"repeated key":             {"data: x\nlog:\n  level: info\ndata: y\n", `:4: data is given twice; the first is on line 1`},
	"repeated below":           {"log:\n  level: info\n  level: warn\n", `:3: log.level is given twice; the first is on line 2`},
	"repeated section":         {"log:\n  level: info\nlog:\n  format: json\n", `:3: log is given twice; the first is on line 1`},
	"list for text":            {"listen: 127.0.0.1:2\ndata: [x]\n", `:2: data must be the path of a directory, such as data, not a list`},
	"keys for text":            {"data:\n  x: y\n", `:1: data must be the path of a directory, such as data, not keys with values`},
	"keys for list":            {"store:\n  endpoints: {a: b}\n", `:2: store.endpoints must be a list of addresses without user names, such as https://etcd-1.example.org:2379,https://etcd-2.example.org:2379, not keys with values`},
	"keys in list":             {"store:\n  endpoints: [{a: b}]\n", `:2: store.endpoints must be a list of addresses without user names, such as https://etcd-1.example.org:2379,https://etcd-2.example.org:2379, not a list with keys with values`},
	"empty in list":            {"store:\n  endpoints: [a, \"\"]\n", `:2: store.endpoints must be a list of addresses without user names, such as https://etcd-1.example.org:2379,https://etcd-2.example.org:2379, not "a,"`},
	"list for password":        {"admin:\n  password: [hush]\n", `:2: admin.password must be a text, such as correct-horse-battery-staple, not a list`},
	"text for section":         {"log: debug\n", `:1: log must hold keys of its own, such as log.level, not a plain value`},
	"list for section":         {"log:\n  - debug\n", `:1: log must hold keys of its own, such as log.level, not a list`},
	"list for file":            {"- data\n", `:1: must hold keys with values, such as data: data, not a list`},
	"text for file":            {"listen 127.0.0.1:1280\n", `:1: must hold keys with values, such as data: data, not a plain value`},
	"anchor":                   {"data: &a x\n", `:1: data must be the path of a directory, such as data, not an anchor or alias`},
	"tag":                      {"data: !!str x\n", `:1: data must be the path of a directory, such as data, not a tag`},
	"second document":          {"data: x\n---\nlisten: y\n", `:3: holds a second document; settings are one`},
	"deep brackets":            {"data: x\n" + strings.Repeat("[", 60000), `:2: lists and objects are in each other more than 64 times`},
	"deep braces":              {strings.Repeat("{a: ", 15000), `:1: lists and objects are in each other more than 64 times`},
	"deep entries":             {"data:\n" + strings.Repeat("- ", 30000), `:2: lists and objects are in each other more than 64 times`},
	"open list":                {"data: x\nlisten: [\n", `:2: is no YAML: SYNTAX`},
	"tab":                      {"\tdata: x\n", `:1: is no YAML: SYNTAX`},
	"open quote":               {"data: x\nlisten: \"y\n", `:2: is no YAML: SYNTAX`},
	"duration":                 {"session:\n  timeout: soon\n", `:2: session.timeout must be a duration of at least 1m, such as 30m, not "soon"`},
	"duration, no unit":        {"session:\n  timeout: 30\n", `:2: session.timeout must be a duration of at least 1m, such as 30m, not "30"`},
	"duration, too short":      {"session:\n  timeout: 59s\n", `:2: session.timeout must be a duration of at least 1m, such as 30m, not "59s"`},
	"duration, too long":       {"timeouts:\n  idle: 25h\n", `:2: timeouts.idle must be a duration from 100ms to 24h, such as 2m, not "25h"`},
	"number":                   {"limits:\n  connections: many\n", `:2: limits.connections must be a number from 1 to 1000000, such as 1200, not "many"`},
	"number, too small":        {"limits:\n  connections: 0\n", `:2: limits.connections must be a number from 1 to 1000000, such as 1200, not "0"`},
	"number, too large":        {"limits:\n  logins: 1000001\n", `:2: limits.logins must be a number from 0 to 1000000, such as 3000, not "1000001"`},
	"number, huge":             {"limits:\n  logins: 99999999999999999999\n", `:2: limits.logins must be a number from 0 to 1000000, such as 3000, not "99999999999999999999"`},
	"fraction":                 {"limits:\n  enrollments: 1.5\n", `:2: limits.enrollments must be a number from 0 to 1000000, such as 3000, not "1.5"`},
	"size":                     {"limits:\n  body: 1 MB\n", `:2: limits.body must be a size from 64KiB to 8MiB, such as 1MiB, not "1 MB"`},
	"size, too small":          {"limits:\n  headers: 1KiB\n", `:2: limits.headers must be a size from 4KiB to 1MiB, such as 64KiB, not "1KiB"`},
	"size, overflowing":        {"limits:\n  body: 9223372036854775807GiB\n", `:2: limits.body must be a size from 64KiB to 8MiB, such as 1MiB, not "9223372036854775807GiB"`},
	"truth":                    {"egress:\n  strict: maybe\n", `:2: egress.strict must be true or false, such as false, not "maybe"`},
	"switch":                   {"oidc:\n  enabled: maybe\n", `:2: oidc.enabled must be auto, true or false, such as false, not "maybe"`},
	"switch, empty":            {"oidc:\n  enabled: \"\"\n", `:2: oidc.enabled must be auto, true or false, such as false, not ""`},
	"level":                    {"log:\n  level: loud\n", `:2: log.level must be debug, info, warn or error, such as info, not "loud"`},
	"level, empty":             {"log:\n  level: \"\"\n", `:2: log.level must be debug, info, warn or error, such as info, not ""`},
	"format":                   {"log:\n  format: xml\n", `:2: log.format must be text or json, such as text, not "xml"`},
	"algorithm":                {"keys:\n  algorithm: ROT13\n", `:2: keys.algorithm must be P-256, P-384, RSA-2048, RSA-3072, RSA-4096 or Ed25519, such as P-256, not "ROT13"`},
	"no directory":             {"data: \"\"\n", `:1: data must be the path of a directory, such as data, not ""`},
	"port only":                {"listen: 1280\n", `:1: listen must be a host and port, such as 127.0.0.1:1280, not "1280"`},
	"large port":               {"listen: 127.0.0.1:99999\n", `:1: listen must be a host and port, such as 127.0.0.1:1280, not "127.0.0.1:99999"`},
	"URL for address":          {"listen: https://x:1280\n", `:1: listen must be a host and port, such as 127.0.0.1:1280, not "https://x:1280"`},
	"advertise, no host":       {"advertise: :1280\n", `:1: advertise must be a host and port, such as controller.example.org:1280, not ":1280"`},
	"advertise, no port":       {"advertise: x:0\n", `:1: advertise must be a host and port, such as controller.example.org:1280, not "x:0"`},
	"value of many letters":    {"listen: " + strings.Repeat("é", 100) + "\n", `:1: listen must be a host and port, such as 127.0.0.1:1280, not "` + strings.Repeat("é", 30) + `…"`},
}

func TestFileMistakes(t *testing.T) {
	for name, test := range fileMistakes {
		t.Run(name, func(t *testing.T) {
			path := write(t, test.text)
			_, _, err := config.Load(config.Sources{File: path})
			if err == nil {
				t.Fatal("no error")
			}
			got, ok := strings.CutPrefix(err.Error(), "config file "+path)
			// What YAML's parser says is its own affair, but it is one line.
			if head, _, any := strings.Cut(test.want, "SYNTAX"); any {
				if !ok || !strings.HasPrefix(got, head) || len(got) == len(head) || strings.Contains(got, "\n") {
					t.Errorf("got %q, want %q and a reason", err, head)
				}
				return
			}
			if !ok || got != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

// TestAllMistakes checks that every mistake is told at once.
func TestAllMistakes(t *testing.T) {
	path := write(t, "data: [x]\nlistne: y\n")
	_, _, err := config.Load(config.Sources{
		File: path, Environ: []string{"NETKEEP_LOG_LEVEL=loud"}, Flags: map[string]string{"listen": "x"},
	})
	want := "config file " + path + ":1: data must be the path of a directory, such as data, not a list\n" +
		"config file " + path + `:2: unknown key "listne"; the nearest known is listen` + "\n" +
		`flag --listen: listen must be a host and port, such as 127.0.0.1:1280, not "x"` + "\n" +
		`environment variable NETKEEP_LOG_LEVEL: log.level must be debug, info, warn or error, such as info, not "loud"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestManyMistakes checks that a file with many does not fill the screen.
func TestManyMistakes(t *testing.T) {
	_, _, err := config.Load(config.Sources{File: write(t, strings.Repeat("x: 1\n", 1000))})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || !strings.HasSuffix(lines[10], ": has more mistakes") {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
}

func TestEnvironmentMistakes(t *testing.T) {
	for entry, want := range map[string]string{
		"NETKEEP_EGRESS_STRICT=2":          `environment variable NETKEEP_EGRESS_STRICT: egress.strict must be true or false, such as false, not "2"`,
		"NETKEEP_STORE_ENDPOINTS=a,,b":     `environment variable NETKEEP_STORE_ENDPOINTS: store.endpoints must be a list of addresses without user names, such as https://etcd-1.example.org:2379,https://etcd-2.example.org:2379, not "a,,b"`,
		"NETKEEP_CONFIG=/nonexistent/file": `config file: open /nonexistent/file: no such file or directory`,
	} {
		_, _, err := config.Load(config.Sources{Environ: []string{"PATH=/bin", entry}})
		if err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", entry, err, want)
		}
	}
}

// TestSwitch gives a switch in each way what is taken for true and false elsewhere, and auto.
func TestSwitch(t *testing.T) {
	for text, want := range map[string]config.Switch{
		"true": config.On, "false": config.Off, "auto": config.Auto, "1": config.On, "0": config.Off, "TRUE": config.On, "F": config.Off,
	} {
		for from, sources := range map[string]config.Sources{
			"a file":           {File: write(t, "oidc:\n  enabled: "+text+"\n")},
			"a text in a file": {File: write(t, "oidc:\n  enabled: \""+text+"\"\n")},
			"a variable":       {Environ: []string{"NETKEEP_OIDC_ENABLED=" + text}},
			"a flag":           {Flags: map[string]string{"oidc-enabled": text}},
		} {
			if c, _, err := config.Load(sources); err != nil || c.OIDC.Enabled != want {
				t.Errorf("%s in %s: %q, %v", text, from, c.OIDC.Enabled, err)
			}
		}
	}
}

// TestIgnoredVariables shows that a misspelt variable is told of, by its name
// alone, and keeps nobody from running.
func TestIgnoredVariables(t *testing.T) {
	for entry, meant := range map[string]string{
		"NETKEEP_LISTNE=x": "NETKEEP_LISTEN", "NETKEEP_LISTNE=": "NETKEEP_LISTEN", "NETKEEP_ADMIN_PASS=hush": "NETKEEP_ADMIN_PASSWORD",
		"NETKEEP_ADMIN_PASSWORDFILE=/hush": "NETKEEP_ADMIN_PASSWORD_FILE", "NETKEEP_CONIFG=x": "NETKEEP_CONFIG", "NETKEEP_=x": "NETKEEP_DATA",
		"NETKEEP_PORT=1280": "NETKEEP_JOIN",
	} {
		environ := []string{"PATH=/bin", "NETKEEP_LISTEN=127.0.0.1:1", entry}
		name, _, _ := strings.Cut(entry, "=")
		want := fmt.Sprintf("environment variable %q is no setting and is ignored; the nearest that is one is %s", name, meant)
		if got := config.Ignored(environ); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q", entry, got)
		}
		if c, _, err := config.Load(config.Sources{Environ: environ}); err != nil || c.Listen != "127.0.0.1:1" {
			t.Errorf("%s: %v", entry, err)
		}
	}
}

// TestPasswordInAddress gives a password where it does not belong: it is refused
// and not repeated, however it was written.
func TestPasswordInAddress(t *testing.T) {
	const want = "store.endpoints must be a list of addresses without user names, such as https://etcd-1.example.org:2379,https://etcd-2.example.org:2379"
	for _, at := range []string{"https://root:hush@a:1", "root:hush@a:1", "http://a:1,http://root:hu,sh@b:1", "https://root:hush/x@a:1"} {
		for _, src := range []config.Sources{
			{File: write(t, "store:\n  endpoints: \""+at+"\"\n")},
			{File: write(t, "store:\n  endpoints: [\""+at+"\"]\n")},
			{Environ: []string{"NETKEEP_STORE_ENDPOINTS=" + at}},
			{Flags: map[string]string{"store-endpoints": at}},
		} {
			_, _, err := config.Load(src)
			if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "hu") {
				t.Errorf("%+v: %v", src, err)
			}
		}
	}
}

// TestForeignVariables checks that variables which only look like ours do not
// matter: other programs', and those that tell where a service called netkeep
// is.
func TestForeignVariables(t *testing.T) {
	c, from, err := config.Load(config.Sources{Environ: []string{
		"HOME=/root", "NETKEEPER=x", "netkeep_listen=x", "NETKEEP", "NETKEEP_LISTEN=",
		"NETKEEP_SERVICE_HOST=10.0.0.1", "NETKEEP_SERVICE_PORT=1280", "NETKEEP_SERVICE_PORT_HTTPS=1280",
		"NETKEEP_PORT=tcp://10.0.0.1:1280", "NETKEEP_PORT_1280_TCP=tcp://10.0.0.1:1280", "NETKEEP_PORT_1280_TCP_ADDR=10.0.0.1",
		"NETKEEP_ADMIN_SERVICE_HOST=10.0.0.2", "NETKEEP_ADMIN_PORT=tcp://10.0.0.2:1290",
	}})
	if err != nil {
		t.Error(err)
	}
	if want := config.Default(); c.Listen != want.Listen || len(from) != 0 {
		t.Errorf("the settings are %+v, from %v", c, from)
	}
}

// TestWithoutValue checks that a key without a value is as good as none.
func TestWithoutValue(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "--- \n...\n", "null\n", "data:\nlog:\n", "log:\n  level: ~\n", "log: {}\n"} {
		c, from, err := config.Load(config.Sources{File: write(t, text)})
		if err != nil || c.Data != "data" || c.Log.Level != "info" || len(from) != 0 {
			t.Errorf("%q: %v, %+v from %v", text, err, c, from)
		}
	}
}

func TestFileSize(t *testing.T) {
	const most = 64 << 10
	fill := func(n int) string { return strings.Repeat("#", n-1) + "\n" }
	if _, _, err := config.Load(config.Sources{File: write(t, fill(most))}); err != nil {
		t.Error(err)
	}
	path := write(t, fill(most+1))
	_, _, err := config.Load(config.Sources{File: path})
	if want := "config file " + path + ": is larger than 64KiB"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, _, err := config.Load(config.Sources{File: t.TempDir()}); err == nil || !strings.HasPrefix(err.Error(), "config file: ") {
		t.Errorf("a directory: %v", err)
	}
}

// TestBombs refuses files that would fill the memory.
func TestBombs(t *testing.T) {
	documenttest.Refused(t, func(text string) error {
		_, _, err := config.Load(config.Sources{File: write(t, text)})
		return err
	})
}

// TestCheck makes mistakes that are none of a single setting, or that stand in
// a Config that was not loaded.
func TestCheck(t *testing.T) {
	empty := write(t, "\r\n")
	large := write(t, strings.Repeat("x", 5000))
	for want, change := range map[string]func(*config.Config){
		"tls.cert and tls.key must be given together":                                                    func(c *config.Config) { c.TLS.Cert = "x" },
		"management.advertise needs management.listen, such as 127.0.0.1:1290":                           func(c *config.Config) { c.Management.Advertise = "x:1" },
		"routers.reserveAdvertise needs routers.reserve, such as 10.0.0.1:1283":                          func(c *config.Config) { c.Routers.ReserveAdvertise = "x:1" },
		"routers.reserve is for one of several controllers, and needs cluster.listen or store.endpoints": func(c *config.Config) { c.Routers.Reserve = "127.0.0.1:1" },
		"timeouts.request must be shorter than timeouts.write, which is 30s, not 30s":                    func(c *config.Config) { c.Timeouts.Request = 30 * time.Second },
		"timeouts.header must be at most timeouts.read, which is 20s, not 1m":                            func(c *config.Config) { c.Timeouts.Header = time.Minute },
		"timeouts.body must be at most timeouts.read, which is 20s, not 21s":                             func(c *config.Config) { c.Timeouts.Body = 21 * time.Second },
		"snapshots.every must be 0s or at least 1m, not 59s":                                             func(c *config.Config) { c.Snapshots.Every = 59 * time.Second },
		`session.timeout must be a duration of at least 1m, such as 30m, not "1s"`:                       func(c *config.Config) { c.Session.Timeout = time.Second },
		`data must be the path of a directory, such as data, not ""`:                                     func(c *config.Config) { c.Data = "" },
		`listen must be a host and port, such as 127.0.0.1:1280, not "x"`:                                func(c *config.Config) { c.Listen = "x" },
		`limits.body must be a size from 64KiB to 8MiB, such as 1MiB, not "0"`:                           func(c *config.Config) { c.Limits.Body = 0 },
		"admin.passwordFile: open /nonexistent/file: no such file or directory":                          func(c *config.Config) { c.Admin.PasswordFile = "/nonexistent/file" },
		"admin.passwordFile: " + empty + " is empty":                                                     func(c *config.Config) { c.Admin.PasswordFile = empty },
		"admin.passwordFile: " + large + " is too large to hold a password":                              func(c *config.Config) { c.Admin.PasswordFile = large },
		"store.ca needs store.endpoints":                                                                 func(c *config.Config) { c.Store.CA = "x" },
		"store.cert and store.key must be given together": func(c *config.Config) {
			c.Store.Endpoints, c.Store.Cert = []string{"https://a:1"}, "x"
		},
		"store.endpoints must all begin with https:// where one does, or where there is a store.ca or store.cert": func(c *config.Config) {
			c.Store.Endpoints = []string{"https://a:1", "b:1"}
		},
		"store.username and its password, in store.passwordFile or store.password, must be given together": func(c *config.Config) {
			c.Store.Endpoints, c.Store.Username = []string{"a:1"}, "x"
		},
		"store.passwordFile: " + empty + " is empty": func(c *config.Config) {
			c.Store.Endpoints, c.Store.Username, c.Store.PasswordFile = []string{"a:1"}, "x", empty
		},
	} {
		c := config.Default()
		change(&c)
		if err := c.Check(); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestPasswordFile(t *testing.T) {
	path := write(t, " from a file \r\n")
	c := config.Default()
	c.Admin.PasswordFile = path
	if err := c.Check(); err != nil || c.Admin.Password != " from a file " {
		t.Errorf("got %q, %v", c.Admin.Password, err)
	}
	c.Admin.Password, c.Admin.PasswordFile = "given", "/nonexistent/file"
	if err := c.Check(); err != nil || c.Admin.Password != "given" {
		t.Errorf("got %q, %v", c.Admin.Password, err)
	}
}

// rewrite puts another text into a file.
func rewrite(t interface{ Fatal(...any) }, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
