// Package upgrade_test opens what older versions stored. Every folder of
// testdata is a network as the binary of a commit left it, in the form of its
// own snapshot: it holds something of every kind, its keys are beside it, and
// known.json is what its clients know. Fixtures are never made anew; fill says
// how they were made.
package upgrade_test

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep/internal/run/server"
)

// first is the fixture by the last commit that gave stores no format:
// b84934a2, which is format 1.
const first = "format1"

// known is what clients of a fixture's network know.
type known struct {
	Password      string   `json:"password"`
	TOTPSecret    string   `json:"totpSecret"`
	RecoveryCodes []string `json:"recoveryCodes"`
	SessionToken  string   `json:"sessionToken"`
	PhoneCert     string   `json:"phoneCert"`
	PhoneKey      string   `json:"phoneKey"`
	PartnerCert   string   `json:"partnerCert"`
	PartnerKey    string   `json:"partnerKey"`
}

func read(t *testing.T, fixture string) (k known) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", fixture, "known.json"))
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// restore makes a data directory of a fixture, as an operator would.
func restore(t *testing.T, fixture, data string) {
	t.Helper()
	from := filepath.Join("testdata", fixture)
	snapshot := filepath.Join(t.TempDir(), "snapshot.db")
	if err := unpack(filepath.Join(from, "snapshot.db.gz"), snapshot); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Restore(t.Context(), data, snapshot); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(data, "pki")
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(from, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(from, "pki", f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(keys, f.Name()), text, 0o600) // git keeps no modes
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpack(from, to string) error {
	packed, err := os.Open(from)
	if err != nil {
		return err
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, z)
	return errors.Join(err, f.Close())
}
