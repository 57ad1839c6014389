package stream

import "time"

// Purse is memory that several ends share. An end asks it for what a message
// needs beyond its own windows, and gives that back.
type Purse interface {
	Take(bytes int) bool
	Give(bytes int)
}

// poorWait is how long a writer waits before it asks the purse again.
const poorWait = 100 * time.Millisecond

// excess is how much more than its windows the end would hold with so many bytes
// more that came in, or that are to be sent.
func (e *End) excess(in, out int) int {
	in += e.in.held + e.in.handed
	if e.in.parts != nil {
		in += cap(e.in.parts.data)
	}
	out += e.out.bytes
	for _, m := range e.early {
		out += len(m.Data)
	}
	return max(0, in-e.in.room-Window) + max(0, out-2*Window)
}

// afford reports whether the end may hold so many bytes more.
func (e *End) afford(in, out int) bool {
	if e.o.Purse == nil {
		return true
	}
	more := e.excess(in, out) - e.lent
	if more <= 0 {
		return true
	}
	if !e.o.Purse.Take(more) {
		return false
	}
	e.lent += more
	return true
}

// repay gives back what the end does not need any more.
func (e *End) repay() {
	if e.lent == 0 {
		return
	}
	if less := e.lent - e.excess(0, 0); less > 0 {
		e.lent -= less
		e.o.Purse.Give(less)
	}
}
