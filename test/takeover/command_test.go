package takeover_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/cli"
	"netkeep.internal/test/servertest"
	"netkeep.internal/test/zititest"
)

// netkeep runs the program.
func netkeep(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Main(t.Context(), cli.Env{
		Program: "netkeep", Args: args, Environ: []string{"HOME=" + t.TempDir()}, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Now: time.Now,
	})
	return code, stdout.String(), stderr.String()
}

// files are the names and contents of all files below a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPlan says what would be done, does not do it, and says so as JSON too.
func TestPlan(t *testing.T) {
	dir, parent := zititest.Unpack(t, "1.6.0"), t.TempDir()
	before := files(t, dir)
	args := []string{"takeover", "--config", filepath.Join(dir, "ctrl.yml"), "--data", filepath.Join(parent, "new"), "--plan"}
	code, out, errs := netkeep(t, args...)
	if code != 0 || errs != "" || !strings.Contains(out, "identities") || !strings.Contains(out, "fabric alone") || !strings.Contains(out, "warning: The old database holds secrets") {
		t.Errorf("it ended with %d and said %s %s", code, out, errs)
	}
	var report struct {
		Kinds []struct {
			Kind        string
			Taken, Left int
		}
		Notes []struct{ Code string }
	}
	code, out, _ = netkeep(t, append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &report); code != 0 || err != nil {
		t.Fatalf("it ended with %d and said %s: %v", code, out, err)
	}
	for _, k := range report.Kinds {
		if k.Kind == "identities" && k.Taken != len(zititest.Lists(t, "1.6.0")["identities"]) {
			t.Errorf("%d identities would be taken", k.Taken)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("a plan leaves %v", left)
	}
	if after := files(t, dir); len(after) != len(before) {
		t.Error("a plan writes to what it reads")
	}
}

// TestCommand takes a network over, has the new settings read, and leaves what was there as
// it was.
func TestCommand(t *testing.T) {
	dir, data := zititest.Unpack(t, "1.6.0"), filepath.Join(t.TempDir(), "deep", "new")
	before := files(t, dir)
	args := []string{"takeover", "--config", filepath.Join(dir, "ctrl.yml"), "--data", data}
	code, out, errs := netkeep(t, args...)
	if code != 0 || !strings.Contains(out, "netkeep run --config "+filepath.Join(data, "netkeep.yaml")) {
		t.Fatalf("it ended with %d and said %s %s", code, out, errs)
	}
	code, out, errs = netkeep(t, "config", "print", "--config", filepath.Join(data, "netkeep.yaml"))
	for _, want := range []string{"listen: 127.0.0.1:21280", "advertise: localhost:21280", "listen: 127.0.0.1:21262", "advertise: localhost:21262", "identity: 8760h # default"} {
		if !strings.Contains(out, want) {
			t.Errorf("%d: the settings do not say %s: %s %s", code, want, out, errs)
		}
	}
	if id, err := os.ReadFile(filepath.Join(data, "controller")); err != nil || string(id) != "ctrl-client\n" {
		t.Errorf("the controller is called %q %v", id, err)
	}
	// A store without the directory that it was in still knows what its controller is called.
	if err := os.Remove(filepath.Join(data, "controller")); err != nil {
		t.Fatal(err)
	}
	servertest.Start(t, func(c *config.Config) { c.Data = data })
	if id, err := os.ReadFile(filepath.Join(data, "controller")); err != nil || string(id) != "ctrl-client\n" {
		t.Errorf("the controller is called %q %v", id, err)
	}
	for name, text := range files(t, dir) {
		if before[name] != text {
			t.Errorf("%s was changed", name)
		}
	}
	if code, _, errs := netkeep(t, args...); code == 0 || !strings.Contains(errs, "is not empty") {
		t.Errorf("it is taken over again: %d %s", code, errs)
	}
}

// TestBadInput refuses what cannot be taken over in one line, and leaves nothing.
func TestBadInput(t *testing.T) {
	change := func(name string, edit func(string) string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			file := filepath.Join(dir, name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(edit(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	version := func(n byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			zititest.Change(t, zititest.Database(dir), zititest.Put{Path: []string{"versions"}, Key: "edge", Value: []byte{3, n, 0, 0, 0, 0, 0, 0, 0}})
		}
	}
	const key, db = "pki/intermediate-ca/keys/intermediate-ca.key", "db/ctrl.db"
	for name, c := range map[string]struct {
		spoil func(*testing.T, string)
		want  string
	}{
		"an older version": {version(37), "start OpenZiti 1.6 on a copy"},
		"a newer version":  {version(45), "newer than this program knows"},
		"cut":              {change(db, func(s string) string { return s[:len(s)/2] }), "damaged"},
		"no file":          {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, db)) }, "there is no database"},
		"no configuration": {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "ctrl.yml")) }, "no such file"},
		"damaged":          {change(db, func(s string) string { return s[:9000] + strings.Repeat("x", len(s)-9000) }), "damaged"},
		"no database":      {change(db, func(s string) string { return "" }), "is no database"},
		"another key":      {change(key, func(string) string { return string(otherKey(t)) }), "is not the key of the certificate"},
		"no such file":     {change("ctrl.yml", func(s string) string { return strings.ReplaceAll(s, "server.chain.pem", "away.pem") }), "away.pem"},
		"no settings":      {change("ctrl.yml", func(s string) string { return "{" }), "no settings"},
		"no certificates":  {change("pki/root-ca/certs/root-ca.cert", func(string) string { return "" }), "no certificate"},
		"still running": {func(t *testing.T, dir string) {
			store, err := bbolt.Open(filepath.Join(dir, db), 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
		}, "a controller has it open"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, parent := zititest.Unpack(t, "1.6.20"), t.TempDir()
			c.spoil(t, dir)
			code, out, errs := netkeep(t, "takeover", "--config", filepath.Join(dir, "ctrl.yml"), "--data", filepath.Join(parent, "new"))
			if code == 0 || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("it ended with %d and said %q %q", code, out, errs)
			}
			if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v %v", left, err)
			}
		})
	}
}

