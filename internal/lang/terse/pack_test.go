package terse

import (
	"bytes"
	"testing"

	"netkeep.internal/internal/lang/pack"
)

// TestAdopt has another run of the program read what this one has packed, once it has the
// samples, and not without them, nor with others in their places.
func TestAdopt(t *testing.T) {
	one, two := newAuthority(t, "one"), newAuthority(t, "two")
	var here, there, another shelf
	a, b, other := one.issue(t, "a"), two.issue(t, "b"), two.issue(t, "other")
	if here.of(a) != 1 || here.of(b) != 2 || another.of(other) != 1 {
		t.Fatal("samples have other numbers")
	}
	if !there.adopt(here.told()[:1]) || !there.adopt(here.told()) || !there.adopt(here.told()) || !there.adopt(nil) {
		t.Error("samples are not adopted one after the other, or again")
	}
	if n := there.of(b); n != 2 || len(there.told()) != 2 {
		t.Errorf("what was adopted has the number %d, of %d", n, len(there.told()))
	}
	if n := there.of(other); n != 2 {
		t.Errorf("another of the same issuer is told by %d", n)
	}
	for name, others := range map[string][][]byte{
		"another in its place": another.told(), "no certificate": {[]byte("x")}, "twice": {a, a}, "too many": make([][]byte, 256),
	} {
		if there.adopt(others) {
			t.Errorf("%s: adopted", name)
		}
	}
	if got := there.told(); len(got) != 2 || !bytes.Equal(got[0], a) || !bytes.Equal(got[1], b) {
		t.Error("what was not adopted changed what there was")
	}
}

// TestPackText has texts come back as they were, and refuses those that are told by what is
// not there.
func TestPackText(t *testing.T) {
	for _, text := range []string{"", "no certificate", string(appendPEM(nil, newAuthority(t, "pack").issue(t, "x")))} {
		is := Of([]byte(text))
		w := &pack.Writer{}
		is.Pack(w)
		var back Text
		r := pack.NewReader(w.Bytes)
		if back.Unpack(r); r.Err() != nil || back.String() != text {
			t.Errorf("%q came back as %q, %v", text, back.String(), r.Err())
		}
	}
	w := &pack.Writer{}
	w.Rare("\xffsomething")
	var back Text
	r := pack.NewReader(w.Bytes)
	if back.Unpack(r); r.Err() == nil {
		t.Errorf("read as %q", string(back))
	}
}
