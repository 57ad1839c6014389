package cluster_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// rotates makes a step at a controller whose network has no other.
func rotates(t *testing.T, s *servertest.Server, r server.Rotation) server.KeysStatus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	st, err := server.RotateKeys(ctx, s.Config, r, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return st
}

// TestRestoredBehind puts a snapshot back beside keys of before the last step of a
// rotation, which nobody has any more: they are good, and become the network's, so
// that they can be rotated. A controller with keys of before that is refused.
func TestRestoredBehind(t *testing.T) {
	beside(t)
	use := func(c *config.Config) { c.Cluster.Listen = "127.0.0.1:" + machine.Port(t) }
	before, err := servertest.Open(t.TempDir(), use)
	if err != nil {
		t.Fatal(err)
	}
	oldest, older := t.TempDir(), t.TempDir()
	copyKeys(t, before, oldest)
	servertest.Eventually(t, patience, "what the controller says of its keys", func() bool {
		st, err := server.ReadKeys(before.Config)
		return err == nil && st.Shared != nil
	})
	rotates(t, before, server.Rotation{What: pki.SessionSecret})
	copyKeys(t, before, older)
	lost := rotates(t, before, server.Rotation{What: pki.SessionSecret, Finish: true, Force: true})
	before.Admin(t).Post("database/snapshot", nil).Want(http.StatusOK)
	stop(t, before)
	files, err := filepath.Glob(filepath.Join(before.Config.Data, "snapshots", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the snapshots are %v: %v", files, err)
	}
	restore := func(keys string) (dir string) {
		t.Helper()
		dir = t.TempDir()
		if code, text := command(t, t.TempDir(), "restore", "--data", filepath.Join(dir, "data"), files[0]); code != 0 {
			t.Fatal(text)
		}
		if err := os.Rename(filepath.Join(keys, "data", "pki"), filepath.Join(dir, "data", "pki")); err != nil {
			t.Fatal(err)
		}
		return dir
	}

	refusedStart(t, restore(oldest), use, "are of before the last changes (0, and the network has 3)", "a later backup of its pki directory")

	after, err := servertest.Open(restore(older), use)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, after)
	servertest.Eventually(t, patience, "the keys that there are to be those of the network", func() bool {
		st, err := server.ReadKeys(after.Config)
		return err == nil && st.Shared != nil && st.Keys.Generation() > lost.Keys.Generation() && st.Shared.Generation == st.Keys.Generation() && len(st.Shared.Lacking) == 0
	})
	st := rotates(t, after, server.Rotation{What: pki.SessionSecret, Finish: true, Force: true})
	if st.Keys.Turning(pki.SessionSecret) || st.Keys.SecretID(pki.SessionSecret) != lost.Keys.SecretID(pki.SessionSecret) {
		t.Error("the rotation that was finished before is not finished again")
	}
	rotates(t, after, server.Rotation{What: pki.IntermediateCA})
	if _, err := os.Stat(filepath.Join(after.Config.Data, "pki", "former-session.key")); !os.IsNotExist(err) {
		t.Errorf("the key of before is there: %v", err)
	}
}
