package program_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs pastes pages into a shell, as a reader would.
func TestDocs(t *testing.T) {
	for page, answers := range map[string][]string{
		"getting-started": {
			`"link":"service-policy","passed":true,"what":"alice may dial wiki by policy`, `"link":"session","passed":false,"what":"alice has no API session"`,
			`"link":"router","passed":false,"what":"none of the edge routers that both may use is online"`,
			`"name":"wiki"`, `"permissions":["Dial"]`, `"type":"Dial"`, `"name":"phone"`,
		},
		"changes": {
			`{"applied":false,`, `"counts":{"created":3,"changed":0,"unchanged":0,"deleted":0}`,
			`"identity":"alice","serviceId":"","service":"wiki","type":"Dial","change":"gained"`, `{"applied":true,`,
		},
	} {
		t.Run(page, func(t *testing.T) { paste(t, page, answers) })
	}
}

// paste follows a page, and looks for what the controller is to answer.
func paste(t *testing.T, name string, wanted []string) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("the page has %d blocks to paste", len(blocks))
	}
	data := t.TempDir()
	p := controller(t, data)
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "curl"), "netkeep/test/paste").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Symlink("curl", filepath.Join(bin, "openssl")); err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString("set -eu\nTOKEN=\n")
	for _, b := range blocks {
		script.Write(b[1])
		script.WriteString("echo\n")
	}
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Stdin, shell.Dir = &script, t.TempDir()
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"),
		"CONTROLLER="+p.ready(), "CA="+filepath.Join(data, "pki", "root.crt"), "PASSWORD="+password)
	var refused bytes.Buffer
	shell.Stderr = &refused
	out, err := shell.Output()
	if err != nil || refused.Len() > 0 {
		t.Fatalf("the page does not work: %v\n%s\n%s", err, &refused, out)
	}
	answers := string(out)
	for _, want := range wanted {
		if !strings.Contains(answers, want) {
			t.Errorf("following the page nothing says %s:\n%s", want, answers)
		}
	}
	p.stop()
}
