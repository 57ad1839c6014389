package integrity

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/disk"
)

// maxName keeps names of files below what file systems take.
const maxName = 150

// quarantine keeps a value that is about to be taken out of the store, and
// returns the name of its file. It is on disk when this returns.
func (s *Scanner) quarantine(key string, rev store.Rev, value []byte) (name string, err error) {
	name = url.PathEscape(key)
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(key))
		name = name[:maxName] + "-" + hex.EncodeToString(sum[:8])
	}
	name = fmt.Sprintf("%s-r%d", name, rev)
	if err := os.MkdirAll(s.Quarantine, 0o700); err != nil {
		return "", fmt.Errorf("quarantine: %w", err)
	}
	path := filepath.Join(s.Quarantine, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		// From a run that was interrupted. One revision has one value.
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, value) {
			return name, nil
		}
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("quarantine: %w", err)
	}
	_, err = f.Write(value)
	if err = errors.Join(err, f.Sync(), f.Close(), disk.Sync(s.Quarantine)); err != nil {
		return "", fmt.Errorf("quarantine: %w", err)
	}
	return name, nil
}
