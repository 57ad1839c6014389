package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
)

// cost is what a write took: time, processor time of the controller that was asked, and
// of all that had to do with it; in milliseconds a write, by turn.
type cost struct{ took, asked, all []float64 }

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// measureWrites has a controller that is alone and three that are one network take
// turns: whatever else the machine does, it does to all of them.
func measureWrites(ctx context.Context, g *group, c *cluster, out, progress io.Writer) error {
	if err := c.join(ctx, 3); err != nil {
		return err
	}
	three := slices.Clone(c.all)
	leader, follower, err := c.leads()
	if err != nil {
		return err
	}
	alone, err := c.start(ctx)
	if err != nil {
		return err
	}
	if err := measureRest(ctx, alone, three, out); err != nil {
		return err
	}
	for _, clients := range []int{1, 16} {
		var costs [3]cost
		for turn := range g.turns {
			for i, side := range []struct {
				at  *controller
				all []*controller
			}{{alone, []*controller{alone}}, {leader, three}, {follower, three}} {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := costs[i].turn(side.at, side.all, g.writes, clients); err != nil {
					return err
				}
			}
			fmt.Fprintf(progress, "writes of %d clients: turn %d of %d\n", clients, turn+1, g.turns)
		}
		took, used := median(costs[0].took), median(costs[0].all)
		fmt.Fprintf(out, "write      %2d clients  alone      %.2fms  cpu %.2fms\n", clients, took, used)
		for i, name := range []string{"leader", "follower"} {
			t, asked, all := median(costs[i+1].took), median(costs[i+1].asked), median(costs[i+1].all)
			fmt.Fprintf(out, "write      %2d clients  %-9s  %.2fms (%.1f times)  cpu of it %.2fms (%.1f times)  of all three %.2fms (%.1f times)  load %s\n",
				clients, name, t, t/took, asked, asked/used, all, all/used, loadOf())
		}
	}
	return nil
}

// restTime is how long controllers are looked at that have nothing to do.
const restTime = 10 * time.Second

