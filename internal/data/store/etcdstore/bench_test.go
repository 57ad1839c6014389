package etcdstore

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"netkeep.internal/internal/data/store"
)

const recordSize = 900

// requested is the head of a write as requests make them.
func requested() store.Head {
	by := store.Author{
		Kind: "identity", ID: "00000000001", Name: "device-0000001.branch-1.example", Operation: "createSession",
		Request: "00000000002", Source: "192.0.2.1",
	}
	return store.Head{Time: time.Now(), Writes: []store.Write{{Author: by, Ops: 1}}}
}

// openBench opens a member as a server would, with all syncs.
func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), Options{Dir: filepath.Join(b.TempDir(), "data")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// fill writes n records.
func fill(b *testing.B, s *Store, n int) {
	b.Helper()
	for from := 0; from < n; from += 1000 {
		var ops []store.Op
		for i := from; i < min(n, from+1000); i++ {
			ops = append(ops, set(fmt.Sprintf("kind/%08d", i), recordSize)...)
		}
		if _, err := s.Put(b.Context(), store.Head{}, ops); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommit(b *testing.B) {
	s := openBench(b)
	ops := set("k/1", recordSize)
	var last store.Written
	var err error
	for b.Loop() {
		if last, err = s.Commit(b.Context(), last.Rev, requested(), ops); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCommitLarge writes more than a transaction holds, to a member of our
// own and to a server of default limits, with all syncs.
func BenchmarkCommitLarge(b *testing.B) {
	openServer := func(b *testing.B) *Store {
		m := startTest(b, silent, func(c *embed.Config) { listening(c); c.UnsafeNoFsync = false })
		s, err := Dial(b.Context(), Options{Endpoints: []string{m.address()}, Logger: silent})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		return s
	}
	for name, open := range map[string]func(*testing.B) *Store{"member": openBench, "server": openServer} {
		for _, n := range []int{10_000, 20_000, 40_000} {
			b.Run(fmt.Sprint(name, n), func(b *testing.B) {
				s := open(b)
				var ops []store.Op
				for i := range n {
					ops = append(ops, store.Op{Key: fmt.Sprintf("kind/%08d", i), Value: make([]byte, recordSize), Prev: store.Any})
				}
				var last store.Written
				var err error
				for b.Loop() {
					if last, err = s.Commit(b.Context(), last.Rev, requested(), ops); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkPut64(b *testing.B) {
	s := openBench(b)
	var n atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range 64 {
		wg.Go(func() {
			for n.Add(1) <= int64(b.N) {
				if _, err := s.Put(b.Context(), requested(), set(fmt.Sprintf("s/%d", w), recordSize)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{100_000, 200_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := openBench(b)
			fill(b, s, n)
			for b.Loop() {
				got := 0
				if _, err := s.Load(b.Context(), func(store.Record) error { got++; return nil }); err != nil || got != n {
					b.Fatal(got, err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	b.Run("fresh", func(b *testing.B) {
		for b.Loop() {
			s, err := Open(b.Context(), Options{Dir: filepath.Join(b.TempDir(), "data")})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			s.Close()
			b.StartTimer()
		}
	})
	b.Run("100000", func(b *testing.B) {
		dir := filepath.Join(b.TempDir(), "data")
		s, err := Open(b.Context(), Options{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		fill(b, s, 100_000)
		s.Close()
		for b.Loop() {
			s, err := Open(b.Context(), Options{Dir: dir})
			if err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			s.Close()
			b.StartTimer()
		}
	})
}
