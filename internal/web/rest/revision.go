package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/ops/limit"
)

// revisionHeader is how far the log was that an answer knows of. A request that
// sends it back is answered by who knows as much, whichever controller it is.
const revisionHeader = "netkeep-revision"

// behindTime is how long a request waits for what another controller has written.
const behindTime = 2 * time.Second

// Shared is what an API needs whose state others write to as well.
type Shared struct {
	// Looks are at what the store has now.
	Looks *state.Looks
	// Waits is how many requests may wait for that.
	Waits *limit.Slots
}

var (
	errBehind = fault.New(fault.CodeUnavailable, "this controller does not have yet what the client has seen at another, and nothing was done; try again, or ask another controller")
	errBlind  = fault.New(fault.CodeUnavailable, "this controller cannot find out at present whether another has what was asked for; try again, or ask another controller")
)

// tellRevision says in the answer how far the log is, as far as is known here. Who
// is turned away as nobody is not told: what was written for the sake of a name
// tells that there is one.
func (c *Call) tellRevision(status int) {
	if c.Caller == nil && status >= http.StatusBadRequest {
		return
	}
	c.w.Header().Set(revisionHeader, strconv.FormatInt(int64(c.State.Snapshot().Rev), 10))
}

// seen is how far the log was that the client knows of.
func (c *Call) seen() (state.Rev, error) {
	values := c.request.Header.Values(revisionHeader)
	if len(values) == 0 {
		return 0, nil
	}
	rev, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || rev < 0 || len(values) > 1 {
		return 0, fault.Invalid(revisionHeader, "must be the number that an answer had in this header", shorten(values[0]))
	}
	return state.Rev(rev), nil
}

// catchUp waits until what the client has seen is known here too.
func (a *API) catchUp(c *Call) error {
	rev, err := c.seen()
	if err != nil || a.State.Snapshot().Rev >= rev {
		return err
	}
	if a.Shared != nil { // else nobody else can have written it
		behind := c.await(func(ctx context.Context) error {
			_, err := a.State.Since(ctx, rev)
			return err
		}, errBehind)
		if behind == nil {
			return nil
		}
		snap, err := c.current()
		switch {
		case err != nil:
			return behind
		case snap.Rev >= rev:
			return nil
		}
	}
	return fault.Invalid(revisionHeader, "is of another store, or of one that was put in the place of this one: leave the header out", int64(rev))
}

// await bounds how long a request waits for others, and how many do.
func (c *Call) await(what func(context.Context) error, failed error) error {
	party := limit.At(c.From())
	if c.api.Shared.Waits.Take(party) != nil {
		return errBusy
	}
	defer c.api.Shared.Waits.Leave(party)
	ctx, cancel := context.WithTimeout(c.Context(), behindTime)
	defer cancel()
	if what(ctx) != nil {
		return failed
	}
	return nil
}

// current is all that the store has now.
func (c *Call) current() (snap *state.Snapshot, err error) {
	err = c.await(func(ctx context.Context) (err error) {
		snap, err = c.api.Shared.Looks.Current(ctx)
		return err
	}, errBlind)
	return snap, err
}

// LookAgain has the request see all that the store has now. It is for what must
// not be said by who may be behind: that something is not there which a client got
// from another controller a moment ago. It reports whether there is more to see.
func (c *Call) LookAgain() (more bool, err error) {
	if c.api.Shared == nil {
		return false, nil
	}
	snap, err := c.current()
	if err != nil {
		return false, err
	}
	more = snap.Rev > c.Snap.Rev
	snap = c.api.timely(snap)
	c.Snap = snap
	if c.present != nil { // who is known by what was seen just now is judged by it too
		c.present = snap
	}
	return more, nil
}

// Latest is what there is by now, and by the clock. It is for what follows a write, and
// for streams, which keep no snapshot.
func (c *Call) Latest() *state.Snapshot { return c.api.timely(c.State.Snapshot()) }

// View is a snapshot as it is now by the clock. It may be one that is being written.
func (c *Call) View(snap *state.Snapshot) *state.Snapshot { return c.api.timely(snap) }

func (a *API) timely(snap *state.Snapshot) *state.Snapshot {
	if a.Timely == nil {
		return snap
	}
	return a.Timely(snap)
}

// Open reports whether the operation is open to strangers.
func (c *Call) Open() bool { return c.op.Auth == Anonymous }
