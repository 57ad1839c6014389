package kind_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/pki"
)

// letter has something under a seal in every form that one might want.
type letter struct {
	kind.Meta

	To     string   `json:"to"`
	Text   string   `json:"text" kind:"sealed,unique"`
	Copies []string `json:"copies" kind:"sealed"`
	Pages  int      `json:"pages" kind:"sealed,default=1"`
	Stamp  struct {
		Code string `json:"code" kind:"sealed,was=mark"`
		Used bool   `json:"used"`
	} `json:"stamp"`
}

var letters = kind.Define(kind.Spec[letter]{Name: "letter", Path: "letters"})

func newSealer(t *testing.T) *pki.Sealer {
	t.Helper()
	keys, err := pki.Open(t.TempDir(), pki.Options{Now: time.Now, Algorithm: "P-256"})
	if err != nil {
		t.Fatal(err)
	}
	return keys.Sealer()
}

// TestSealed has records come back from under their seals as they were, with
// nothing to be read meanwhile, and in no other way.
func TestSealed(t *testing.T) {
	ours, theirs := newSealer(t), newSealer(t)
	hush := rapid.StringMatching(`hush[a-z]{8}`)
	rapid.Check(t, func(t *rapid.T) {
		l := letters.New()
		l.ID, l.To = rapid.StringMatching(`[a-z]{5}`).Draw(t, "id"), rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "to")
		l.Text, l.Stamp.Code = hush.Draw(t, "text"), hush.Draw(t, "code")
		l.Copies, l.Pages = rapid.SliceOfN(hush, 0, 3).Draw(t, "copies"), rapid.IntRange(0, 3).Draw(t, "pages")
		stored, err := letters.EncodeSealed(l, ours)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(stored), "hush") || !strings.Contains(string(stored), `"id":"`+l.ID+`"`) {
			t.Fatalf("stored as %s", stored)
		}
		back, err := letters.DecodeSealed(stored, l.ID, ours)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(l, back, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("stored as %s, came back as:\n%s", stored, d)
		}
		if again, err := letters.EncodeSealed(back.(*letter), ours); err != nil || string(again) != string(stored) {
			t.Errorf("two texts for one record: %v\n%s\n%s", err, stored, again)
		}
		if _, err := letters.DecodeSealed(stored, l.ID, theirs); err == nil {
			t.Error("others can read it")
		}
		if _, err := letters.DecodeSealed(stored, l.ID+"x", ours); err == nil {
			t.Error("it can be read as another record")
		}
		open, err := letters.Encode(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := letters.DecodeSealed(open, l.ID, ours); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("what is not sealed is read: %v", err)
		}
	})
}

// TestSealedElsewhere moves what is sealed to another field, and reads it under
// the name that its field had before.
func TestSealedElsewhere(t *testing.T) {
	s := newSealer(t)
	seal := func(place string) string { return string(s.Seal(place, []byte(`"hush"`))) }
	rec, err := letters.DecodeSealed([]byte(`{"id":"l1","stamp":{"mark":"`+seal("letter/l1/stamp.mark")+`"}}`), "l1", s)
	if err != nil || rec.(*letter).Stamp.Code != "hush" {
		t.Errorf("under its old name: %+v, %v", rec, err)
	}
	for _, stored := range []string{
		`{"id":"l1","text":"` + seal("letter/l1/stamp.code") + `"}`,
		`{"id":"l1","text":"` + seal("other/l1/text") + `"}`,
		`{"id":"l1","copies":"` + seal("letter/l1/copies") + `"}`, // a text, which is no list
		`{"id":"l1","copies":["hush"]}`, `{"id":"l1","pages":7}`,
	} {
		if rec, err := letters.DecodeSealed([]byte(stored), "l1", s); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s is read as %+v: %v", stored, rec, err)
		}
	}
}

// sealedList cannot tell the places of its elements apart.
type sealedList struct {
	kind.Meta

	Items []struct {
		Code string `json:"code" kind:"sealed"`
	} `json:"items"`
}

func TestSealedInList(t *testing.T) {
	wantPanic(t, `word "sealed" works only in a record`, func() { define[sealedList]() })
}
