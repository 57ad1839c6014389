package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
)

// crew is how much there is of what routers have to do with.
type crew struct {
	routers, sessions, circuits int
	duration                    time.Duration
}

func (c *crew) flags(f *flag.FlagSet) {
	f.IntVar(&c.routers, "routers", 100, "how many routers connect")
	f.IntVar(&c.sessions, "sessions", 1000, "how many API sessions a router is told of")
	f.IntVar(&c.circuits, "circuits", 10_000, "how many circuits are open at a time in the end")
	f.DurationVar(&c.duration, "duration", 5*time.Second, "for how long circuits are made and ended")
}

func (c *crew) check() error {
	for _, n := range []int{c.routers, c.sessions, c.circuits} {
		if n < 1 || n > maxRecords {
			return fmt.Errorf("numbers must be between 1 and %d, not %d", maxRecords, n)
		}
	}
	if c.duration <= 0 || c.duration > maxDuration {
		return fmt.Errorf("--duration must be more than 0 and at most %s, not %s", maxDuration, c.duration)
	}
	return nil
}

// routersCommand measures what routers cost that follow a script. They carry
// nothing, so that many of them fit on one machine.
func routersCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	var t target
	var c crew
	f := flag.NewFlagSet("routers", flag.ContinueOnError)
	f.SetOutput(progress)
	t.flags(f, 16)
	c.flags(f)
	if err := parse(f, args); err != nil {
		return err
	}
	if err := errors.Join(t.check(), c.check()); err != nil {
		return err
	}
	fl, err := newFleet(&t)
	if fl == nil {
		return err
	}
	if err == nil {
		err = fl.measure(ctx, c, out, progress)
	}
	return errors.Join(err, fl.close())
}

// measure goes from step to step; each rests on the one before.
func (f *fleet) measure(ctx context.Context, c crew, out, progress io.Writer) error {
	fmt.Fprintf(progress, "enrolling %d routers\n", c.routers+1)
	opts := make([]scripted.Options, c.routers+1)
	for i := range opts {
		var err error
		if opts[i], err = f.router(); err != nil {
			return err
		}
	}
	routers, err := f.measureConnect(ctx, opts[1:], out)
	if err == nil {
		err = f.measureSpread(ctx, routers[:min(100, len(routers))], out)
	}
	disperse(routers)
	if err == nil {
		routers, err = f.measureReturn(ctx, opts[1:], out)
		disperse(routers)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "opening %d API sessions\n", c.sessions)
	token, err := f.openSessions(ctx, c.sessions)
	if err != nil {
		return err
	}
	router, err := f.measureSync(ctx, opts[0], c.sessions, out)
	if err != nil {
		return err
	}
	defer router.Close()
	return f.measureCircuits(ctx, router, token, c, out)
}

// memory is what the controller has, in megabytes; 0 if that is not measured.
func (f *fleet) memory() float64 {
	if f.server == nil {
		return 0
	}
	use, err := f.server.since(0, 1)
	if err != nil {
		return 0
	}
	return use.AnonymousMegabytes
}

func (f *fleet) measureConnect(ctx context.Context, opts []scripted.Options, out io.Writer) ([]*scripted.Router, error) {
	before, start := f.memory(), time.Now()
	routers, err := assemble(ctx, few, opts)
	if err != nil {
		return routers, err
	}
	fmt.Fprintf(out, "connect    %6d routers in %s  memory %+.0fMB\n", len(opts), time.Since(start).Round(time.Millisecond), f.memory()-before)
	return routers, nil
}

// disperse ends the connections of routers.
func disperse(routers []*scripted.Router) {
	for _, r := range routers {
		if r != nil {
			r.Close()
		}
	}
}

// measureReturn has all routers connect at the same moment, as after an outage,
// and looks how long others wait meanwhile.
func (f *fleet) measureReturn(ctx context.Context, opts []scripted.Options, out io.Writer) ([]*scripted.Router, error) {
	over := make(chan struct{})
	var others tally
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			start := time.Now()
			status, _, err := f.admin.do(request{method: http.MethodGet, path: managementRoot + "/identities/" + f.identity})
			others.add(time.Since(start), status, err)
		}
	})
	apart := slices.Clone(opts)
	for i := range apart {
		apart[i].From = f.elsewhere(i)
	}
	start := time.Now()
	routers, err := assemble(ctx, len(apart), apart)
	took := time.Since(start)
	close(over)
	wait.Wait()
	if err != nil {
		return routers, err
	}
	fmt.Fprintf(out, "return     %6d routers at once in %s  others wait %s\n", len(opts), took.Round(time.Millisecond), others.figures(took))
	return routers, nil
}

