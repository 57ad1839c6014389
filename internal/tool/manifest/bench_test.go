package manifest

import (
	"testing"
)

// records is how many a benchmark has: a part of a large network, so that what
// each takes can be told from what all take.
const records = 10_000

// loaded is a network of so many identities, and its export.
func loaded(tb testing.TB) (*Network, []byte) {
	n, err := Load(tb.Context(), many(records))
	if err != nil {
		tb.Fatal(err)
	}
	text, err := n.Encode(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return n, text
}

func BenchmarkLoad(b *testing.B) {
	all, err := many(records).List(b.Context(), "identities")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(b.Context(), listed{"identities": all}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	n, _ := loaded(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.Encode(nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	_, text := loaded(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		f := newFiles()
		if f.add("f.yaml", text); len(f.mistakes) > 0 {
			b.Fatal(f.mistakes)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	n, text := loaded(b)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		f := newFiles()
		f.add("f.yaml", text)
		b.StartTimer()
		p, err := Compare(f, n, Options{})
		if err != nil || len(p.Changes) > 0 {
			b.Fatal(p, err)
		}
	}
}
