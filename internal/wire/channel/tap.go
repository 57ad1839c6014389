package channel

import "netkeep.internal/internal/wire"

// Tap is told of the frames that come and go over a channel. It must be quick, and not
// send over it what it would be told of. It is not told of what Packet takes and of what
// is offered: what carries much is not looked at.
type Tap func(f *wire.Frame, in bool)

// Tap has somebody told of its frames in place of whoever was; nil is nobody. It reports
// whether anybody was.
func (c *Channel) Tap(tap Tap) (was bool) {
	if tap == nil {
		return c.tap.Swap(nil) != nil
	}
	return c.tap.Swap(&tap) != nil
}

// tapped tells of a frame.
func (c *Channel) tapped(f *wire.Frame, in bool) {
	if tap := c.tap.Load(); tap != nil {
		(*tap)(f, in)
	}
}
