package channel

import (
	"sync"
	"time"

	"netkeep.internal/internal/wire"
)

// item is one frame that waits: its bytes, or a packet that becomes bytes when
// it is written.
type item struct {
	bytes  []byte
	packet *wire.Packet
}

func (i item) size() int {
	if i.packet != nil {
		return i.packet.Size()
	}
	return len(i.bytes)
}

func (i item) append(dst []byte) []byte {
	if i.packet != nil {
		return i.packet.Append(dst)
	}
	return append(dst, i.bytes...)
}

// queue is the frames that wait to be sent, and the sign of life
// that the peer is owed.
type queue struct {
	waiting chan struct{} // has an element while there is something to send
	later   wire.Later    // sends what was put off

	mu      sync.Mutex
	most    int // bytes
	soft    int // bytes, for what is offered
	deep    int // bytes, for what is offered in lanes
	bytes   int // of frames
	frames  []item
	ahead   int           // bytes of first
	first   []item        // goes before frames
	lanes   lanes         // go after frames
	refused bool          // something was offered and not taken
	roomy   chan struct{} // closed when what is offered is taken again; nil if nobody waits
	empty   chan struct{} // closed when all was taken; nil if nobody waits
	stamp   uint64
	hasEcho bool

	purse   Purse // nil if what waits is nobody else's concern
	lent    int   // bytes of it
	writing int   // bytes that were taken and are being written
	over    bool
}

func (q *queue) init(o Options) {
	q.most, q.soft, q.deep, q.purse, q.waiting = o.Queue, o.Soft, o.Deep, o.Purse, make(chan struct{}, 1)
}

// poorWait is how long who was refused for want of memory waits: what is given
// back elsewhere is not told here.
const poorWait = 100 * time.Millisecond

// afford reports whether so many bytes more may wait.
func (q *queue) afford(size int) bool {
	if q.purse == nil {
		return true
	}
	if q.over {
		return false
	}
	more := q.excess(size) - q.lent
	if more <= 0 {
		return true
	}
	if !q.purse.Take(more) {
		q.refused = true
		time.AfterFunc(poorWait, q.wake)
		return false
	}
	q.lent += more
	return true
}

// excess is how much of what waits, and so many bytes more, is not the channel's
// own.
func (q *queue) excess(size int) int {
	return max(0, q.bytes+q.lanes.bytes+q.writing+size-q.soft)
}

// sent says that what was taken is written.
func (q *queue) sent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = 0
	if less := q.lent - q.excess(0); less > 0 {
		q.lent -= less
		q.purse.Give(less)
	}
}

// close gives everything back: nothing is sent any more.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	if q.lent > 0 {
		q.purse.Give(q.lent)
		q.lent = 0
	}
}

func (q *queue) wake() {
	select {
	case q.waiting <- struct{}{}:
	default: // woken already
	}
}

// add queues a frame, or says that there is no room.
func (q *queue) add(i item) error {
	size := i.size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes+q.lanes.bytes+q.ahead+size > q.most {
		return ErrFull
	}
	q.frames = append(q.frames, i)
	q.bytes += size
	q.wake()
	return nil
}

// offer queues a packet unless too much waits already.
func (q *queue) offer(p *wire.Packet) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes > q.soft {
		q.refused = true
		return false
	}
	i := item{packet: p}
	size := i.size()
	if !q.afford(size) {
		return false
	}
	q.frames = append(q.frames, i)
	q.bytes += size
	q.wakeFor(p)
	return true
}

// wakeFor has a packet sent, unless that is put off.
func (q *queue) wakeFor(p *wire.Packet) {
	if p.Batch == nil || !p.Batch.Put(q.later) {
		q.wake()
	}
}

