package kind_test

import (
	"testing"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// benchWidget is a record as a network has thousands of.
func benchWidget(b *testing.B) *widget {
	w := create(b, full)
	w.ID, w.CreatedAt, w.UpdatedAt = "w1", kind.MomentOf(time.Unix(1_700_000_000, 123456789)), kind.MomentOf(time.Unix(1_700_000_001, 0))
	w.Digest = "5f4dcc3b5aa765d61d8327deb882cf99"
	return w
}

func BenchmarkApply(b *testing.B) {
	for name, text := range map[string]string{
		"typical": `{"name":"door-7","serial":"s1","owner":"ann","traits":["north","old"],"tags":{"site":"fra"}}`,
		"full":    full,
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				body, err := kind.ReadBody(data)
				if err != nil {
					b.Fatal(err)
				}
				if err := widgets.Apply(kind.Create, widgets.New(), body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	w := benchWidget(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := widgets.Encode(w); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := widgets.Encode(benchWidget(b))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := widgets.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkClone(b *testing.B) {
	w := benchWidget(b)
	b.ReportAllocs()
	for b.Loop() {
		widgets.Clone(w)
	}
}

// BenchmarkColumns renders one record as lists do.
func BenchmarkColumns(b *testing.B) {
	w, r := benchWidget(b), world{}
	cols := shop.Columns(widgets.Def)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = appendAll(dst[:0], cols, r, w)
	}
	b.SetBytes(int64(len(dst)))
}
