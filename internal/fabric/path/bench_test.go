package path

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// sizes are numbers of routers; there are ten times as many links.
var sizes = []int{10, 100, 1000, 5000}

// mesh is a network to measure in.
type mesh struct {
	*Graph
	random  *rand.Rand
	routers []string
	// sources are the routers that paths are asked from: a thousand at most.
	sources []string
	links   []Link
}

// newMesh joins routers at random, with latencies of up to 100 ms at each end.
func newMesh(size int) *mesh {
	m := &mesh{Graph: New(), random: rand.New(rand.NewPCG(1, uint64(size)))}
	for i := range size {
		m.routers = append(m.routers, fmt.Sprintf("router-%05d", i))
		m.SetRouter(m.routers[i], Router{})
	}
	m.sources = m.routers[:min(size, 1000)]
	for i := range size * 10 {
		l := Link{fmt.Sprintf("link-%06d", i), m.any(m.routers), m.any(m.routers), m.latency()}
		m.links = append(m.links, l)
		m.SetLink(l)
	}
	return m
}

func (m *mesh) any(ids []string) string { return ids[m.random.IntN(len(ids))] }

func (m *mesh) latency() int64 { return 1 + 2*m.random.Int64N(100) }

// change gives some link another latency.
func (m *mesh) change() {
	l := m.links[m.random.IntN(len(m.links))]
	l.Cost = m.latency()
	m.SetLink(l)
}

// askAll asks once from each source, so that all trees are up to date.
func (m *mesh) askAll() {
	for _, from := range m.sources {
		m.Cost(from, m.routers[0])
	}
}

// meshes are made once for all benchmarks.
var meshes = map[int]*mesh{}

// each runs a benchmark for each size of network.
func each(b *testing.B, f func(b *testing.B, m *mesh)) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m := meshes[size]
			if m == nil {
				m = newMesh(size)
				meshes[size] = m
			}
			m.askAll()
			b.ReportAllocs()
			b.ResetTimer()
			f(b, m)
		})
	}
}

// BenchmarkBetween asks for paths while one link in a hundred paths changes:
// what a circuit pays for its path.
func BenchmarkBetween(b *testing.B) {
	each(b, func(b *testing.B, m *mesh) {
		for i := range b.N {
			if i%100 == 0 {
				m.change()
			}
			m.Between(m.any(m.sources), m.any(m.routers))
		}
	})
}

// BenchmarkStill asks for paths while nothing changes.
func BenchmarkStill(b *testing.B) {
	each(b, func(b *testing.B, m *mesh) {
		for range b.N {
			m.Between(m.any(m.sources), m.any(m.routers))
		}
	})
}

// BenchmarkChange changes a link, which is all that who changes it waits for.
func BenchmarkChange(b *testing.B) {
	each(b, func(b *testing.B, m *mesh) {
		for range b.N {
			m.change()
		}
	})
}

// BenchmarkChangeAll changes a link and has all trees catch up with that.
func BenchmarkChangeAll(b *testing.B) {
	each(b, func(b *testing.B, m *mesh) {
		for range b.N {
			m.change()
			m.askAll()
		}
	})
}

// BenchmarkReturn has a router go and come back, and all trees catch up with
// each.
func BenchmarkReturn(b *testing.B) {
	each(b, func(b *testing.B, m *mesh) {
		for range b.N {
			id := m.any(m.routers)
			m.RemoveRouter(id)
			m.askAll()
			m.SetRouter(id, Router{})
			m.askAll()
		}
	})
}

// BenchmarkBuild makes a tree from nothing: what the first path from a router
// takes, and the next one after its tree was forgotten.
func BenchmarkBuild(b *testing.B) {
	each(b, func(b *testing.B, m *mesh) {
		w, t := &workshop{}, &tree{}
		for range b.N {
			t.build(&m.net, w)
		}
	})
}
