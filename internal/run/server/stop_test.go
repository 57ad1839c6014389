package server

import (
	"errors"
	"testing"
	"time"
)

// TestStopWithoutStore stops a controller of which a part waits for a store that has
// failed, for ever; and one whose store is well, which is waited for.
func TestStopWithoutStore(t *testing.T) {
	s := &Server{}
	forever, said := make(chan struct{}), errors.New("stopped")
	defer close(forever)
	s.storeFailed.Store(true)
	if err := s.patiently(time.Millisecond, func() error { <-forever; return nil }); !errors.Is(err, errStuck) {
		t.Errorf("it ends with %v", err)
	}
	if err := s.patiently(time.Hour, func() error { return said }); !errors.Is(err, said) {
		t.Errorf("it ends with %v", err)
	}
	s.storeFailed.Store(false)
	if err := s.patiently(0, func() error { <-time.After(10 * time.Millisecond); return said }); !errors.Is(err, said) {
		t.Errorf("it ends with %v", err)
	}
}
