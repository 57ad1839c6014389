package storetest

import (
	"io"
	"testing"

	"netkeep.internal/internal/data/store"
)

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) Opener { return memoryOpener(NewMemory()) })
}

// TestCompareMemory tests the comparison itself.
func TestCompareMemory(t *testing.T) {
	Compare(t, func(*testing.T) Opener { return memoryOpener(NewMemory()) })
}

// memoryOpener closes the first handle, so that all are equal.
func memoryOpener(m *Memory) Opener {
	m.Close()
	return Opener{
		Open: func(testing.TB) store.Store { return m.Another() },
		Restore: func(t testing.TB, snapshot io.Reader) store.Store {
			r, err := RestoreMemory(snapshot)
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
	}
}
