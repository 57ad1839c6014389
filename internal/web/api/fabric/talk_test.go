package fabric

import (
	"errors"
	"testing"

	"netkeep.internal/internal/web/rest"
	"netkeep.internal/internal/wire"
)

// TestSlowReader keeps what a client has not read up to a bound, and gives it up there
// with nothing kept.
func TestSlowReader(t *testing.T) {
	one := &talk{wake: make(chan struct{}, 1)}
	body := make([]byte, 1<<20)
	for range 3 {
		one.send(&wire.Frame{Body: body})
	}
	for range 3 {
		if text, err := one.take(); len(text) < len(body) || err != nil {
			t.Fatalf("took %d bytes, %v", len(text), err)
		}
	}
	if text, err := one.take(); text != nil || err != nil {
		t.Fatalf("took %d bytes of nothing, %v", len(text), err)
	}
	for range 100 {
		one.send(&wire.Frame{Body: body})
	}
	if _, err := one.take(); !errors.Is(err, rest.ErrSlow) || one.size != 0 {
		t.Fatalf("a client that does not read: %v, %d bytes kept", err, one.size)
	}
}
