package tunneler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/status"
)

// place is one endpoint of one service.
type place struct {
	service string // its id
	number  int
}

// hosted is an endpoint that is hosted.
type hosted struct {
	t        *Tunneler
	c        *sdk.Client
	service  *sdk.Service
	endpoint *endpoint
	options  sdk.ListenOptions
	mark     string // by which a change is seen
	free     slots
	shares   shares
	said     complaints
	pace     pace
	allow    allowed
	denied   atomic.Int64 // dials that allow has refused
	tally    status.Tally
	listen   atomic.Pointer[sdk.Listener]
	tests    atomic.Pointer[[]*check]
	log      *slog.Logger

	stop context.CancelFunc
}

// host hosts whatever an identity may host, and follows what that is. What is
// connected goes on when a service is hosted otherwise, or ctx ends.
func (t *Tunneler) host(ctx context.Context, c *sdk.Client) {
	running := map[place]*hosted{}
	var all sync.WaitGroup
	defer all.Wait()
	var said complaints
	for {
		services, changed := c.Services()
		h, err := c.Hosting(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			t.log.Warn("how the identity hosts is not known; it is asked again", "identity", c.Name(), "error", err)
			if !pause(ctx, lastPause) {
				return
			}
			continue
		}
		wanted := t.wanted(c, services, h, &said)
		if len(wanted) == 0 && t.interceptor == nil && said.fresh("nothing", t.opt.Now()) {
			t.log.Warn("the identity may host no service that leads anywhere: give it a service policy of type Bind for one with a configuration of type host.v1", "identity", c.Name())
		}
		for at, old := range running {
			if w := wanted[at]; w == nil || w.mark != old.mark {
				old.log.Info("a service is not hosted any more")
				old.stop()
				delete(running, at)
			}
		}
		for at, w := range wanted {
			if running[at] != nil {
				continue
			}
			running[at] = w
			var own context.Context
			own, w.stop = context.WithCancel(ctx)
			all.Go(func() {
				defer t.roll.enter(w)()
				w.run(own)
			})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// wanted is what an identity should host now.
func (t *Tunneler) wanted(c *sdk.Client, services []*sdk.Service, h *sdk.Hosting, said *complaints) map[place]*hosted {
	wanted := map[place]*hosted{}
	for _, s := range services {
		if !s.Bind {
			continue
		}
		list, err := endpoints(s)
		for i, e := range list {
			if err == nil {
				err = e.check()
			}
			if err != nil {
				break
			}
			wanted[place{s.ID, i}] = t.newHosted(c, s, e, e.listen(c.Name(), s.ID, h))
		}
		if err != nil && said.fresh(s.Name+err.Error(), t.opt.Now()) {
			t.log.Error("a service cannot be hosted; mend its configuration", "service", s.Name, "error", err)
		}
	}
	return wanted
}

func (t *Tunneler) newHosted(c *sdk.Client, s *sdk.Service, e *endpoint, o sdk.ListenOptions) *hosted {
	most, share := maxConnections, maxShare
	if n := e.ListenOptions.MaxConnections; n > 0 {
		most = min(most, n)
		share = most
	}
	mark, _ := json.Marshal([]any{s.Name, s.Encrypted, e, o}, json.Deterministic(true))
	return &hosted{
		t: t, c: c, service: s, endpoint: e, options: o, mark: string(mark), free: make(slots, most), shares: shares{most: share},
		allow: t.opt.Allow,
		log:   t.log.With("service", s.Name, "identity", c.Name()),
	}
}

// run hosts the endpoint until ctx ends.
func (h *hosted) run(ctx context.Context) {
	l, err := h.c.Listen(ctx, h.service.Name, h.options)
	if err != nil {
		if ctx.Err() == nil {
			h.log.Error("a service cannot be hosted", "error", err)
		}
		return
	}
	defer l.Close()
	h.listen.Store(l)
	defer func() {
		if n := h.denied.Load(); n > 0 {
			h.log.Warn("targets were refused that --allow does not list", "dials", n)
		}
	}()
	context.AfterFunc(ctx, func() { _ = l.Close() })
	state := &condition{base: h.options, cost: h.options.Cost, precedence: h.options.Precedence, listen: l, log: h.log}
	var all sync.WaitGroup
	defer all.Wait()
	var tests []*check
	for _, rule := range h.endpoint.checks() {
		tests = append(tests, newCheck(rule, h.allow, h.t.plain(), h.t.opt.Now))
	}
	h.tests.Store(&tests)
	for _, c := range tests {
		all.Go(func() { c.run(ctx, state) })
	}
	for {
		p, err := l.AcceptPending()
		if err != nil {
			return
		}
		dialer := p.Info().Dialer
		if !h.free.take() {
			h.refuse(p, "as many connections as may be are open", nil)
			continue
		}
		if !h.shares.take(dialer) {
			h.free.give()
			h.refuse(p, "the dialer has as many connections open as one may have", nil)
			continue
		}
		all.Go(func() {
			defer h.shares.give(dialer)
			defer h.free.give()
			h.serve(ctx, p)
		})
	}
}

// serve connects one dialer with the server. Datagrams have no end that could be
// waited for: what carries them ends with ctx.
func (h *hosted) serve(ctx context.Context, p *sdk.Pending) {
	to, err := h.endpoint.target(readWish(p.Info().Data))
	if err != nil {
		h.refuse(p, err.Error(), nil)
		return
	}
	dialing, cancel := context.WithTimeout(h.t.life, h.endpoint.connectTime())
	server, err := h.allow.dial(dialing, to.dialer(h.t.plain()), to.protocol, to.address)
	cancel()
	if errors.Is(err, errNotAllowed) {
		h.deny(p, to)
		return
	}
	if why := to.unusable(err); why != "" {
		h.refuse(p, why, nil)
		return
	}
	if err != nil {
		// The dialer need not know where the service leads to.
		h.refuse(p, "the server behind the service cannot be reached", err)
		return
	}
	conn, err := p.Accept()
	if err != nil {
		_ = server.Close()
		return
	}
	h.log.Debug("connected", "from", conn.RemoteAddr().String(), "to", to.address)
	if to.protocol == "udp" {
		joinDatagrams(ctx, h.t.count(&h.tally, conn), server, h.t.opt.UDPIdle)
		return
	}
	h.t.join(h.t.count(&h.tally, conn), server)
}

// deny refuses a dial that would lead to where this host may not reach. The log
// is told of the first, and at the end of how many there were.
func (h *hosted) deny(p *sdk.Pending, to target) {
	const why = "the host may not reach where this leads to: its own list of targets (--allow) does not have it"
	if e := h.endpoint; e.ForwardAddress || e.ForwardPort || e.ForwardProtocol {
		p.Refuse(why) // the dialer has chosen it
	} else {
		p.Fail(why)
	}
	if h.denied.Add(1) == 1 {
		h.log.Warn("a target was refused that --allow does not list; it is not said again, and counted", "from", p.Info().Who(), "target", to.address, "protocol", to.protocol)
	}
}

// refuse tells a dialer why it is not connected, and the log once a while.
func (h *hosted) refuse(p *sdk.Pending, why string, err error) {
	text := why
	if err != nil {
		p.Fail(why) // nobody would be served
		text = fmt.Sprintf("%s: %v", why, err)
	} else {
		p.Refuse(why)
	}
	// A dialer chooses the words that it is refused with.
	text = text[:min(len(text), maxText)]
	if now := h.t.opt.Now(); h.said.fresh(text, now) && h.pace.take(now) {
		h.log.Warn("a dial was refused", "from", p.Info().Who(), "reason", text)
	}
}
