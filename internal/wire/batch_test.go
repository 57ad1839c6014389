package wire

import (
	"slices"
	"testing"
)

// told is something put off that takes note of being done, and may put off more.
type told struct {
	name string
	done *[]string
	then func()
}

func (l *told) Flush() {
	*l.done = append(*l.done, l.name)
	if l.then != nil {
		l.then()
	}
}

// TestBatch puts things off: each is done once, in order, with what is put off by it.
func TestBatch(t *testing.T) {
	var b Batch
	var done []string
	last := &told{"last", &done, nil}
	first := &told{"first", &done, func() { b.Put(last) }}
	second := &told{"second", &done, nil}
	for range 2 {
		b.Open()
		for _, l := range []Later{first, second, first} {
			if !b.Put(l) {
				t.Fatal("nothing can be put off")
			}
		}
		b.Flush()
	}
	b.Flush()
	if b.Put(first) {
		t.Error("something was put off when nobody takes packets")
	}
	if want := []string{"first", "second", "last"}; !slices.Equal(done, append(want, want...)) {
		t.Errorf("done was %v", done)
	}
}
