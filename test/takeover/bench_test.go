package takeover_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"netkeep.internal/internal/run/server"
	"netkeep.internal/test/zititest"
)

// grow adds identities to a database, each with a password, an attribute and tags.
func grow(b *testing.B, file string, n int) {
	b.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now, err := time.Now().UTC().MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	text := func(s string) []byte { return append([]byte{5}, s...) }
	const part = 10000
	for from := 0; from < n; from += part {
		if err := db.Update(func(tx *bbolt.Tx) error {
			ziti := tx.Bucket([]byte("ziti"))
			identities, authenticators := ziti.Bucket([]byte("identities")), ziti.Bucket([]byte("authenticators"))
			for i := from; i < min(n, from+part); i++ {
				id := fmt.Sprintf("grown%06d", i)
				who, err := identities.CreateBucket([]byte(id))
				if err != nil {
					return err
				}
				attributes, err := who.CreateBucket([]byte("roleAttributes"))
				if err != nil {
					return err
				}
				tags, err := who.CreateBucket([]byte("tags"))
				if err != nil {
					return err
				}
				auth, err := authenticators.CreateBucket([]byte("a" + id))
				if err != nil {
					return err
				}
				for _, put := range []struct {
					in         *bbolt.Bucket
					key, value []byte
				}{
					{who, []byte("name"), text("device " + id)}, {who, []byte("type"), text("Default")}, {who, []byte("authPolicyId"), text("default")},
					{who, []byte("createdAt"), append([]byte{6}, now...)}, {who, []byte("updatedAt"), append([]byte{6}, now...)},
					{attributes, text(fmt.Sprintf("group-%d", i%500)), []byte{}}, {tags, []byte("site"), text(fmt.Sprint(i % 90))},
					{auth, []byte("method"), text("cert")}, {auth, []byte("identity"), text(id)}, {auth, []byte("isIssuedByNetwork"), []byte{1, 1}},
					{auth, []byte("certFingerprint"), text(fmt.Sprintf("%040x", binary.BigEndian.AppendUint64(nil, uint64(i))))},
					{auth, []byte("createdAt"), append([]byte{6}, now...)}, {auth, []byte("updatedAt"), append([]byte{6}, now...)},
				} {
					if err := put.in.Put(put.key, bytes.Clone(put.value)); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTakeover takes over a network of 100,000 identities with a certificate each.
func BenchmarkTakeover(b *testing.B) {
	dir := zititest.Unpack(b, "1.6.20")
	const n = 100_000
	grow(b, zititest.Database(dir), n)
	b.ResetTimer()
	for i := range b.N {
		data := filepath.Join(b.TempDir(), fmt.Sprint(i))
		report, err := server.TakeOver(b.Context(), server.Takeover{Config: filepath.Join(dir, "ctrl.yml"), Data: data, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		for _, k := range report.Kinds {
			if k.Kind == "identities" && k.Taken < n {
				b.Errorf("%d identities were taken", k.Taken)
			}
		}
		if err := os.RemoveAll(data); err != nil {
			b.Fatal(err)
		}
	}
}
