package stream

import "sync/atomic"

// Pool is memory that the windows of several ends share, of what is sent and is not
// acknowledged and of what has come and is not taken. Each end may have half of what is
// left of it, and Least in any case: one that is busy alone has all of its window, many
// have about the same each, and those that carry nothing count for nothing.
type Pool struct {
	Size, Least int

	used atomic.Int64
}

// settle says what the end holds, and learns what it may hold from now on.
func (e *End) settle() {
	e.repay()
	pool := e.o.Pool
	if pool == nil {
		return
	}
	holds := 0
	if e.phase == living { // what is left after that is on its way out
		holds = e.out.bytes + e.in.held
	}
	used := pool.used.Add(int64(holds - e.holds))
	e.holds = holds
	share := max(pool.Least, (pool.Size-int(used))/2)
	e.out.most = min(e.o.Window, share)
	e.out.window = min(e.out.window, e.out.most)
	e.in.share = min(e.o.Buffer, share)
}
