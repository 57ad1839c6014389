package sdk

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/remote"
)

const (
	// askEvery is how often one asks whether services changed though the controller
	// tells.
	askEvery = time.Minute
	// offerAgain is how long one goes without being told by a controller that does not
	// know how to, or has no room for more; jitter spreads who does.
	offerAgain = 2 * time.Minute
)

// updates is what the controller tells of changes as they happen, where it does that.
type updates struct {
	news chan struct{} // has one if there is something to look at
	live atomic.Bool
	told atomic.Pointer[string] // when something last changed, as the controller says it

	asked time.Time // when one last did; of the goroutine that follows
}

func (u *updates) nudge() {
	select {
	case u.news <- struct{}{}:
	default:
	}
}

// listenForUpdates has the controller tell when services change, until the client is
// closed. Whichever controller answers will do: all tell the same.
func (c *Client) listenForUpdates() {
	u := &c.updates
	for c.over.Err() == nil {
		err := c.api.updates(c.over, func() { u.live.Store(true) }, func(change string) {
			u.told.Store(&change)
			if change != c.known().change {
				u.nudge()
			}
		})
		if u.live.Swap(false) {
			u.nudge() // what became of the controller is for who asks to find out
		}
		again := min(c.opt.Poll, poll)
		if refused(err) {
			again = offerAgain
		}
		if !c.pause(again) {
			return
		}
	}
}

// refused reports whether a controller does not tell of changes, or not now.
func refused(err error) bool {
	e, said := errors.AsType[*remote.Error](err)
	return errors.Is(err, remote.ErrNoStream) || said && e.Status != http.StatusUnauthorized
}

// updates has told called with when something last changed for the identity, at once
// and whenever that is another time, until the controller ends it.
func (a *api) updates(ctx context.Context, begun func(), told func(change string)) error {
	return a.again(ctx, func() error {
		r := remote.Request{Method: http.MethodGet, Path: a.path("/current-api-session/service-updates/stream")}
		return a.remote().Stream(ctx, r, begun, func(e remote.Event) error {
			var data struct {
				LastChangeAt string `json:"lastChangeAt"`
			}
			if e.Name != "service-updates" {
				return nil
			}
			if err := json.Unmarshal(e.Data, &data); err != nil {
				return err
			}
			told(data.LastChangeAt)
			return nil
		})
	})
}

// keepUp takes up what changed. It asks unless the controller tells.
func (c *Client) keepUp(ctx context.Context) error {
	u, now := &c.updates, c.opt.Now()
	told := u.told.Load()
	since := now.Sub(u.asked)
	if u.live.Load() && told != nil && *told == c.known().change && since >= 0 && since < askEvery {
		return nil
	}
	u.asked = now
	return c.catchUp(ctx)
}

// awaitNews waits about so long, or until there is something to look at; it reports
// false when the client is closed.
func (c *Client) awaitNews(about time.Duration) bool {
	t := time.NewTimer(jitter(about))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.updates.news:
	case <-c.over.Done():
		return false
	}
	return c.over.Err() == nil
}
