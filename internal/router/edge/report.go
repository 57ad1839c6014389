package edge

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Why a client is cut off that reports too much: it does not wait for answers,
// and if a report were left out, what it said before would still be believed.
var (
	errLongReport  = fmt.Errorf("it reports more than %d bytes of its device", maxReport)
	errManyReports = errors.New("its identity's devices report faster than the controller hears of it")
)

// report takes what the client says of its device. The controller hears it in
// the order in which it was said.
func (c *client) report(body []byte) {
	if len(body) > maxReport {
		c.ch.Close(errLongReport)
		return
	}
	if !take(&c.of.reports, maxReports) {
		c.ch.Close(errManyReports)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unheard++; c.unheard == 1 {
		c.heard = make(chan struct{})
	}
	c.said++
	if c.news != nil {
		close(c.news)
		c.news = nil
	}
	if c.reports = append(c.reports, body); len(c.reports) == 1 {
		go c.passReports()
	}
}

// settle waits until the controller has heard what the client has reported: it judges a
// dial by that, and clients report and dial in one go. Who reports on and on waits alone. It
// returns how many reports there were.
func (c *client) settle(ctx context.Context) (said int) {
	c.mu.Lock()
	heard, said := c.heard, c.said
	c.mu.Unlock()
	if heard != nil {
		select {
		case <-heard:
		case <-ctx.Done():
		}
	}
	return said
}

// lateTime is how much later than a dial a report may come that was sent before it.
const lateTime = 500 * time.Millisecond

// reportsAfter reports whether the client has reported more than it had, or does so at once.
func (c *client) reportsAfter(ctx context.Context, said int) bool {
	c.mu.Lock()
	more := c.said > said
	if c.news == nil {
		c.news = make(chan struct{})
	}
	news := c.news
	c.mu.Unlock()
	if more {
		return true
	}
	select {
	case <-news:
		return true
	case <-time.After(lateTime):
	case <-ctx.Done():
	}
	return false
}

// passReports tells the controller of the reports until there is none. Each
// counts until it was dealt with.
func (c *client) passReports() {
	for more := true; more; {
		c.mu.Lock()
		first := c.reports[0]
		c.mu.Unlock()
		c.passReport(first)
		c.of.reports.Add(-1)
		c.mu.Lock()
		c.reports = c.reports[1:]
		more = len(c.reports) > 0
		c.mu.Unlock()
	}
}

// passReport tells the controller, which may have to write something, of one
// report of an identity at a time and of so many in a while.
func (c *client) passReport(body []byte) {
	c.of.reporting <- struct{}{}
	defer func() { <-c.of.reporting }()
	err := c.door.Controller.Report(c.ch.Context(), *c.token.Load(), body)
	if err != nil && c.ch.Err() == nil && !c.doubted {
		c.doubted = true
		c.log.Warn("what a client reports of its device was refused; further ones of this client are not mentioned", "reason", err)
	}
	c.mu.Lock()
	if c.unheard--; c.unheard == 0 {
		close(c.heard)
		c.heard = nil
	}
	c.mu.Unlock()
	select {
	case <-time.After(reportPause):
	case <-c.ch.Done():
	}
}
