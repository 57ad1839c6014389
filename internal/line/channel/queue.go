package channel

import "sync"

// queue is the frames that wait to be sent, as bytes, and the sign of life
// that the peer is owed.
type queue struct {
	waiting chan struct{} // has an element while there is something to send

	mu      sync.Mutex
	most    int // bytes
	bytes   int
	frames  [][]byte
	empty   chan struct{} // closed when all was taken; nil if nobody waits
	stamp   uint64
	hasEcho bool
}

func (q *queue) init(most int) {
	q.most, q.waiting = most, make(chan struct{}, 1)
}

func (q *queue) wake() {
	select {
	case q.waiting <- struct{}{}:
	default: // woken already
	}
}

// add queues a frame, or says that there is no room.
func (q *queue) add(frame []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes+len(frame) > q.most {
		return ErrFull
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.wake()
	return nil
}

// chunk is how much is taken at a time: while it is written, more is queued.
const chunk = 256 << 10

// take returns frames to send, in order.
func (q *queue) take() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.frames) && (n == 0 || size+len(q.frames[n]) <= chunk) {
		size += len(q.frames[n])
		n++
	}
	taken := q.frames[:n:n]
	q.bytes -= size
	if q.frames = q.frames[n:]; len(q.frames) > 0 {
		q.wake()
		return taken
	}
	q.frames = nil
	if q.empty != nil {
		close(q.empty)
		q.empty = nil
	}
	return taken
}

// drained returns a channel that is closed when nothing waits any more, or nil
// if that is so now.
func (q *queue) drained() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
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
