package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/audit"
)

// TestDocumented checks that people are told of every event, in the words that it was
// declared with.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "audit.md"))
	must(t, err)
	for _, e := range audit.Events() {
		if line := "| `" + e.Name + "` | " + e.Doc + " |\n"; !strings.Contains(string(text), line) {
			t.Errorf("docs/audit.md lacks the line %s", line)
		}
	}
}
