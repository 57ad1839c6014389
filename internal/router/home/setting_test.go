package home

import (
	"os"
	"path/filepath"
	"testing"

	"netkeep.internal/internal/lang/document/documenttest"
)

// TestBombs refuses settings that would fill the memory.
func TestBombs(t *testing.T) {
	dir := t.TempDir()
	documenttest.Refused(t, func(text string) error {
		if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSettings(dir)
		return err
	})
}
