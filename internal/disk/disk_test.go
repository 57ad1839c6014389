package disk_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/internal/disk"
)

func TestSync(t *testing.T) {
	dir := t.TempDir()
	if err := disk.Sync(dir); err != nil {
		t.Error(err)
	}
	missing := filepath.Join(dir, "missing")
	if err := disk.Sync(missing); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
