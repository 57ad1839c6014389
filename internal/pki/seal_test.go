package pki

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func newSealer(t *testing.T) *Sealer {
	t.Helper()
	ks, err := Open(t.TempDir(), Options{Now: time.Now, Algorithm: "P-256"})
	if err != nil {
		t.Fatal(err)
	}
	return ks.Sealer()
}

var sealText = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// TestSeal opens what was sealed, with the same keys at the same place and in
// no other way.
func TestSeal(t *testing.T) {
	ours, theirs := newSealer(t), newSealer(t)
	rapid.Check(t, func(t *rapid.T) {
		place, plain := rapid.String().Draw(t, "place"), rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		sealed := ours.Seal(place, plain)
		if !sealText.Match(sealed) || len(plain) > 5 && bytes.Contains(sealed, plain) {
			t.Fatalf("sealed as %s", sealed)
		}
		if again := ours.Seal(place, plain); !bytes.Equal(again, sealed) {
			t.Errorf("sealed as %s and as %s", sealed, again)
		}
		if got, err := ours.Open(place, sealed); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("opened as %q: %v", got, err)
		}
		if got, err := theirs.Open(place, sealed); err == nil {
			t.Errorf("others open it as %q", got)
		}
		other := rapid.String().Filter(func(s string) bool { return s != place }).Draw(t, "other place")
		if got, err := ours.Open(other, sealed); err == nil {
			t.Errorf("it opens at %q as %q", other, got)
		}
		if elsewhere := ours.Seal(other, plain); bytes.Equal(elsewhere, sealed) {
			t.Errorf("it is sealed alike at %q", other)
		}
		i := rapid.IntRange(0, len(sealed)-1).Draw(t, "damaged")
		damaged := bytes.Clone(sealed)
		damaged[i] ^= rapid.ByteRange(1, 255).Draw(t, "by")
		if got, err := ours.Open(place, damaged); err == nil {
			t.Errorf("it opens though damaged at %d, as %q", i, got)
		}
		if got, err := ours.Open(place, sealed[:i]); err == nil {
			t.Errorf("it opens though cut at %d, as %q", i, got)
		}
	})
}
