package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadme types what the README's transcript types, and compares what is
// shown. Of the demo the README shows the first line.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	transcript := regexp.MustCompile("(?s)```\n(\\$ netkeep .*?)```").FindSubmatch(page)
	if transcript == nil {
		t.Fatal("the README has no transcript")
	}
	dir := t.TempDir()
	c, err := start(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.stop()
	for step := range strings.SplitSeq(strings.TrimPrefix(string(transcript[1]), "$ "), "\n$ ") {
		line, want, _ := strings.Cut(strings.TrimRight(step, "\n")+"\n", "\n")
		shell := exec.CommandContext(t.Context(), "bash", "-c", line)
		shell.Dir = dir
		shell.Env = []string{"HOME=" + dir, "PATH=" + bin + ":" + os.Getenv("PATH"), "NETKEEP_PASSWORD=" + password}
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		got := strings.ReplaceAll(string(out), c.address, "127.0.0.1:1280")
		if strings.HasPrefix(line, "netkeep demo") {
			got, _, _ = strings.Cut(got, "\n")
			got += "\n"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-README +shown):\n%s", line, diff)
		}
	}
}
