package sdk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/wire/message"
)

// A controller of several that is gone is stood in for within seconds. Until then
// a router of others leaves dials unanswered that only that controller could have
// answered, or refuses them without saying why; one of ours asks another.
const (
	// silentTime is how long a dial may be without an answer before another is made
	// beside it.
	silentTime = 3 * time.Second
	// passTime is how long a dial is repeated that may have failed because of what
	// passes.
	passTime = 7 * time.Second
	// mostDials is how many there are of one.
	mostDials = 6
	// nextPause is how long to wait before the first that is repeated; each further
	// time it is twice as long.
	nextPause = 200 * time.Millisecond
)

// passing reports whether a dial may have failed for a reason that passes. A router
// of others gives none, whatever it is.
func passing(err error) bool {
	if r, refused := errors.AsType[*message.Refusal](err); refused {
		return !r.Hosted && (r.Code == 0 || r.Retry == message.RetryTooBusy)
	}
	if e, answered := errors.AsType[*remote.Error](err); answered {
		return e.Status == http.StatusServiceUnavailable
	}
	return errors.Is(err, remote.ErrUnreachable) || errors.Is(err, ErrNoRouter) && !errors.Is(err, errUnserved)
}

// persist dials, again if that fails for a reason that may pass, and once more
// beside the first if nobody answers that. What is made twice is closed.
func persist[C io.Closer](ctx context.Context, dial func(context.Context) (C, error)) (C, error) {
	type outcome struct {
		conn C
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	came, made, open := make(chan outcome, mostDials), 0, 0
	silent := time.NewTimer(silentTime)
	defer silent.Stop()
	more := func() {
		made, open = made+1, open+1
		silent.Reset(silentTime)
		go func() {
			conn, err := dial(ctx)
			came <- outcome{conn, err}
		}()
	}
	defer func() {
		cancel()
		go func() {
			for range open {
				if late := <-came; late.err == nil {
					_ = late.conn.Close()
				}
			}
		}()
	}()
	more()
	late, pause := time.After(passTime), nextPause
	var again <-chan time.Time
	for passed := false; ; {
		select {
		case o := <-came:
			open--
			switch {
			case o.err == nil || !passing(o.err) || ctx.Err() != nil || open == 0 && (passed || made == mostDials):
				return o.conn, o.err
			case !passed && again == nil && made < mostDials:
				again = time.After(pause)
				pause *= 2
			}
		case <-again:
			again = nil
			more()
		case <-silent.C:
			if !passed && again == nil && made < mostDials {
				more()
			}
		case <-late:
			passed = true
		}
	}
}
