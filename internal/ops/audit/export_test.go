package audit

import "context"

// Held is how many facts it holds that are not alike.
func (r *Recorder) Held() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.shelves {
		n += len(s.held)
	}
	return n
}

// Catch is what Follow does at every interval.
func (l *Log) Catch(ctx context.Context) error {
	head := Head(l.State.Snapshot())
	return l.reach(ctx, head, head.Unpacked-1)
}
