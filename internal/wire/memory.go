package wire

import (
	"sync"
	"sync/atomic"
)

// Memory is a hold on the bytes that a packet was read into, which are used again
// when nobody has one any more. Whoever has a hold lets go of it once, with
// [Memory.Release] or by handing it on; a hold that is forgotten costs what any
// memory does that is not used again. The zero Memory holds nothing.
type Memory struct{ of *piece }

// piece is bytes of which several may have a part.
type piece struct {
	bytes []byte
	holds atomic.Int32
	pool  *sync.Pool
}

// sizes are those of pieces. What is read is in the smallest that it fits in, which
// it fills to at least three quarters: so what waits for somebody who takes nothing
// costs little more than it says. Those a little beyond a power of two are for what
// programs read at once, with its headers. What is smaller costs less without.
var sizes = [...]int{
	1152, 1536, 2048, 2560, 3328, 4352, 5632, 7168, 8704, 11264, 12800, 16896, 22016, 26624, 33280, 43008, 52224, 66560, step,
}

const leastPiece = 864 // three quarters of the smallest size

var pools [len(sizes)]sync.Pool

// pooled returns a piece for so many bytes, nil if they are better off in memory of
// their own.
func pooled(size int) *piece {
	if size < leastPiece || size > step {
		return nil
	}
	i := 0
	for sizes[i] < size {
		i++
	}
	m, _ := pools[i].Get().(*piece)
	if m == nil {
		m = &piece{bytes: make([]byte, sizes[i]), pool: &pools[i]}
	}
	m.holds.Store(1)
	return m
}

// More returns a further hold of the same. Only who has one may ask for it.
func (m Memory) More() Memory {
	if m.of != nil {
		m.of.holds.Add(1)
	}
	return m
}

// Release lets go of a hold.
func (m Memory) Release() {
	if m.of == nil {
		return
	}
	switch left := m.of.holds.Add(-1); {
	case left < 0:
		panic("wire: memory was released more often than it was held")
	case left == 0:
		if poisons {
			m.of.poison()
		}
		m.of.pool.Put(m.of)
	}
}

// poisoned is what is in memory that nobody has a hold of, where that is overwritten:
// who looks at it even so does not find what it expects.
const poisoned = 0xdb

func (p *piece) poison() {
	for i := range p.bytes {
		p.bytes[i] = poisoned
	}
}

// Release lets go of the memory that the packet is in: neither it nor anything in it
// is looked at afterwards.
func (p *Packet) Release() {
	p.Memory.Release()
	p.Block, p.Body, p.Memory = nil, nil, Memory{}
}
