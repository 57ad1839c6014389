package storetest

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"netkeep.internal/internal/data/store"
)

// witness tests that a log is told from others at every revision, for as long as it goes on.
func witness(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	said := map[store.Rev][]byte{}
	look := func(rev store.Rev) {
		t.Helper()
		got, err := s.Witness(j.ctx, rev)
		if err != nil || len(got) == 0 {
			t.Fatalf("Witness(%d): %d bytes, %v", rev, len(got), err)
		}
		for other, is := range said {
			if other != rev && bytes.Equal(is, got) {
				t.Errorf("revisions %d and %d have the same witness", other, rev)
			}
		}
		said[rev] = got
	}
	look(j.commit(set("k/1", "one")))
	look(j.put(set("s/1", "one")))
	look(j.put(set("s/1", "two")))
	look(j.commit(set("k/1", "two")))
	look(j.put(del("s/1")))
	another := open(t, o)
	for rev, is := range said {
		if got, err := another.Witness(j.ctx, rev); err != nil || !bytes.Equal(got, is) {
			t.Errorf("of revision %d it is said now %x, and was %x (%v)", rev, got, is, err)
		}
	}
	for _, rev := range []store.Rev{0, -1, j.last() + 1000} {
		if _, err := s.Witness(j.ctx, rev); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Witness(%d): %v, want ErrInvalid", rev, err)
		}
	}

	// Two that have parted, and write the same at another time.
	var copied bytes.Buffer
	if err := s.Snapshot(j.ctx, &copied); err != nil {
		t.Fatal(err)
	}
	parted := o.Restore(t, &copied)
	defer parted.Close()
	at := j.put(set("s/2", "same"))
	now, err := parted.Put(j.ctx, store.Head{Time: time.Unix(1, 0)}, []store.Op{set("s/2", "same")})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := s.Witness(j.ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	if theirs, err := parted.Witness(j.ctx, now.Rev); err != nil || bytes.Equal(ours, theirs) {
		t.Errorf("logs that have parted have the same witness (%v)", err)
	}
}

// witnessForgotten tests that what is forgotten is no longer told from others, and that what
// can be followed is.
func witnessForgotten(t *testing.T, o Opener) {
	s := open(t, o)
	j := newJournal(t, s)
	before := j.commit(set("k/1", "one"))
	cut := j.put(set("s/1", "put"))
	said, err := s.Witness(j.ctx, cut)
	if err != nil {
		t.Fatal(err)
	}
	j.commit(set("k/1", "two"))
	if err := s.Compact(j.ctx, cut); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Witness(j.ctx, before); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("of what is forgotten: %v, want ErrCompacted", err)
	}
	if got, err := s.Witness(j.ctx, cut); err != nil || !bytes.Equal(got, said) {
		t.Errorf("of what can be followed it is said %x, and was %x (%v)", got, said, err)
	}
}
