package format_test

import (
	"strings"
	"testing"

	"netkeep.internal/internal/data/format"
)

// TestHold has a version with one format more come beside others. The store moves
// when all of them can work with it, and not before.
func TestHold(t *testing.T) {
	ctx, mem := t.Context(), filled(t, 20)
	if err := migration(mem, steps[:2]).Run(ctx); err != nil {
		t.Fatal(err)
	}
	was, said := contents(t, mem), says(t, mem)
	old := []format.Other{{Name: "new", Format: 4, There: true}, {Name: "old", Version: "v1.3.0", Format: 3, There: true}}
	silent := []format.Other{{Name: "old", Version: "v1.0.0", There: true}}
	gone := []format.Other{{Name: "old", Format: 3}}
	able := []format.Other{{Name: "b", Format: 4, There: true}, {Name: "c", Format: 5}}
	for name, test := range map[string]struct {
		others []format.Other
		waits  int
		hold   bool
		says   string
	}{
		"one is old":                       {others: old, waits: 1, hold: true},
		"one says nothing":                 {others: silent, waits: 1, hold: true},
		"one is old and stopped":           {others: gone, waits: 1, hold: true},
		"all can":                          {others: able, waits: 1},
		"nobody else":                      {waits: 1},
		"it cannot wait":                   {others: old, says: "old (v1.3.0). Bring them to a version between theirs and this one first"},
		"it cannot wait, and all can":      {others: able},
		"it cannot wait, and it has ended": {others: gone},
	} {
		hold, err := migration(mem, steps).Hold(ctx, test.others, test.waits)
		if hold != test.hold || (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: held is %t: %v", name, hold, err)
		}
	}
	if now := contents(t, mem); len(now) != len(was) || says(t, mem) != said {
		t.Errorf("a look has changed the store, which says %s", says(t, mem))
	}
	if err := migration(mem, steps).Run(ctx); err != nil {
		t.Fatal(err)
	}
	if hold, err := migration(mem, steps).Hold(ctx, old, 1); hold || err != nil {
		t.Errorf("what is done is held: %v", err)
	}
	if _, err := migration(mem, steps[:2]).Hold(ctx, nil, 1); err == nil || !strings.Contains(err.Error(), "v1.4.0 and newer can read") {
		t.Errorf("an older version says %v", err)
	}
	if now, err := format.Of(ctx, mem); now != 4 || err != nil {
		t.Errorf("the store has format %d: %v", now, err)
	}
}
