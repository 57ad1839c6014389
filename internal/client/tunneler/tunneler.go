// Package tunneler leads what knows nothing of the network into it and out of
// it: services that lead to servers here are hosted, and local ports lead to
// services. It follows what its identities may use. It owns those servers' and
// ports' connections; how the network is reached is sdk's to know.
package tunneler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/status"
)

// Options of a tunneler.
type Options struct {
	// Identities are the files of those that it acts for.
	Identities []string
	// Accounts are those among them that have no file, by the name that stands for one.
	Accounts map[string]*sdk.Account
	// Second returns what shows tokens of another signer for an identity's file, where a
	// policy wants them; nil if nobody has any.
	Second func(file string) func(context.Context) (string, error)
	// Host says that whatever they may host is hosted.
	Host bool
	// Allow is where hosted services may lead to, whatever their configurations
	// say; anywhere, if it is nil.
	Allow []Allow
	// Ports are local ports that lead to services.
	Ports []Port
	// Intercept, unless it is nil, has services be reached under the addresses that
	// their configurations give them.
	Intercept *Interception
	// UDPIdle is how long a datagram's sender is remembered; a minute if not
	// given.
	UDPIdle time.Duration
	Version string
	Log     *slog.Logger
	Now     func() time.Time
	// Poll is how often controllers are asked for changes, if not as usual.
	Poll time.Duration
	// Started is called once it runs, with what can be asked how it stands.
	Started func(*Tunneler)
	// Leave, when it is closed, has it take nothing more, and end as soon as
	// what is connected has ended, or after Drain.
	Leave <-chan struct{}
	Drain time.Duration
}

const (
	// maxConnections is how many connections there are at once, of one hosted
	// endpoint or one local port: each takes a file and some memory.
	maxConnections = 10_000
	// maxShare is how many of them one dialer may have, unless the configuration
	// says how many there are: then who wrote it knows who dials.
	maxShare     = maxConnections / 2
	usualUDPIdle = time.Minute
	firstPause   = time.Second
	lastPause    = 30 * time.Second
)

// Tunneler is one that runs.
type Tunneler struct {
	opt Options
	log *slog.Logger
	// life is that of connections, which may outlast what has taken them.
	life   context.Context
	end    context.CancelFunc // of life
	joined atomic.Int64       // connections
	lull   *lull
	quiet  chan struct{} // closed when ports have none any more

	ports       []*port // that could be opened
	interceptor *interceptor

	roll   roll // what there is to tell of
	memory status.Memory
	began  time.Time
	tally  status.Tally

	mu      sync.Mutex
	clients []*sdk.Client
}

// ErrNothing says that nothing is left to do. What went wrong was said before.
var ErrNothing = errors.New("nothing is left to do: no identity can be used, or no port can be listened on; the lines above say why")

// Run does what it should until ctx ends. What goes wrong with one identity,
// service or port is said once, and the rest goes on; it returns an error when
// nothing is left.
func Run(ctx context.Context, opt Options) error {
	if opt.UDPIdle == 0 {
		opt.UDPIdle = usualUDPIdle
	}
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	taking, leave := context.WithCancel(life)
	defer leave()
	t := &Tunneler{opt: opt, life: life, end: cancel, quiet: make(chan struct{}), lull: newLull(), began: opt.Now()}
	t.log = t.memory.Logger(opt.Log)
	if err := t.intercept(taking); err != nil {
		return err
	}
	ports := t.listen(taking)
	t.ports = ports
	if len(ports) == 0 && !opt.Host && t.interceptor == nil {
		return ErrNothing
	}
	if opt.Started != nil {
		opt.Started(t)
	}
	go t.await(leave, cancel)
	var identities, all sync.WaitGroup
	for _, p := range ports {
		all.Go(func() { p.serve(taking) })
	}
	if t.interceptor != nil {
		all.Go(func() { t.interceptor.serve(taking) })
	}
	go func() {
		all.Wait()
		close(t.quiet)
	}()
	for _, file := range opt.Identities {
		identities.Go(func() { t.act(taking, file) })
	}
	identities.Wait()
	left := taking.Err() == nil // and all identities are gone
	cancel()
	<-t.quiet
	if i := t.interceptor; i != nil && i.lost.Load() {
		return fmt.Errorf("somebody has taken the device %s away: find out who, and start the tunneler again", i.device.Name())
	}
	if left {
		return ErrNothing
	}
	return nil
}

