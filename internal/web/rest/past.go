package rest

import (
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
)

// AtParam asks for the network as it was. Operations that declare it see a snapshot
// of then, and their callers are who they are now.
var AtParam = TextParam("at", "Time, as in 2026-01-31T08:00:00Z, or number of an audit entry: answer with the network as it was then, or after all that was written with the entry. What comes and goes with use is as if nobody had been connected, and what entries withhold is empty. A time to come is as far as it is decided now: what begins and ends by itself until then has. The present if not given.")

const atName = "at"

// Past reports whether the request is about the network as it was.
func (c *Call) Past() bool { return c.past }

// refusePast refuses a request about the past to an operation that knows only the
// present: an answer would be taken for one about the past.
func (c *Call) refusePast() error {
	if c.api.Past == nil || slices.Contains(c.op.Params, Parameter(AtParam)) || !strings.Contains(c.request.URL.RawQuery, atName+"=") {
		return nil
	}
	if query := c.request.URL.Query(); query.Has(atName) {
		return fault.Invalid(atName, "is only for records whose changes leave audit entries: nothing is known of this in the past", shorten(query.Get(atName)))
	}
	return nil
}

// lookBack has a request that asks for it see the network as it was.
func (c *Call) lookBack() error {
	if c.api.Past == nil || !slices.Contains(c.op.Params, Parameter(AtParam)) {
		return nil
	}
	at := AtParam.Of(c)
	if at == "" {
		return nil
	}
	snap, err := c.api.Past(c.Context(), at)
	if err != nil {
		return err
	}
	c.Snap, c.past = snap, true
	return nil
}
