package lookup

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestMap does to a map what is done to one of Go's.
func TestMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := New[int](), map[string]int{}
		for i, do := range rapid.SliceOfN(rapid.IntRange(0, 999), 0, 2000).Draw(t, "do") {
			key := fmt.Sprint(do / 2)
			if do%2 == 0 {
				m.Set(key, i)
				want[key] = i
			} else {
				m.Delete(key)
				delete(want, key)
			}
			got, ok := m.GetBytes([]byte(key))
			if v, there := want[key]; got != v || ok != there {
				t.Fatalf("%s is %d, %v; want %d, %v", key, got, ok, v, there)
			}
		}
		if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
			t.Fatalf("there are %d: %v; want %v", m.Len(), got, want)
		}
	})
}

// TestMapIsRead has many read what one changes: what stays is always there.
func TestMapIsRead(t *testing.T) {
	m := New[int]()
	m.Set("stays", 1)
	over := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if v, ok := m.Get("stays"); v != 1 || !ok {
					t.Error("it was gone")
					return
				}
			}
		})
	}
	for i := range 20_000 {
		key := fmt.Sprint(i % 500)
		if _, ok := m.Get(key); ok {
			m.Delete(key)
		} else {
			m.Set(key, i)
		}
	}
	close(over)
	readers.Wait()
}
