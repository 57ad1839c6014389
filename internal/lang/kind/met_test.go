package kind_test

import (
	"fmt"
	"testing"
	"unsafe"

	"netkeep.internal/internal/lang/kind"
)

// thing has a text that no other has, and some that many have.
type thing struct {
	kind.Meta
	Name  string   `json:"name" kind:"unique" doc:"Its name."`
	Words []string `json:"words" doc:"What it has in common with others."`
}

var things = kind.Define(kind.Spec[thing]{Name: "thing", Path: "things", Doc: "A thing."})

// What many records say is in memory a few times, however many names and ids come between.
func TestTextsOfMany(t *testing.T) {
	const records, words = 4000, 300
	kept := map[*byte]bool{}
	for i := range records {
		rec := &thing{Meta: kind.Meta{ID: fmt.Sprint("id-", i)}, Name: fmt.Sprint("name-", i)}
		for k := range 3 {
			rec.Words = append(rec.Words, fmt.Sprint("word-", (i*7+k*101)%words))
		}
		stored, err := things.Encode(rec)
		if err != nil {
			t.Fatal(err)
		}
		back, err := things.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		got := back.(*thing)
		if got.ID != rec.ID || got.Name != rec.Name || fmt.Sprint(got.Words) != fmt.Sprint(rec.Words) {
			t.Fatalf("%v came back as %v", rec, got)
		}
		for _, word := range got.Words {
			kept[unsafe.StringData(word)] = true
		}
	}
	if most := 3 * records / 3; len(kept) > most {
		t.Errorf("%d words are in memory %d times, and are said %d times", words, len(kept), 3*records)
	}
}