// measureRest tells what controllers use of a processor while nobody asks.
func measureRest(ctx context.Context, alone *controller, three []*controller, out io.Writer) error {
	both := [][]*controller{{alone}, three}
	var before, after [2]time.Duration
	for i, all := range both {
		var err error
		if before[i], err = usedBy(all); err != nil {
			return err
		}
	}
	select {
	case <-time.After(restTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	for i, all := range both {
		var err error
		if after[i], err = usedBy(all); err != nil {
			return err
		}
	}
	percent := func(i int) float64 { return 100 * (after[i] - before[i]).Seconds() / restTime.Seconds() }
	fmt.Fprintf(out, "rest       alone %.1f%% of a processor  all three %.1f%%  load %s\n", percent(0), percent(1), loadOf())
	return nil
}

// usedBy is the processor time that controllers have used.
func usedBy(all []*controller) (sum time.Duration, err error) {
	for _, one := range all {
		d, bad := one.use.cpu()
		sum, err = sum+d, errors.Join(err, bad)
	}
	return sum, err
}

// turn measures some writes at one controller.
func (c *cost) turn(at *controller, all []*controller, writes, clients int) error {
	roots, err := at.roots()
	if err != nil {
		return err
	}
	before, err1 := usedBy(all)
	own, err2 := at.use.cpu()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	errs := make([]error, clients)
	var wait sync.WaitGroup
	start := time.Now()
	for i := range clients {
		wait.Go(func() {
			one := newClient(&at.target, roots)
			defer one.close()
			one.token = at.client.token
			for range writes / clients {
				if errs[i] == nil {
					_, errs[i] = fetch[created](one, request{method: http.MethodPost, path: managementRoot + "/identities", body: identityBody{
						Name: "bench-" + rand.Text(), Type: "Device", RoleAttributes: []string{"bench"},
					}})
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(start)
	after, err1 := usedBy(all)
	owns, err2 := at.use.cpu()
	each := func(d time.Duration) float64 { return 1000 * d.Seconds() / float64(writes/clients*clients) }
	c.took, c.asked, c.all = append(c.took, each(took)), append(c.asked, each(owns-own)), append(c.all, each(after-before))
	return errors.Join(append(errs, err1, err2)...)
}

// measureJoin has a controller join three that hold much.
func measureJoin(ctx context.Context, g *group, c *cluster, out, progress io.Writer) error {
	if err := c.join(ctx, 3); err != nil {
		return err
	}
	type change struct {
		Op   string       `json:"op"`
		Kind string       `json:"kind"`
		Body identityBody `json:"body"`
	}
	const block = 1000
	for from := 0; from < g.identities; from += block {
		var list []change
		for i := from; i < min(from+block, g.identities); i++ {
			list = append(list, change{"create", "identity", network{1}.identity(i)})
		}
		if _, err := fetch[any](c.all[0].client, request{method: http.MethodPost, path: managementRoot + "/changes", body: map[string]any{"changes": list}}); err != nil {
			return err
		}
		fmt.Fprintf(progress, "identities: %d of %d\n", from+len(list), g.identities)
	}
	start := time.Now()
	one, err := c.grow(ctx)
	if err != nil {
		return err
	}
	answers := time.Since(start)
	has, err := fetch[[]record](one.client, request{method: http.MethodGet, path: managementRoot + "/identities?limit=1"})
	if err != nil {
		return err
	}
	if n := has.Meta.Pagination.TotalCount; n <= g.identities {
		return fmt.Errorf("one that has joined shows %d identities", n)
	}
	if err := c.votes(ctx, 4); err != nil {
		return err
	}
	fmt.Fprintf(out, "join       %d identities  answers after %s  has a vote after %s  load %s\n",
		g.identities, answers.Round(10*time.Millisecond), time.Since(start).Round(10*time.Millisecond), loadOf())
	return nil
}

// measureMembersRouters has routers connect to three controllers each.
func measureMembersRouters(ctx context.Context, g *group, c *cluster, out, progress io.Writer) error {
	if err := c.join(ctx, 3); err != nil {
		return err
	}
	fl, err := newFleet(&c.all[0].target)
	if err != nil {
		return err
	}
	opts := make([]scripted.Options, g.routers)
	for i := range opts {
		if opts[i], err = fl.router(); err != nil {
			return err
		}
		if n := i + 1; n%100 == 0 {
			fmt.Fprintf(progress, "enrolled %d of %d routers\n", n, g.routers)
		}
	}
	before, err := c.memory()
	if err != nil {
		return err
	}
	start := time.Now()
	m, err := c.connect(ctx, opts)
	defer m.close()
	if err != nil {
		return err
	}
	took := time.Since(start)
	after, err := c.memory()
	if err != nil {
		return err
	}
	most := 0.0
	for i := range after {
		most = max(most, after[i]-before[i])
	}
	fmt.Fprintf(out, "routers    %d at 3 controllers each in %s  memory of a controller %+.0fMB at most  load %s\n", g.routers, took.Round(10*time.Millisecond), most, loadOf())
	return m.measurePolicy(ctx, fl, c, out)
}

// memory is what each controller has, in megabytes.
func (c *cluster) memory() (all []float64, err error) {
	for _, one := range c.all {
		use, err := one.use.since(0, 1)
		if err != nil {
			return nil, err
		}
		all = append(all, use.AnonymousMegabytes)
	}
	return all, nil
}

// mesh is the connections of every router, by controller.
type mesh [][]*scripted.Router

func (m mesh) close() {
	for _, routers := range m {
		disperse(routers)
	}
}

// connect has every router connect to every controller, some at a time, and waits
// until one of those has told it everything.
func (c *cluster) connect(ctx context.Context, opts []scripted.Options) (mesh, error) {
	m, errs := make(mesh, len(opts)), make([]error, len(opts))
	var wait sync.WaitGroup
	turns := make(chan struct{}, few)
	for i, opt := range opts {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			told := make(chan error, len(c.all))
			waiting, stop := context.WithCancel(ctx)
			defer stop() // of the others
			for _, one := range c.all {
				opt.Address = strings.TrimPrefix(one.url, "https://")
				r, err := persist(ctx, opt)
				if err != nil {
					errs[i] = err
					return
				}
				m[i] = append(m[i], r)
				go func() { told <- r.Await(waiting, func(k scripted.Known) bool { return k.Synced > 0 }) }()
			}
			errs[i] = <-told
		})
	}
	wait.Wait()
	return m, errors.Join(errs...)
}

// measurePolicy takes away by a policy what every router carries, at one controller
// after the other, and looks how long it takes until none does.
func (m mesh) measurePolicy(ctx context.Context, fl *fleet, c *cluster, out io.Writer) error {
	visitor := fl.newVisitor()
	defer visitor.close()
	_, token, err := fl.visit(visitor)
	if err != nil {
		return err
	}
	if err := m.host(ctx, fl, visitor); err != nil {
		return err
	}
	policy := fl.made[slices.IndexFunc(fl.made, func(path string) bool { return strings.HasPrefix(path, "service-policies/") })]
	permit := func(at *controller, who ...string) error {
		_, err := fetch[any](at.client, request{method: http.MethodPatch, path: managementRoot + "/" + policy, body: map[string][]string{"identityRoles": who}})
		return err
	}
	for n, at := range c.all {
		dialing, err := fl.permission(token, "Dial")
		if err != nil {
			return err
		}
		if err := m.each(func(_ int, r *scripted.Router) error { return dialOften(ctx, r, dialing, token) }); err != nil {
			return err
		}
		start := time.Now()
		if err := permit(at, []string{}...); err != nil {
			return err
		}
		asked := time.Since(start)
		err = m.each(func(_ int, r *scripted.Router) error {
			return r.Await(ctx, func(k scripted.Known) bool { return len(k.Circuits) == 0 })
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "policy     changed at controller %d of 3 in %s  in force at %d routers after %s  load %s\n",
			n+1, asked.Round(time.Millisecond), len(m), time.Since(start).Round(time.Millisecond), loadOf())
		if err := permit(c.all[0], "@"+fl.identity); err != nil {
			return err
		}
	}
	return nil
}

// hostedBy is how many routers one session may host at.
const hostedBy = 200

// host has the service be hosted at every router, so that each finds it there.
func (m mesh) host(ctx context.Context, fl *fleet, visitor *client) error {
	var tokens, hosting []string
	for range len(m)/hostedBy + 1 {
		_, token, err := fl.visit(visitor)
		if err != nil {
			return err
		}
		permission, err := fl.permission(token, "Bind")
		if err != nil {
			return err
		}
		tokens, hosting = append(tokens, token), append(hosting, permission)
	}
	return m.each(func(i int, r *scripted.Router) error {
		made, err := r.Host(ctx, message.CreateTerminator{Address: fmt.Sprint("bench-", i), SessionToken: hosting[i/hostedBy], APISessionToken: tokens[i/hostedBy]})
		if err == nil && made.Result != message.TerminatorOK {
			err = fmt.Errorf("hosting fails: %+v", made)
		}
		return err
	})
}

// dialOften dials until that works: who is asked may not have heard yet that it may.
func dialOften(ctx context.Context, r *scripted.Router, dialing, token string) (err error) {
	for range 100 {
		if _, _, err = r.Dial(ctx, dialing, token, nil); err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// each does something with every router, at one controller of three each.
func (m mesh) each(do func(i int, r *scripted.Router) error) error {
	errs := make([]error, len(m))
	var wait sync.WaitGroup
	turns := make(chan struct{}, 4*few)
	for i, routers := range m {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			errs[i] = do(i, routers[i%len(routers)])
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}
