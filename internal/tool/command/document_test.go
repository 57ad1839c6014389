package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/lang/document/documenttest"
)

// TestBombs refuses documents in flags, and in files that flags name, that would
// fill the memory.
func TestBombs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	keep := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, read := range map[string]func(text string) error{
		"flag": func(text string) error {
			_, err := new(setting).document(text)
			return err
		},
		"file of a flag": func(text string) error {
			keep(text)
			_, err := new(setting).document("@" + file)
			return err
		},
		"fields": func(text string) error {
			keep(text)
			_, err := (&body{file: file}).read(new(cobra.Command))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { documenttest.Refused(t, read) })
	}
}