// TestOdd takes over a network in which not all is as it should be. What our rules refuse
// ends it, unless it is left out.
func TestOdd(t *testing.T) {
	dir, parent := zititest.Unpack(t, "1.6.20"), t.TempDir()
	zititest.Change(t, zititest.Database(dir),
		zititest.Put{Path: []string{"authenticators", "orphan"}, Key: "identity", Value: zititest.Text("nobody")},
		zititest.Put{Path: []string{"identities", "odd"}, Key: "name", Value: zititest.Text("odd \x1b[31mred")},
		zititest.Put{Path: []string{"identities", "odd", "permissions"}, Key: string(zititest.Text("service.read")), Value: []byte{}},
		zititest.Put{Path: []string{"identities", "odd", "permissions"}, Key: string(zititest.Text("moon.walk")), Value: []byte{}},
		zititest.Put{Path: []string{"identities", "odd", "serviceHostingCosts"}, Key: "no-service", Value: []byte{2, 1, 0, 0, 0}},
		zititest.Put{Path: []string{"identities", "odd", "news"}, Key: "a", Value: zititest.Text("b")},
		zititest.Put{Path: []string{"servicePolicies", "odd"}, Key: "name", Value: zititest.Text("odd")},
		zititest.Put{Path: []string{"servicePolicies", "odd"}, Key: "semantic", Value: zititest.Text("AnyOf")},
		zititest.Put{Path: []string{"servicePolicies", "odd"}, Key: "type", Value: []byte{2, 1, 0, 0, 0}},
		zititest.Put{Path: []string{"servicePolicies", "odd", "identityRoles"}, Key: string(zititest.Text("@gone")), Value: []byte{}},
		zititest.Put{Path: []string{"configs", "refused"}, Key: "name", Value: zititest.Text("refused")},
		zititest.Put{Path: []string{"configs", "refused"}, Key: "type", Value: zititest.Text("NH5p4FpGR")},
		zititest.Put{Path: []string{"configs", "refused", "data"}, Key: "port", Value: zititest.Text("no number")},
	)
	for _, ca := range zititest.Lists(t, "1.6.20")["cas"] {
		if ca["externalIdClaim"] == nil { // its command line writes one of empty texts when it changes anything else
			for _, name := range []string{"location", "matcher", "matcherCriteria", "parser"} {
				zititest.Change(t, zititest.Database(dir), zititest.Put{Path: []string{"cas", ca["id"].(string), "externalIdClaim"}, Key: "externalIdClaim." + name, Value: zititest.Text("")})
			}
		}
	}
	args := []string{"takeover", "--config", filepath.Join(dir, "ctrl.yml"), "--data", filepath.Join(parent, "new")}
	code, out, errs := netkeep(t, args...)
	if code == 0 || !strings.Contains(errs, "1 of the records cannot be taken, the first is configs/refused") || strings.Contains(out, "\x1b") {
		t.Errorf("it ended with %d and said %q %q", code, out, errs)
	}
	for _, want := range []string{"identity that is not there", "service.read", "moon.walk", "no-service", "identities.news", "@gone"} {
		if !strings.Contains(out, want) {
			t.Errorf("nothing is said of %s: %s", want, out)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v %v", left, err)
	}
	if code, _, errs := netkeep(t, append(args, "--leave-out")...); code != 0 {
		t.Errorf("without what is refused it ended with %d and said %s", code, errs)
	}
}

// TestCluster takes a network of several controllers over from the file of one, and names the
// others: who knows only them has to be led here.
func TestCluster(t *testing.T) {
	dir, parent := zititest.Unpack(t, "2.0.3"), t.TempDir()
	args := []string{"takeover", "--config", filepath.Join(dir, "ctrl.yml"), "--data", filepath.Join(parent, "new")}
	if code, out, errs := netkeep(t, append(args, "--plan")...); code != 0 || !strings.Contains(out, "note: The database was kept by several controllers, or could be: see that this is the file of the leader.") {
		t.Errorf("of one that could be several it ended with %d and said %s %s", code, out, errs)
	}
	for _, name := range []string{"ctrl2", "ctrl3"} {
		zititest.Change(t, zititest.Database(dir),
			zititest.Put{Path: []string{"controllers", name}, Key: "name", Value: zititest.Text(name)},
			zititest.Put{Path: []string{"controllers", name}, Key: "ctrlAddress", Value: zititest.Text("tls:" + name + ".example.org:6262")},
		)
	}
	code, out, errs := netkeep(t, args...)
	if code != 0 {
		t.Fatalf("it ended with %d and said %s %s", code, out, errs)
	}
	for _, want := range []string{"warning: The network has several controllers, and this one alone is taken over", "ctrl2 tls:ctrl2.example.org:6262", "ctrl3 tls:ctrl3.example.org:6262"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q: %s", want, out)
		}
	}
	if strings.Contains(out, "ctrl1 tls:") {
		t.Errorf("it warns of the one that is taken over: %s", out)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// otherKey is a key that belongs to nothing.
func otherKey(t *testing.T) []byte {
	t.Helper()
	dir := zititest.Unpack(t, "2.0.3")
	text, err := os.ReadFile(filepath.Join(dir, "pki/intermediate-ca/keys/intermediate-ca.key"))
	if err != nil || !slices.Contains(strings.Fields(string(text)), "KEY-----") {
		t.Fatal(err)
	}
	return text
}