// offerIn queues a packet of a lane unless too much waits already. A lane always
// has room for its share, whatever waits of others.
func (q *queue) offerIn(key []byte, p *wire.Packet) bool {
	i := item{packet: p}
	size := i.size()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lanes.bytes > q.deep && q.lanes.held(key)+size > q.deep/(len(q.lanes.turns)+1) {
		q.refused = true
		return false
	}
	if !q.afford(size) {
		return false
	}
	q.lanes.add(key, i, size)
	q.wakeFor(p)
	return true
}

// offerFirst queues a packet before all that are not offered so.
func (q *queue) offerFirst(p *wire.Packet) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ahead > q.soft {
		return false
	}
	q.first = append(q.first, item{packet: p})
	q.ahead += p.Size()
	q.wakeFor(p)
	return true
}

// room returns a channel that is closed when what is offered is taken.
func (q *queue) room() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes <= q.soft && q.lanes.bytes <= q.deep {
		return closed
	}
	if q.roomy == nil {
		q.roomy = make(chan struct{})
	}
	return q.roomy
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// chunk is how much is taken at a time: while it is written, more is queued.
const chunk = 256 << 10

// takeCalm is take for what is sent where packets are read: all of it, unless there is
// much, or somebody waits for room, who is told elsewhere.
func (q *queue) takeCalm() (taken []item, calm bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refused || q.bytes+q.lanes.bytes+q.ahead > chunk {
		return nil, false
	}
	taken, _ = q.next()
	return taken, true
}

// take returns frames to send, in order, and whether there is room now for what
// was refused before.
func (q *queue) take() (taken []item, room bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next()
}

func (q *queue) next() (taken []item, room bool) {
	waited := q.bytes + q.lanes.bytes
	defer func() { q.writing += waited - q.bytes - q.lanes.bytes }()
	var size int
	taken, q.first, size = move(nil, q.first, chunk)
	q.ahead -= size
	if left := chunk - size; len(q.first) == 0 {
		taken, q.frames, size = move(taken, q.frames, left)
		q.bytes -= size
		if left -= size; len(q.frames) == 0 {
			taken = q.lanes.take(taken, left)
		}
	}
	// One who sends much is told when there is much room; among several, others
	// would have taken it by then.
	less := 2
	if len(q.lanes.turns) > 1 {
		less = 1
	}
	if q.bytes <= q.soft/less && q.lanes.bytes <= q.deep/less {
		room, q.refused = q.refused, false
		if q.roomy != nil {
			close(q.roomy)
			q.roomy = nil
		}
	}
	if q.any() {
		q.wake()
		return taken, room
	}
	if q.empty != nil {
		close(q.empty)
		q.empty = nil
	}
	return taken, room
}

// any reports whether anything waits.
func (q *queue) any() bool { return len(q.first)+len(q.frames)+len(q.lanes.turns) > 0 }

// move takes items of at most so many bytes from the beginning of a list to the
// end of another, and says how many bytes they have. A single one may have more,
// if there is any room at all.
func move(to, from []item, most int) (moved, rest []item, size int) {
	n := 0
	for n < len(from) && size < most {
		next := from[n].size()
		if n > 0 && size+next > most {
			break
		}
		size += next
		n++
	}
	switch {
	case n == 0:
		return to, from, 0
	case len(to) == 0:
		to = from[:n:n]
	default:
		to = append(to, from[:n]...)
	}
	if n == len(from) {
		return to, nil, size // what comes next needs no memory of what was
	}
	return to, from[n:], size
}

// drained returns a channel that is closed when nothing waits any more, or nil
// if that is so now.
func (q *queue) drained() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.any() {
		return nil
	}
	if q.empty == nil {
		q.empty = make(chan struct{})
	}
	return q.empty
}

// echo notes that the peer asked for a sign of life. Of several only the last
// is answered, so that asking costs nothing.
func (q *queue) echo(stamp uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stamp, q.hasEcho = stamp, true
	q.wake()
}

func (q *queue) takeEcho() (stamp uint64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ok = q.hasEcho
	q.hasEcho = false
	return q.stamp, ok
}
