package spell_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/spell"
)

func TestNear(t *testing.T) {
	names := []string{"name", "named", "type", "createdAt", "id"}
	for misspelt, want := range map[string][]string{
		"nmae":                             {"name"},
		"NAME":                             {"name", "named"},
		"createdat":                        {"createdAt"},
		"creatdAt":                         {"createdAt"},
		"tipe":                             {"type"},
		"ix":                               nil, // too short to tell
		"":                                 nil,
		"colour":                           nil,
		"name" + strings.Repeat("x", 1000): nil,
	} {
		if got := spell.Near(misspelt, names); !slices.Equal(got, want) {
			t.Errorf("near %.20q: %q, want %q", misspelt, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"data", "listen", "log.level", "log.format"}
	for misspelt, want := range map[string]string{
		"":           "data",
		"listne":     "listen",
		"LOG.LEVEL":  "log.level",
		"log.fmt":    "log.format",
		"log.colour": "log.format",
		"LOG.f":      "log.format",
	} {
		if got := spell.Nearest(misspelt, names); got != want {
			t.Errorf("nearest to %q: %q, want %q", misspelt, got, want)
		}
	}
	if got := spell.Nearest("x", nil); got != "" {
		t.Errorf("nearest of none: %q", got)
	}
}

// TestNearestIsNear compares the two: what looks alike is no farther than the
// nearest.
func TestNearestIsNear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.StringMatching(`[a-c]{3,6}`), 1, 6).Draw(t, "names")
		misspelt := rapid.StringMatching(`[a-cA-C]{3,6}`).Draw(t, "misspelt")
		near, nearest := spell.Near(misspelt, names), spell.Nearest(misspelt, names)
		if !slices.Contains(names, nearest) {
			t.Fatalf("%q is none of %q", nearest, names)
		}
		if len(near) > 0 && near[0] != nearest {
			t.Fatalf("near %q are %q, and the nearest is %q", misspelt, near, nearest)
		}
	})
}
