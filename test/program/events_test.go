package program_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEventsPage pastes docs/events.md, each of its commands into a shell of its own,
// while two people change things and one mistypes a password: every command tells what
// the page says that it does, and nothing else.
func TestEventsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, b := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1) {
		commands = append(commands, strings.Split(strings.TrimSpace(string(b[1])), "\n")...)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := controller(t, data)
	admin := p.client(data)
	person := func(name string) {
		t.Helper()
		id := admin.must(t, http.StatusCreated, http.MethodPost, "identities", M{"name": name, "type": "User", "isAdmin": true}).id()
		admin.must(t, http.StatusCreated, http.MethodPost, "authenticators", M{"method": "updb", "identityId": id, "username": name + "-user", "password": password})
	}
	person("ann")
	other := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	if err := other.login("ann-user", password); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(bin, "netkeep")); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "PATH="+bin+":"+os.Getenv("PATH"), "NETKEEP_PASSWORD="+password)
	login := exec.Command(binary, "login", "--data", data, "--username", "admin")
	login.Env = env
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	// What each command tells at some time, and what it never does.
	tells := []struct {
		command string
		is      *regexp.Regexp
		never   string
	}{
		{"netkeep events", regexp.MustCompile(`created service admins\d+ by Default Admin .*from 127\.0\.0\.1`), "login-refused"},
		{`netkeep events --kinds services,service-policies --filter 'authorName = "ann"'`, regexp.MustCompile(`created service anns\d+ by ann .*from 127\.0\.0\.1`), "admins"},
		{`netkeep events --kinds audit-entries --filter 'verb = "login-refused"'`, regexp.MustCompile(`login-refused identity typist\d+ by .*from 127\.0\.0\.1`), "created"},
		{"netkeep events --json", regexp.MustCompile(`"name":"anns\d+","verb":"created"`), "login-refused"},
	}
	if len(commands) != len(tells) {
		t.Fatalf("the page has the commands %q", commands)
	}
	said := make([]*output, len(commands))
	for i, command := range commands {
		if command != tells[i].command {
			t.Fatalf("the page says %s, where %s is looked at", command, tells[i].command)
		}
		said[i] = &output{}
		shell := exec.Command("bash", "-c", "exec "+command)
		shell.Env, shell.Stdout, shell.Stderr = env, said[i], said[i]
		if err := shell.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = shell.Wait() }()
		t.Cleanup(func() { _ = shell.Process.Kill(); <-ended })
	}
	n := 0
	awaitTrue(t, "every command tells of what it should", func() bool {
		n++
		admin.must(t, http.StatusCreated, http.MethodPost, "services", M{"name": fmt.Sprint("admins", n), "encryptionRequired": true})
		other.must(t, http.StatusCreated, http.MethodPost, "services", M{"name": fmt.Sprint("anns", n), "encryptionRequired": true})
		if n&(n-1) == 0 { // seldom: what is alike has one entry, and of one address there are few
			name := fmt.Sprint("typist", n)
			person(name)
			if connect(t, p.ready(), filepath.Join(data, "pki", "root.crt")).login(name+"-user", "mistyped") == nil {
				t.Error("a wrong password is good")
			}
		}
		for i, want := range tells {
			if !want.is.MatchString(said[i].String()) {
				return false
			}
		}
		return true
	})
	for i, want := range tells {
		if text := said[i].String(); strings.Contains(text, want.never) {
			t.Errorf("%s tells %s", want.command, text)
		}
	}
	for line := range strings.Lines(said[3].String()) {
		if strings.HasSuffix(line, "\n") && !json.Valid([]byte(line)) {
			t.Errorf("a line is no JSON: %s", line)
		}
	}
	p.stop()
}
