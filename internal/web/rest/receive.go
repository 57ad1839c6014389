package rest

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/ops/limit"
)

// hurry bounds how long a body may arrive that nobody has asked for yet: a
// connection is not to be held by a request that is refused.
func (c *Call) hurry() {
	if c.request.ContentLength != 0 {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(c.api.StrangerPace.First))
	}
}

// receive takes the whole body, which the cap of the operation bounds. One that
// the operation does not want is taken too: the connection would wait for it
// before the answer goes out.
func (c *Call) receive() error {
	r := c.request
	if r.ContentLength == 0 {
		return nil
	}
	pace := c.api.Pace
	if c.Caller == nil {
		pace = c.api.StrangerPace
	}
	from := limit.Source{
		Reader: http.MaxBytesReader(c.w, r.Body, c.op.MaxBody),
		Size:   r.ContentLength,
		Until:  http.NewResponseController(c.w).SetReadDeadline,
	}
	bodies := c.api.Bodies
	if c.op.Bodies != nil {
		bodies = c.op.Bodies
	}
	data, release, err := bodies.Read(c.Party(), from, c.op.MaxBody, pace)
	if err != nil {
		return c.unreadable(err)
	}
	c.sent = data
	c.release = append(c.release, release)
	return nil
}

// unreadable says why a body could not be taken.
func (c *Call) unreadable(err error) error {
	switch {
	case errors.Is(err, limit.ErrFull):
		return errBusy
	case errors.Is(err, limit.ErrShare):
		return errGreedy
	case errors.Is(err, limit.ErrSlow):
		return fault.New(fault.CodeBodyTooSlow, "the body did not arrive in time; send it at once")
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return c.tooLarge()
	}
	return fault.Wrap(fault.CodeBody, err)
}

func (c *Call) tooLarge() error {
	return fault.New(fault.CodeBodyTooLarge, fmt.Sprintf("the body is larger than %d bytes", c.op.MaxBody))
}

// enter takes a slot to work in.
func (c *Call) enter() error {
	party := c.Party()
	switch err := c.api.Requests.Take(party); {
	case errors.Is(err, limit.ErrShare):
		return errGreedy
	case err != nil:
		return errBusy
	}
	over := limit.Work(c.Context())
	c.release = append(c.release, func() {
		over()
		c.api.Requests.Leave(party)
	})
	return nil
}

// letGo gives back what the request holds.
func (c *Call) letGo() {
	for _, release := range c.release {
		release()
	}
	c.release, c.sent, c.input, c.parts = nil, nil, nil, nil
}

// atOnce is how much of an answer is sent without waiting for the client.
const atOnce = 2 << 10

// leave is the end of the work on a request: what is left is to send an answer
// of a size, for which the client may take its time. Nobody else waits for it,
// but the memory that such answers take is bounded.
func (c *Call) leave(size int) (sent func(), err error) {
	c.letGo()
	if size <= atOnce {
		return func() {}, nil
	}
	return c.api.Answers.Hold(c.Party(), size, http.NewResponseController(c.w).SetWriteDeadline)
}

var (
	// errBusy says that there is more to do than can be done.
	errBusy = fault.New(fault.CodeUnavailable, "the controller is busy; try again")
	// errGreedy says the same to somebody whose own doing it is.
	errGreedy = fault.Later("there are too many requests at a time from this address or identity; wait for some to be answered", 0)
)
