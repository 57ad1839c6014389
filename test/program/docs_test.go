package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs pastes pages into a shell, as a reader would who has logged in.
func TestDocs(t *testing.T) {
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "curl"), "netkeep/test/paste").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, target := range map[string]string{"openssl": "curl", "netkeep": binary} {
		if err := os.Symlink(target, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for page, answers := range map[string][]string{
		"getting-started": {
			"alice cannot use wiki", "alice may dial wiki by policy", "FAIL  session", "FAIL  router", "loses  phone     wiki", "Enrolled",
			"~ service wiki", "Nothing would change",
		},
		"by-hand": {
			`"link":"service-policy","passed":true,"what":"alice may dial wiki by policy`, `"link":"session","passed":false,"what":"alice has no API session"`,
			`"link":"router","passed":false,"what":"none of the edge routers that both may use is online"`,
			`"name":"wiki"`, `"permissions":["Dial"]`, `"type":"Dial"`, `"name":"phone"`,
		},
		"changes": {
			`{"applied":false,`, `"counts":{"created":3,"changed":0,"unchanged":0,"deleted":0}`,
			`"identity":"alice","serviceId":"","service":"wiki","type":"Dial","change":"gained"`, `{"applied":true,`,
		},
	} {
		t.Run(page, func(t *testing.T) { paste(t, bin, page, answers) })
	}
}

// refusal is how the stand-in for curl says that something was refused.
var refusal = regexp.MustCompile(`(?m)^[A-Z]+ https://\S+: 4.*$`)

// paste follows a page, and looks for what is to be said.
func paste(t *testing.T, bin, name string, wanted []string) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("the page has %d blocks to paste", len(blocks))
	}
	dir := t.TempDir()
	p := controller(t, filepath.Join(dir, "data"))
	script := "set -eu\nTOKEN=\nnetkeep login --data data --username admin\n"
	for _, b := range blocks {
		script += string(b[1]) + "echo\n"
	}
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Stdin, shell.Dir = strings.NewReader(script), dir
	shell.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME=", "PATH="+bin+":"+os.Getenv("PATH"), "NETKEEP_PASSWORD="+password,
		"CONTROLLER="+p.ready(), "CA="+filepath.Join("data", "pki", "root.crt"), "PASSWORD="+password)
	out, err := shell.CombinedOutput()
	if err != nil || refusal.Match(out) {
		t.Fatalf("the page does not work: %v\n%s", err, out)
	}
	for _, want := range wanted {
		if !strings.Contains(string(out), want) {
			t.Errorf("following the page nothing says %s:\n%s", want, out)
		}
	}
	p.stop()
}