// elsewhere is an address that nobody else connects from, as every router has
// one in a real network; nil if the controller is not on this machine.
func (f *fleet) elsewhere(i int) net.Addr {
	at, err := url.Parse(f.t.url)
	if err != nil || !net.ParseIP(at.Hostname()).IsLoopback() {
		return nil
	}
	return &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}
}

// measureSpread opens API sessions and looks how long it takes until all
// routers know them.
func (f *fleet) measureSpread(ctx context.Context, routers []*scripted.Router, out io.Writer) error {
	c := f.newVisitor()
	defer c.close()
	var took []time.Duration
	for range 50 {
		id, _, err := f.visit(c)
		if err != nil {
			return err
		}
		start := time.Now()
		for _, r := range routers {
			if err := r.Await(ctx, func(k scripted.Known) bool { return k.Sessions[id].ID == id }); err != nil {
				return err
			}
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	fmt.Fprintf(out, "spread     an API session reaches %d routers  p50 %s  max %s\n", len(routers), took[len(took)/2].Round(100*time.Microsecond), took[len(took)-1].Round(100*time.Microsecond))
	return nil
}

// openSessions opens many API sessions and returns the token of one.
func (f *fleet) openSessions(ctx context.Context, n int) (token string, err error) {
	var next atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, f.t.clients)
	tokens := make([]string, f.t.clients)
	for i := range errs {
		wait.Go(func() {
			c := f.newVisitor()
			defer c.close()
			for next.Add(1) <= int64(n) && errs[i] == nil && ctx.Err() == nil {
				_, tokens[i], errs[i] = f.visit(c)
			}
		})
	}
	wait.Wait()
	for _, t := range tokens {
		if t != "" {
			token = t
		}
	}
	return token, errors.Join(errs...)
}

func (f *fleet) measureSync(ctx context.Context, opt scripted.Options, sessions int, out io.Writer) (*scripted.Router, error) {
	start := time.Now()
	routers, err := assemble(ctx, few, []scripted.Options{opt})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "sync       %d and more API sessions to one router in %s\n", sessions, time.Since(start).Round(time.Millisecond))
	return routers[0], nil
}

// permission is a session to dial or host the service.
func (f *fleet) permission(token, typ string) (string, error) {
	r, err := fetch[struct {
		Token string `json:"token"`
	}](f.admin, request{method: http.MethodPost, path: clientRoot + "/sessions", body: map[string]string{"serviceId": f.service, "type": typ}, token: token})
	return r.Data.Token, err
}

func (f *fleet) measureCircuits(ctx context.Context, r *scripted.Router, token string, c crew, out io.Writer) error {
	hosting, err1 := f.permission(token, "Bind")
	dialing, err2 := f.permission(token, "Dial")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if _, err := r.Host(ctx, message.CreateTerminator{Address: "bench", SessionToken: hosting, APISessionToken: token}); err != nil {
		return err
	}
	dial := func() (string, error) {
		id, _, err := r.Dial(ctx, dialing, token, nil)
		return id, err
	}
	start := time.Now()
	until := start.Add(c.duration)
	n, err := f.crowd(func() (bool, error) {
		id, err := dial()
		if err != nil {
			return false, err
		}
		over := &message.Fault{Subject: message.FaultIngress, ID: id}
		return time.Now().Before(until), r.Send(&wire.Frame{Type: message.TypeFault, Body: message.Marshal(over)})
	})
	if err == nil {
		err = r.Await(ctx, func(k scripted.Known) bool { return len(k.Circuits) == 0 })
	}
	if err != nil {
		return err
	}
	took := time.Since(start)
	fmt.Fprintf(out, "circuits   %6d made and ended over one router  %.0f/s\n", n, float64(n)/took.Seconds())

	before := f.memory()
	var opened atomic.Int64
	if _, err = f.crowd(func() (bool, error) {
		if opened.Add(1) > int64(c.circuits) {
			return false, nil
		}
		_, err := dial()
		return true, err
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "open       %6d circuits  memory %+.0fMB\n", c.circuits, f.memory()-before)
	return nil
}

// crowd has as many as there are clients do something again and again until
// they are told to stop, and returns how often it was done.
func (f *fleet) crowd(do func() (more bool, err error)) (int64, error) {
	var done atomic.Int64
	var wait sync.WaitGroup
	errs := make([]error, f.t.clients)
	for i := range errs {
		wait.Go(func() {
			for more := true; more && errs[i] == nil; done.Add(1) {
				more, errs[i] = do()
			}
		})
	}
	wait.Wait()
	return done.Load(), errors.Join(errs...)
}