// await leaves when it is told to, and ends what is connected if that takes too
// long.
func (t *Tunneler) await(leave, end func()) {
	select {
	case <-t.opt.Leave:
	case <-t.life.Done():
		return
	}
	if n := t.joined.Load(); n > 0 {
		t.log.Info("nothing new is taken; what is connected may go on for a while", "connections", n, "atMost", t.opt.Drain.String())
	}
	leave()
	if pause(t.life, t.opt.Drain) {
		end()
	}
}

// join copies between two connections until both have ended, or all must.
func (t *Tunneler) join(a, b net.Conn) {
	t.lull.is(t.joined.Add(1))
	defer func() { t.lull.is(t.joined.Add(-1)) }()
	join(t.life, a, b)
}

// act acts for an identity until ctx ends and nothing needs it any more, or it
// turns out that that cannot be.
func (t *Tunneler) act(ctx context.Context, file string) {
	m := &member{file: file}
	defer t.roll.enter(m)()
	c := t.open(ctx, m)
	if c == nil {
		return
	}
	defer c.Close()
	m.uses(c)
	t.mu.Lock()
	t.clients = append(t.clients, c)
	t.mu.Unlock()
	t.log.Info("an identity is in use", "identity", c.Name(), "file", file)
	var said sync.WaitGroup
	defer said.Wait()
	if len(t.ports) > 0 {
		said.Go(func() { t.follow(ctx, c) })
	}
	if t.interceptor != nil {
		said.Go(func() { t.interceptor.follow(ctx, c) })
	}
	if t.opt.Host {
		t.host(ctx, c)
	}
	<-ctx.Done()
	<-t.quiet
}

// open logs an identity in, as soon as its controller answers. It returns nil
// if that will never be, or ctx has ended.
func (t *Tunneler) open(ctx context.Context, m *member) *sdk.Client {
	file, wait, said := m.file, firstPause, ""
	for {
		opt := sdk.Options{
			Identity: file, Account: t.opt.Accounts[file], Log: t.log, Poll: t.opt.Poll, Program: "netkeep-tunnel", Version: t.opt.Version, Now: t.opt.Now,
			Dialer: t.unseen(),
		}
		if t.opt.Second != nil && opt.Account == nil {
			opt.Second = t.opt.Second(file)
		}
		c, err := sdk.Open(ctx, opt)
		if err == nil {
			return c
		}
		if ctx.Err() != nil {
			return nil
		}
		m.fails(err)
		if !sdk.Temporary(err) {
			t.log.Error("an identity cannot be used", "file", file, "error", err)
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			t.log.Warn("an identity cannot be used yet", "file", file, "error", err)
		}
		if !pause(ctx, wait) {
			return nil
		}
		wait = min(2*wait, lastPause)
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// complaints says the same thing once a while, however often it happens.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time
}

const (
	// again is when something is worth to be said once more.
	again = time.Minute
	// maxSaid is how many different things are remembered.
	maxSaid = 1000
)

const (
	// maxText is how much of a dialer's words the log repeats, and maxLines how
	// often a minute: nobody outside should fill it.
	maxText  = 300
	maxLines = 60
)

// pace lets so many lines a minute through.
type pace struct {
	mu    sync.Mutex
	since time.Time
	lines int
}

func (p *pace) take(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.since) >= time.Minute {
		p.since, p.lines = now, 0
	}
	p.lines++
	return p.lines <= maxLines
}

// fresh reports whether something was not said lately.
func (c *complaints) fresh(text string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.last[text]; ok && now.Sub(at) < again {
		return false
	}
	if c.last == nil || len(c.last) >= maxSaid {
		c.last = map[string]time.Time{}
	}
	c.last[text] = now
	return true
}
