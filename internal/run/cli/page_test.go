package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPage holds the page about the command line to the commands: each is
// named, and none that there is not.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "command-line.md"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, m := range regexp.MustCompile(`netkeep ([a-z-]+(?:\|[a-z-]+)*)`).FindAllStringSubmatch(string(page), -1) {
		for _, name := range regexp.MustCompile(`[a-z-]+`).FindAllString(m[1], -1) {
			said[name] = true
		}
	}
	known := map[string]bool{"help": true, "completion": true}
	for _, c := range Root(Env{}).Commands() {
		known[c.Name()] = true
		if !said[c.Name()] && c.Name() != "version" {
			t.Errorf("the page does not name netkeep %s", c.Name())
		}
	}
	for name := range said {
		if !known[name] {
			t.Errorf("the page names netkeep %s, which is no command", name)
		}
	}
}

// TestErrorsArePlain has somebody else's words in an error: they cannot move
// the cursor.
func TestErrorsArePlain(t *testing.T) {
	var out bytes.Buffer
	env := Env{Args: []string{"login", "https://\u009b31m.example:1"}, Environ: []string{"HOME=" + t.TempDir()}, Stdout: &out, Stderr: &out, Stdin: &out, Now: time.Now}
	if code := Main(t.Context(), env); code == 0 || out.Len() == 0 {
		t.Fatalf("exit code %d, %q", code, out.String())
	}
	if strings.ContainsAny(out.String(), "\u009b\x1b") {
		t.Errorf("it says %q", out.String())
	}
}
