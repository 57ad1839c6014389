package control

import (
	"context"
	"sync"

	"netkeep.internal/internal/wire"
)

// Bounds of what is worked on for one router at a time: dials, of which each may
// wait for a host, and all else beside them, and the bytes of the frames that
// ask for it.
const (
	maxDials     = 512
	maxWork      = 512
	maxWorkBytes = 32 << 20
)

// work is what is worked on for a router.
type work struct {
	dials, other chan struct{}

	mu    sync.Mutex
	bytes int
	held  map[string]int // dials by identity
}

func (w *work) init() {
	w.dials, w.other = make(chan struct{}, maxDials), make(chan struct{}, maxWork)
	w.held = map[string]int{}
}

// hold counts the bytes of a frame; it reports false if there are too many.
func (w *work) hold(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes+n > maxWorkBytes {
		return false
	}
	w.bytes += n
	return true
}

func (w *work) release(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes -= n
}

// Go works on something that may wait. It reports false, and does nothing, if
// the router has too much going on already.
func (r *Router) Go(work func(ctx context.Context)) bool {
	return r.begin(r.work.other, 0, work)
}

// For is Go for what a frame asks for. The frame and what was read from it count
// until the work is done.
func (r *Router) For(f *wire.Frame, work func(ctx context.Context)) bool {
	return r.begin(r.work.other, f.Size(), work)
}

// ForDial is For when a host may have to be waited for. Of the frame only what
// an answer needs is kept.
func (r *Router) ForDial(f *wire.Frame, work func(ctx context.Context)) bool {
	size := f.Size()
	f.Body = nil
	return r.begin(r.work.dials, size, work)
}

func (r *Router) begin(slots chan struct{}, size int, work func(ctx context.Context)) bool {
	if !r.work.hold(size) {
		return false
	}
	select {
	case slots <- struct{}{}:
	default:
		r.work.release(size)
		return false
	}
	go func() {
		defer r.work.release(size)
		defer func() { <-slots }()
		work(r.Context())
	}()
	return true
}

// Share gives an identity a part in the dials of its router, until give is
// called. Nobody has more than is left to others, so that one who dials what
// never answers leaves room for the next.
func (r *Router) Share(identityID string) (give func(), ok bool) {
	w := &r.work
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[identityID] >= max(1, cap(w.dials)-len(w.dials)) {
		return nil, false
	}
	w.held[identityID]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.held[identityID]--; w.held[identityID] == 0 {
			delete(w.held, identityID)
		}
	}, true
}
