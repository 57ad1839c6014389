package tunneler

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/client/sdk"
)

// updater is what is told how a host stands: its listener.
type updater interface {
	Update(cost uint16, precedence sdk.Precedence)
	Health(well bool)
}

// condition is how a host stands beside others, as its checks have it.
type condition struct {
	base   sdk.ListenOptions
	listen updater
	log    *slog.Logger

	mu         sync.Mutex
	cost       uint16
	precedence sdk.Precedence
	event      bool // one is to be sent
}

// change is what an action does to a condition.
type change func(c *condition)

// change understands an action.
func (a *actionRule) change() (change, error) {
	verb, amount, counted := strings.Cut(a.Action, " cost ")
	n, err := strconv.ParseUint(amount, 10, 16)
	switch {
	case a.Action == "mark healthy":
		return func(c *condition) { c.precedence = c.base.Precedence }, nil
	case a.Action == "mark unhealthy":
		return func(c *condition) { c.precedence = sdk.Failed }, nil
	case a.Action == "send event":
		return func(c *condition) { c.event = true }, nil
	case counted && err == nil && verb == "increase":
		return func(c *condition) { c.dearer(uint16(n)) }, nil
	case counted && err == nil && verb == "decrease":
		return func(c *condition) { c.cheaper(uint16(n)) }, nil
	}
	return nil, fmt.Errorf("a check has the action %q, which is none", a.Action)
}

// dearer raises the cost, unless it does not matter any more.
func (c *condition) dearer(n uint16) {
	if c.precedence != sdk.Failed {
		c.cost = uint16(min(int(c.cost)+int(n), math.MaxUint16))
	}
}

// cheaper lowers the cost, down to what it is for a host that is well.
func (c *condition) cheaper(n uint16) {
	c.cost = uint16(max(int(c.cost)-int(n), int(c.base.Cost)))
}

// check is one that runs.
type check struct {
	rule  *checkRule
	probe func(ctx context.Context) error
	now   func() time.Time

	last  atomic.Pointer[outcome]
	well  bool // how the last went
	count int  // of results like the last, in a row
	since time.Time
}

func newCheck(rule *checkRule, allow allowed, by net.Dialer, now func() time.Time) *check {
	dial := func(ctx context.Context, protocol, address string) (net.Conn, error) {
		return allow.dial(ctx, &by, protocol, address)
	}
	probe := rule.probePort
	if rule.URL != "" {
		probe = rule.probePage
	}
	return &check{rule: rule, now: now, probe: func(ctx context.Context) error { return probe(ctx, dial) }}
}

// outcome is how a check goes since a time.
type outcome struct {
	well  bool
	since time.Time
	err   error
}

// dialing connects to what is checked, if the host may.
type dialing func(ctx context.Context, protocol, address string) (net.Conn, error)

// run checks until ctx ends.
func (c *check) run(ctx context.Context, state *condition) {
	tick := time.NewTicker(time.Duration(c.rule.Interval))
	defer tick.Stop()
	for {
		probe, cancel := context.WithTimeout(ctx, time.Duration(c.rule.Timeout))
		err := c.probe(probe)
		cancel()
		if ctx.Err() != nil {
			return
		}
		c.result(err, state)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// result takes note of how a check went, and does what follows from it.
func (c *check) result(err error, state *condition) {
	now, well := c.now(), err == nil
	if changed := well != c.well || c.count == 0; changed {
		c.well, c.count, c.since = well, 0, now
		c.last.Store(&outcome{well, now, err})
		if !well {
			state.log.Warn("a check of health fails", "check", c.rule.name(), "error", err)
		} else {
			state.log.Info("a check of health passes", "check", c.rule.name())
		}
	}
	c.count++
	var due []change
	for _, a := range c.rule.Actions {
		if do, err := a.change(); err == nil && c.triggers(a, now) {
			due = append(due, do)
		}
	}
	state.apply(due, well)
}

// triggers reports whether an action is due after the last result.
func (c *check) triggers(a *actionRule, now time.Time) bool {
	switch {
	case a.Trigger == "fail" && c.well, a.Trigger == "pass" && !c.well, a.Trigger == "change" && c.count != 1:
		return false
	}
	return c.count >= a.ConsecutiveEvents && now.Sub(c.since) >= time.Duration(a.Duration)
}

// apply does what is due, and tells the network if anything is different then.
func (c *condition) apply(due []change, well bool) {
	c.mu.Lock()
	cost, precedence := c.cost, c.precedence
	for _, do := range due {
		do(c)
	}
	changed, event := cost != c.cost || precedence != c.precedence, c.event
	cost, precedence, c.event = c.cost, c.precedence, false
	c.mu.Unlock()
	if event {
		c.listen.Health(well)
	}
	if changed {
		c.listen.Update(cost, precedence)
	}
}

func (r *checkRule) name() string {
	if r.URL != "" {
		return r.URL
	}
	return r.Address
}

// probePort is well if somebody listens.
func (r *checkRule) probePort(ctx context.Context, dial dialing) error {
	conn, err := dial(ctx, "tcp", r.Address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// maxPage is how much of a page is looked at.
const maxPage = 1 << 20

// probePage is well if the page is as it should be.
func (r *checkRule) probePage(ctx context.Context, dial dialing) error {
	method, status := r.Method, r.ExpectStatus
	if method == "" {
		method = http.MethodGet
	}
	if status == 0 {
		status = http.StatusOK
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, strings.NewReader(r.Body))
	if err != nil {
		return err
	}
	// One connection a check: what answers on an old one may not take new ones.
	page := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	resp, err := page.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != status {
		return fmt.Errorf("it answers with status %d, not %d", resp.StatusCode, status)
	}
	if r.ExpectInBody == "" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), r.ExpectInBody) {
		return fmt.Errorf("%q is not in what it answers", r.ExpectInBody)
	}
	return nil
}
