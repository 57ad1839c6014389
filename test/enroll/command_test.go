package enroll_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/run/cli"
	"netkeep.internal/internal/tool/layout"
	"netkeep.internal/test/servertest"
)

// netkeep runs the program, and returns its exit code and all that it said.
func netkeep(t *testing.T, stdin string, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	code = cli.Main(t.Context(), cli.Env{
		Program: "netkeep", Args: args, Environ: []string{"HOME=" + t.TempDir()},
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out, Now: time.Now,
	})
	return code, out.String()
}

// wantSaid runs the program and expects an exit code and some words.
func wantSaid(t *testing.T, want int, words, stdin string, args ...string) {
	t.Helper()
	if code, said := netkeep(t, stdin, args...); code != want || !strings.Contains(said, words) {
		t.Errorf("netkeep %q ended with %d and said %q; want %d and %q", args, code, said, want, words)
	}
}

// readIdentity reads an identity's file.
func readIdentity(t *testing.T, path string) *remote.Identity {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	who := new(remote.Identity)
	if err := json.Unmarshal(data, who); err != nil {
		t.Fatal(err)
	}
	return who
}

func TestEnrollCommand(t *testing.T) {
	c := shared.Admin(t)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	// The token may be a file, standard input or the text itself.
	for name, run := range map[string]func(text, out string) (stdin string, args []string){
		"file": func(text, out string) (string, []string) {
			return "", []string{"enroll", write("a.jwt", text+"\n"), "-o", out}
		},
		"stdin": func(text, out string) (string, []string) {
			return text + "\n", []string{"enroll", "-", "--output", out}
		},
		"text": func(text, out string) (string, []string) {
			return "", []string{"enroll", text, "-o", out, "--key-alg", "rsa"}
		},
	} {
		id, text := invitation(t, c, M{"ott": true})
		stdin, args := run(text, at(name+".json"))
		wantSaid(t, 0, name+".json", stdin, args...)
		if got := signIn(t, readIdentity(t, at(name+".json"))); got != id {
			t.Errorf("%s: the file is of %s, want %s", name, got, id)
		}
		if info, err := os.Stat(at(name + ".json")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	_, text := invitation(t, c, M{"ott": true})
	wantSaid(t, 1, "-o FILE", "", "enroll", text)
	wantSaid(t, 1, "neither a file nor", "", "enroll", "nothing", "-o", at("n.json"))
	wantSaid(t, 1, "--force", "", "enroll", text, "-o", at("file.json"))
	wantSaid(t, 1, "no such file", "", "enroll", text, "-o", at("n/n.json"))
	wantSaid(t, 1, "leave --cert out", "", "enroll", text, "-o", at("n.json"), "--cert", "x", "--key", "y")
	wantSaid(t, 1, "no kind of key", "", "enroll", text, "-o", at("n.json"), "--key-alg", "dsa")
	wantSaid(t, 1, "use netkeep enroll", "", "router", "enroll", text, "--dir", dir)
	wantSaid(t, 2, "give an enrollment token, or sign in with --sso", "", "enroll")
	// None of that has spent the token.
	wantSaid(t, 0, "file.json", "", "enroll", text, "-o", at("file.json"), "--force")
	wantSaid(t, 5, "was used already", "", "enroll", text, "-o", at("n.json"))
	if _, err := os.Stat(at("n.json")); err == nil {
		t.Error("a file was written for nobody")
	}
}

func TestEnrollCommandWithPassword(t *testing.T) {
	name := servertest.Unique("user")
	_, text := invitation(t, shared.Admin(t), M{"updb": name})
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("long enough\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, 7, "--password-file", "", "enroll", text)
	wantSaid(t, 5, "password", "abc\n", "enroll", text, "--password-file", "-")
	wantSaid(t, 0, "netkeep login "+shared.URL, "", "enroll", text, "--password-file", file)
	shared.Login(t, name, "long enough")
}

func TestEnrollCommandWithCertificate(t *testing.T) {
	c := shared.Admin(t)
	ca := newAuthority(t)
	id, text := invitation(t, c, M{"ottca": ca.register(c, true, nil)})
	certFile, keyFile := keep(t, ca.client(x509.Certificate{}))
	certFile, keyFile = strings.TrimPrefix(certFile, "file://"), strings.TrimPrefix(keyFile, "file://")
	out := filepath.Join(t.TempDir(), "who.json")
	wantSaid(t, 1, "--cert FILE", "", "enroll", text, "-o", out)
	wantSaid(t, 1, "cannot be used", "", "enroll", text, "-o", out, "--cert", keyFile, "--key", certFile)
	wantSaid(t, 0, "who.json", "", "enroll", text, "-o", out, "--cert", certFile, "--key", keyFile)
	if got := signIn(t, readIdentity(t, out)); got != id {
		t.Errorf("the file is of %s, want %s", got, id)
	}
}

func TestRouterEnrollCommand(t *testing.T) {
	c := shared.Admin(t)
	add := func() (id, text string) {
		id = c.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(201).ID()
		return id, c.Get("edge-routers/" + id).At("data.enrollmentJwt").(string)
	}
	id, text := add()
	dir := t.TempDir()
	wantSaid(t, 0, "identity: {cert: ", "", "router", "enroll", text, "--dir", dir, "--host", "edge.example.org,192.0.2.9")
	files := layout.In(dir)
	files.Endpoints = filepath.Join(dir, "endpoints.yml")
	if err := os.WriteFile(files.Endpoints, []byte("tls:"+shared.Address()), 0o600); err != nil {
		t.Fatal(err) // without a config there is no such file
	}
	checkRouterFiles(t, files, id)
	_, text = add()
	wantSaid(t, 1, "use netkeep router enroll", "", "enroll", text, "-o", filepath.Join(dir, "n.json"))
	wantSaid(t, 1, "--force", "", "router", "enroll", text, "--dir", dir)

	id, text = add()
	dir = t.TempDir()
	config := filepath.Join(dir, "r.yml")
	yml := "identity: {cert: " + dir + "/c, server_cert: " + dir + "/s, key: " + dir + "/k, ca: " + dir + "/a}\n" +
		"edge: {csr: {sans: {dns: [edge.example.org], ip: [192.0.2.9]}}}\n"
	if err := os.WriteFile(config, []byte(yml), 0o600); err != nil {
		t.Fatal(err)
	}
	wantSaid(t, 0, "Enrolled", "", "router", "enroll", text, "--config", config)
	files, err := layout.Read(config)
	if err != nil {
		t.Fatal(err)
	}
	checkRouterFiles(t, files, id)
	// The files are for routers of others, which need tokens.
	if record, ok := model.EdgeRouters.Get(shared.State().Snapshot(), id); !ok || record.TakesDigests {
		t.Errorf("it was enrolled as one that takes digests: %+v", record)
	}
	wantSaid(t, 5, "re-enrolling", "", "router", "enroll", text, "--config", config, "--force")
	wantSaid(t, 1, "no such file", "", "router", "enroll", text, "--config", config+"x")
}
