package etcdstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"

	"netkeep.internal/internal/disk"
)

// Restore makes the data directory dir from a snapshot, for Open. It refuses a
// directory with anything in it and a snapshot whose checksum is wrong, and
// leaves nothing behind when it fails.
func Restore(ctx context.Context, from io.Reader, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if entries, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	} else if len(entries) > 0 {
		return fmt.Errorf("restore: %s is not empty", dir)
	}
	// All is made beside its place and moved there at the end, so that a
	// half restored directory is never opened.
	work, err := os.MkdirTemp(dir, "restore-")
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	file := filepath.Join(work, "snapshot")
	if err := receive(ctx, from, file); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	data := filepath.Join(work, "data")
	if err := build(file, data); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := hide(data); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := os.Rename(filepath.Join(data, "member"), filepath.Join(dir, "member")); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := disk.Sync(dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// hide takes everybody else's rights to the files below dir, which etcd makes
// readable for all.
func hide(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
}

// receive stores a snapshot and checks the checksum at its end.
func receive(ctx context.Context, from io.Reader, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, reader{ctx, from}); err != nil {
		return err
	}
	return checkSum(ctx, f)
}

// checkSum compares a snapshot with the checksum at its end.
func checkSum(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	body := info.Size() - sha256.Size
	if body <= 0 {
		return errors.New("the snapshot is cut short")
	}
	sum := make([]byte, sha256.Size)
	if _, err := f.ReadAt(sum, body); err != nil {
		return err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, reader{ctx, io.NewSectionReader(f, 0, body)}); err != nil {
		return err
	}
	if !bytes.Equal(sum, hash.Sum(nil)) {
		return errors.New("the snapshot is damaged or cut short: its checksum is wrong")
	}
	return nil
}

// reader is from until ctx ends.
type reader struct {
	ctx  context.Context
	from io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// build makes a data directory for a cluster of one. etcd panics where it
// cannot go on; its logger turns that into an error.
func build(file, data string) error {
	alive, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	log := &bridge{log: slog.New(slog.DiscardHandler), fail: fail}
	built := make(chan error, 1)
	go func() {
		built <- snapshot.NewV3(log.logger()).Restore(snapshot.RestoreConfig{
			SnapshotPath:        file,
			OutputDataDir:       data,
			Name:                memberName,
			PeerURLs:            []string{memberPeer},
			InitialCluster:      memberName + "=" + memberPeer,
			InitialClusterToken: rand.Text(), // the members of before are none of this one
		})
	}()
	select {
	case err := <-built:
		return err
	case <-alive.Done():
		return context.Cause(alive)
	}
}
