package kind_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/pack"
)

// TestPackedRecords has records come back that are those of their stored form.
func TestPackedRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWidget.Draw(t, "widget")
		stored := encode(t, w)
		kept := decode(t, stored) // as it is in memory
		to := &pack.Writer{}
		widgets.Pack(to, kept, nil)
		if to.Err() != nil {
			t.Fatal(to.Err())
		}
		r := pack.NewReader(to.Bytes)
		back, err := widgets.Unpack(r, nil)
		if err != nil || r.Len() != 0 {
			t.Fatalf("%v, %d bytes are left", err, r.Len())
		}
		if diff := cmp.Diff(kept, back.(*widget), cmpopts.IgnoreUnexported(widget{})); diff != "" {
			t.Errorf("%s came back as:\n%s", stored, diff)
		}
	})
}

// TestPackedSeals has what is sealed in the store under its seal when it is packed, in its
// place and in no other, and leaves the record alone.
func TestPackedSeals(t *testing.T) {
	ours, theirs := newSealer(t), newSealer(t)
	hush := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`hush[a-z]{8}`))
	rapid.Check(t, func(t *rapid.T) {
		l := letters.New()
		l.ID, l.To = rapid.StringMatching(`[a-z]{5}`).Draw(t, "id"), rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "to")
		l.Text, l.Stamp.Code = hush.Draw(t, "text"), hush.Draw(t, "code")
		l.Copies, l.Pages = rapid.SliceOfN(hush, 0, 3).Draw(t, "copies"), rapid.IntRange(0, 3).Draw(t, "pages")
		before := letters.Clone(l)
		w := &pack.Writer{}
		letters.Pack(w, l, ours)
		if diff := cmp.Diff(before, kind.Record(l)); diff != "" {
			t.Fatalf("the record was written to:\n%s", diff)
		}
		if strings.Contains(string(w.Bytes), "hush") {
			t.Fatalf("packed as %q", w.Bytes)
		}
		back, err := letters.Unpack(pack.NewReader(w.Bytes), ours)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(l, back, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("it came back as:\n%s", diff)
		}
		if l.Text == "" {
			return
		}
		if _, err := letters.Unpack(pack.NewReader(w.Bytes), theirs); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("others read it: %v", err)
		}
	})
}

// TestPackedApart holds records that keep fields apart to what they were, the struct that they
// have in common included.
func TestPackedApart(t *testing.T) {
	for _, side := range []string{"left", "right"} {
		m := mugs.New()
		m.ID, m.Side = "m1", side
		rec := mugs.Kept(m)
		w := &pack.Writer{}
		mugs.Pack(w, rec, nil)
		back, err := mugs.Unpack(pack.NewReader(w.Bytes), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := back.(*mug); got.Side != side || (got.Handle == rec.(*mug).Handle) != (side == "left") {
			t.Errorf("%s: came back as %+v, the same struct: %t", side, got.Handle, got.Handle == rec.(*mug).Handle)
		}
	}
}
