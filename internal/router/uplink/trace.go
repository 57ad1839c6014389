package uplink

import (
	"fmt"
	"regexp"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// noLinks is what is said of links: a router looks at nothing that passes it but for
// where it goes.
const noLinks = "this router tells of its connection to the controller that asks; what goes over its links it does not look into, also not to tell of it"

// onToggle begins to tell a controller of the frames of its own connection, or stops.
// What does not go out at once is not told: nothing else is to wait for it.
func (u *Uplink) onToggle(c *line, f *wire.Frame, m *message.TogglePipes) {
	apps, err := regexp.Compile(m.Apps)
	if err != nil {
		_ = c.Result(f, false, fmt.Sprintf("the expression for who is meant cannot be read: %v", err))
		return
	}
	pipes, err := regexp.Compile(m.Pipes)
	if err != nil {
		_ = c.Result(f, false, fmt.Sprintf("the expression for what is meant cannot be read: %v", err))
		return
	}
	if !apps.MatchString(u.opt.ID) || !pipes.MatchString(message.ControlPipe) {
		_ = c.Result(f, true, noLinks)
		return
	}
	if !m.Enable {
		c.Tap(nil)
		_ = c.Result(f, true, "")
		return
	}
	until := u.opt.Now().Add(channel.TraceTime)
	c.Tap(func(f *wire.Frame, in bool) {
		now := u.opt.Now()
		if now.After(until) {
			c.Tap(nil)
			return
		}
		one := channel.TraceOf(u.opt.ID, message.ControlPipe, now, f, in)
		c.Offer(&wire.Packet{Type: message.TypePipeTraced, Body: message.Marshal(&one)})
	})
	_ = c.Result(f, true, noLinks)
}
