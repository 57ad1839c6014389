package cipher

import (
	"crypto/sha256"
	"testing"
)

// BenchmarkAfter does something else with what was opened or sealed, which must
// not be slower for it.
func BenchmarkAfter(b *testing.B) {
	const size = 32 << 10
	s, o := streams(b, unhex(b, streamHeader))
	plain := make([]byte, size)
	box, err := s.Seal(plain, Message)
	if err != nil {
		b.Fatal(err)
	}
	start, sum := o.nonce, sha256.New()
	for name, first := range map[string]func() error{
		"nothing": func() error { return nil },
		"seal":    func() error { _, err := s.Seal(plain, Message); return err },
		"open": func() error {
			o.nonce = start
			_, _, err := o.Open(nil, box)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if err := first(); err != nil {
					b.Fatal(err)
				}
				_, _ = sum.Write(plain)
			}
		})
	}
}
