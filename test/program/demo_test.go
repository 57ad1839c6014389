package program_test

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTrafficDemo runs the demo that carries something: the page comes through
// the network, and nothing is left of it all when it ends.
func TestTrafficDemo(t *testing.T) {
	dir := t.TempDir()
	p := launch(t, settings{args: []string{"demo", "--traffic", "--port", "1"}, env: []string{"TMPDIR=" + dir, "HOME=" + dir}})
	address := p.said(regexp.MustCompile(`Open (http://\S+) in a browser`))
	answer, err := (&http.Client{Timeout: waitTime}).Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), "Hello from the other side") {
		t.Fatalf("the page is %q: %v", body, err)
	}
	for _, line := range []string{"$ netkeep run", "$ netkeep enroll", "$ netkeep tunnel host", "laptop can use hello", "200 OK: Hello"} {
		if !strings.Contains(p.stdout.String(), line) {
			t.Errorf("the demo does not show %q", line)
		}
	}
	t.Logf("the page was there after %v", time.Since(p.started))
	p.stop()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("of the demo is left: %v, %v", left, err)
	}
}
