// Package sdk is a client of a network, as a library: it logs in with an
// identity's file, knows the services that the identity may use and follows
// changes of them, connects to edge routers, and dials and hosts services
// through them. It owns those connections and what travels on them. It knows
// nothing of what is done with a service; it must not import anything that a
// controller or a router is made of.
package sdk

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire/cipher"
)

// Options of a Client. Only Identity and Now must be given.
type Options struct {
	// Identity is the path of the identity's file, or Account who it is without one.
	Identity string
	Account  *Account
	// Log gets what others should know; nothing is said if it is nil.
	Log *slog.Logger
	// Poll is how often the controller is asked whether services changed, unless it
	// tells that by itself.
	Poll time.Duration
	// Program and Version are who we say we are.
	Program, Version string
	Now              func() time.Time
	// Dialer makes the connections to controllers and routers, if not as usual.
	Dialer *net.Dialer
	// Plain leaves the flow of connections to routers, as older clients do.
	Plain bool
	// Device answers posture checks in the place of what can be seen here.
	Device Device
	// Code returns a code of the identity's second factor, when one is needed; nil
	// if there is nobody to ask.
	Code func(context.Context) (string, error)
	// Second returns a token of another signer, where the identity's policy wants to see
	// one with every request; nil if there is none.
	Second func(context.Context) (string, error)
}

const (
	// poll is how often one asks whether anything changed: soon enough for a
	// person who waits, and one small request of a controller.
	poll = 5 * time.Second
	// apiTime is how long a request to the controller may take.
	apiTime = 30 * time.Second
	// connectTime is how long a dial may take that nobody bounds.
	connectTime = 30 * time.Second
)

// Client is one identity in a network. All methods may be called at any time.
type Client struct {
	opt  Options
	id   *credentials
	api  *api
	keys *hostKeys
	log  *slog.Logger

	around  around
	renewal renewal
	device  reporter
	factors factors
	watch   *watch
	updates updates

	over context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu        sync.Mutex
	catalog   *catalog
	routers   map[string]*attempt // by address
	sessions  map[sessionKey]*session
	listeners map[*Listener]struct{}
}

// Open logs in and learns what the identity may use. Its errors are sentences
// for whoever started the program.
func Open(ctx context.Context, opt Options) (*Client, error) {
	if opt.Poll == 0 {
		opt.Poll = poll
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	id, err := opt.credentials()
	if err != nil {
		return nil, err
	}
	c := &Client{
		opt: opt, id: id, api: newAPI(id, opt), log: opt.Log, watch: newWatch(),
		routers: map[string]*attempt{}, sessions: map[sessionKey]*session{}, listeners: map[*Listener]struct{}{},
	}
	c.renewal.client, c.device.client, c.factors.client = c, c, c
	c.updates.news = make(chan struct{}, 1)
	pair, err := cipher.NewPair()
	if err != nil {
		return nil, err
	}
	c.keys = &hostKeys{client: c, pair: pair, known: map[hostedWith]time.Time{}}
	c.over, c.end = context.WithCancel(context.Background())
	if err := c.api.login(ctx, ""); err != nil {
		c.api.remote().Close()
		return nil, err
	}
	if _, err := c.refresh(ctx); err != nil {
		c.api.logout()
		return nil, err
	}
	c.api.learn(ctx)
	c.controllerIs(nil)
	c.wg.Go(c.follow)
	c.wg.Go(c.listenForUpdates)
	return c, nil
}

// credentials is who one is.
func (opt *Options) credentials() (*credentials, error) {
	if opt.Account != nil {
		return opt.Account.credentials()
	}
	if info, err := os.Stat(opt.Identity); err == nil && pki.Exposed(info) {
		return nil, fmt.Errorf("%s holds the identity's key and is open to other users: run chmod 600 on it, and enroll the identity again if they are not to be trusted", opt.Identity)
	}
	return load(opt.Identity, opt.Now())
}

// Name is the identity's.
func (c *Client) Name() string { return c.api.session.Load().Identity.Name }

// Close ends all connections and listeners, and gives the session up.
func (c *Client) Close() error {
	c.mu.Lock()
	listeners := slices.Collect(maps.Keys(c.listeners))
	c.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	c.mu.Lock()
	c.end()
	routers := slices.Collect(maps.Values(c.routers))
	c.mu.Unlock()
	for _, a := range routers {
		a.close()
	}
	c.wg.Wait()
	c.watch.end(c.opt.Now())
	c.api.logout()
	return nil
}

// follow takes up changes until the client is closed: it asks for them, or is told.
// Either keeps the session alive.
func (c *Client) follow() {
	said := "" // of what is wrong
	for c.awaitNews(c.opt.Poll) {
		ctx, cancel := context.WithTimeout(c.over, apiTime)
		err := c.keepUp(ctx)
		if err == nil {
			err = c.device.tend(ctx)
		}
		if err == nil {
			err = c.renewal.tend(ctx)
		}
		if err == nil {
			c.api.learn(ctx)
		}
		cancel()
		if c.over.Err() != nil {
			return
		}
		err = plainly(err)
		c.controllerIs(err)
		said = c.tell(said, err)
	}
}

// tell says what is wrong with the controller when that changes, and returns
// what was said.
func (c *Client) tell(said string, err error) string {
	text := ""
	if err != nil {
		text = err.Error()
	}
	what := "the controller does not answer; what is known goes on"
	if !Temporary(err) {
		what = "the controller refuses the identity; what is known goes on"
	}
	switch {
	case text == said:
	case err == nil:
		c.log.Info("the controller answers again", "identity", c.Name())
	default:
		c.log.Warn(what, "identity", c.Name(), "error", err)
	}
	return text
}

// pause waits about so long, and reports false when the client is closed.
func (c *Client) pause(about time.Duration) bool {
	t := time.NewTimer(jitter(about))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.over.Done():
		return false
	}
}

// jitter is about as much: clients that started together must not ask
// together.
func jitter(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5+1)
}

// routerTLS is what a router is asked for.
func (c *Client) routerTLS(host string, alpn string) *tls.Config {
	config := c.id.config()
	config.ServerName, config.NextProtos = host, []string{alpn}
	// Many small records cost more than a first byte that is a little later.
	config.DynamicRecordSizingDisabled = true
	return config
}
