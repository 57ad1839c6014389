package state

import (
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// TestRecordIDs has ids of records that are made together begin alike, and those that are
// made later come later, for thirty years.
func TestRecordIDs(t *testing.T) {
	// Where the beginnings come again is after what is looked at here.
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var ids []string
	for at := begin; at.Before(begin.AddDate(28, 0, 0)); at = at.AddDate(0, 0, 100) {
		one, two := newRecordID(at), newRecordID(at)
		if len(one) != 11 || one == two || one[:idStamp] != two[:idStamp] {
			t.Fatalf("at %v ids are %q and %q", at, one, two)
		}
		ids = append(ids, one)
	}
	begins := 0 // anew
	for i := 1; i < len(ids); i++ {
		if ids[i][:idStamp] <= ids[i-1][:idStamp] {
			begins++
		}
	}
	if begins > 1 {
		t.Errorf("ids begin anew %d times within thirty years: %q", begins, ids)
	}
	if id := newRecordID(time.Unix(-1, 0)); len(id) != 11 {
		t.Errorf("before there were computers it is %q", id)
	}
}

// crowded is a reader that has what is asked for some times.
type crowded struct {
	kind.Reader
	asked []string
}

func (c *crowded) Lookup(_ *kind.Def, id string) (kind.Record, bool) {
	c.asked = append(c.asked, id)
	return nil, len(c.asked) < 4
}

// TestFreeID takes no id that a record has.
func TestFreeID(t *testing.T) {
	c := &crowded{}
	id := freeID(c, filleds.Def, time.Now())
	if len(c.asked) != 4 || c.asked[3] != id || slices.Contains(c.asked[:3], id) {
		t.Errorf("asked for %q, the id is %q", c.asked, id)
	}
}
