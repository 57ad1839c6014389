package edge

import (
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
	if c.reports = append(c.reports, body); len(c.reports) == 1 {
		go c.passReports()
	}
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
	select {
	case <-time.After(reportPause):
	case <-c.ch.Done():
	}
}
