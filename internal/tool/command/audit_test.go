package command

import (
	"reflect"
	"testing"
)

// TestVerdictOfParts puts together what is said of a log that was read in two parts: it is
// whole only if both are.
func TestVerdictOfParts(t *testing.T) {
	whole := verdict{Intact: true, First: 5, Last: 90, Digest: "a", Entries: 40, Next: 45, Follows: "b"}
	flawed := verdict{First: 7, Last: 91, Digest: "c", Entries: 46, Flaws: []flaw{{50, 51, "missing"}}, More: true}
	if got := (verdict{}).with(whole); !reflect.DeepEqual(got, whole) {
		t.Errorf("of one part it says %+v", got)
	}
	want := flawed
	want.First, want.Entries = 5, 86
	if got := whole.with(flawed); !reflect.DeepEqual(got, want) {
		t.Errorf("where the second is flawed it says %+v", got)
	}
	want.Next, want.Follows, want.Last, want.Digest = 45, "b", 90, "a"
	want.First = 7
	if got := flawed.with(whole); !reflect.DeepEqual(got, want) {
		t.Errorf("where the first is flawed it says %+v", got)
	}
}
