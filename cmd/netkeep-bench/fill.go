package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// blockSize is how many creations share one rate.
const blockSize = 10_000

// sizes says how much to create.
type sizes struct {
	identities, services, edgeRouters, policies, configs int
}

func (s *sizes) flags(f *flag.FlagSet) {
	f.IntVar(&s.identities, "identities", 100_000, "how many identities to create")
	f.IntVar(&s.services, "services", 10_000, "how many services to create")
	f.IntVar(&s.edgeRouters, "edge-routers", 500, "how many edge routers to create")
	f.IntVar(&s.policies, "policies", 1000, "how many policies to create: eight of ten for services, the others for edge routers")
	f.IntVar(&s.configs, "configs", 1000, "how many configs to create; every service gets one")
}

func (s *sizes) check() error {
	for _, n := range []int{s.identities, s.services, s.edgeRouters, s.policies, s.configs} {
		if n < 0 || n > maxRecords {
			return fmt.Errorf("sizes must be between 0 and %d, not %d", maxRecords, n)
		}
	}
	return nil
}

func fillCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	var t target
	var s sizes
	f := flag.NewFlagSet("fill", flag.ContinueOnError)
	f.SetOutput(progress)
	t.flags(f, 16)
	s.flags(f)
	seed := f.Uint64("seed", 1, "what the choices follow from")
	if err := parse(f, args); err != nil {
		return err
	}
	if err := errors.Join(t.check(), s.check()); err != nil {
		return err
	}
	fl, err := newFiller(&t, out, progress)
	if err != nil {
		return err
	}
	return errors.Join(fl.fill(ctx, network{*seed}, s), fl.close())
}

// filler creates records with many clients at a time.
type filler struct {
	clients       []*client
	server        *process // nil if it is not to be measured
	out, progress io.Writer
}

// newFiller logs in once; all clients share the session.
func newFiller(t *target, out, progress io.Writer) (*filler, error) {
	server, err := openProcess(t.pid)
	if err != nil {
		return nil, err
	}
	fl := &filler{server: server, out: out, progress: progress}
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	for range t.clients {
		fl.clients = append(fl.clients, newClient(t, roots))
	}
	if err := fl.clients[0].login(managementRoot, t.username, t.password); err != nil {
		return nil, err
	}
	for _, c := range fl.clients {
		c.token = fl.clients[0].token
	}
	return fl, nil
}

func (fl *filler) close() error {
	err := fl.clients[0].logout(managementRoot)
	for _, c := range fl.clients {
		c.close()
	}
	return err
}

// fill creates everything. Policies come before identities, as they do in the
// life of a network.
func (fl *filler) fill(ctx context.Context, n network, s sizes) error {
	typ := configType()
	typeID, _, err := fl.clients[0].ensure("config-types", typ.Name, typ)
	if err != nil {
		return err
	}
	configs, err := fl.create(ctx, "configs", s.configs, func(i int) (string, any) {
		b := n.config(i, typeID)
		return b.Name, b
	})
	if err != nil {
		return err
	}
	forRouters := s.policies / 10
	for _, k := range []struct {
		path  string
		count int
		body  func(i int) (name string, body any)
	}{
		{"services", s.services, func(i int) (string, any) { b := n.service(i, configs); return b.Name, b }},
		{"edge-routers", s.edgeRouters, func(i int) (string, any) { b := n.edgeRouter(i); return b.Name, b }},
		{"service-policies", s.policies - 2*forRouters, func(i int) (string, any) { b := n.servicePolicy(i); return b.Name, b }},
		{"edge-router-policies", forRouters, func(i int) (string, any) { b := n.routerPolicy(i); return b.Name, b }},
		{"service-edge-router-policies", forRouters, func(i int) (string, any) { b := n.serviceRouterPolicy(i); return b.Name, b }},
		{"identities", s.identities, func(i int) (string, any) { b := n.identity(i); return b.Name, b }},
	} {
		if _, err := fl.create(ctx, k.path, k.count, k.body); err != nil {
			return err
		}
	}
	return nil
}

// create makes records 0 to count-1 of a kind, block by block, and returns
// their ids.
func (fl *filler) create(ctx context.Context, path string, count int, body func(i int) (string, any)) ([]string, error) {
	ids := make([]string, count)
	var first, last float64 // seconds per record
	for from := 0; from < count; from += blockSize {
		to := min(from+blockSize, count)
		used := fl.server.begin()
		start := time.Now()
		made, err := fl.block(ctx, path, ids, from, to, body)
		took := time.Since(start)
		if err != nil {
			return nil, fmt.Errorf("creating %s: %w", path, err)
		}
		fmt.Fprintf(fl.out, "%-28s %7d to %7d  created %5d  already there %5d  in %8s  %7.0f/s",
			path, from, to, made, to-from-made, took.Round(time.Millisecond), float64(to-from)/took.Seconds())
		u, err := used(to - from)
		if err != nil {
			return nil, err
		}
		if u != nil {
			fmt.Fprintf(fl.out, "  %s", u)
		}
		fmt.Fprintln(fl.out)
		last = took.Seconds() / float64(to-from)
		if from == 0 {
			first = last
		}
	}
	if count > blockSize {
		fmt.Fprintf(fl.out, "%-28s a record of the last block took %.2f times as long as one of the first\n", path, last/first)
	}
	return ids, nil
}

// block makes the records from..to-1 and returns how many were not there.
func (fl *filler) block(ctx context.Context, path string, ids []string, from, to int, body func(i int) (string, any)) (int, error) {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	var next, made atomic.Int64
	next.Store(int64(from))
	var wg sync.WaitGroup
	for _, c := range fl.clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= to {
					return
				}
				name, b := body(i)
				id, fresh, err := c.ensure(path, name, b)
				if err != nil {
					giveUp(err)
					return
				}
				ids[i] = id
				if fresh {
					made.Add(1)
				}
				if n := i + 1; n%1000 == 0 {
					fmt.Fprintf(fl.progress, "%s: %d of %d\n", path, n, len(ids))
				}
			}
		})
	}
	wg.Wait()
	return int(made.Load()), context.Cause(ctx)
}

// ensure creates a record, or finds the one that has its name.
func (c *client) ensure(path, name string, body any) (id string, fresh bool, err error) {
	r, err := fetch[created](c, request{method: http.MethodPost, path: managementRoot + "/" + path, body: body})
	if err == nil {
		return r.Data.ID, true, nil
	}
	found, findErr := fetch[[]record](c, request{
		method: http.MethodGet,
		path:   managementRoot + "/" + path + "?filter=" + url.QueryEscape(fmt.Sprintf("name = %q", name)),
	})
	if findErr != nil || len(found.Data) != 1 {
		return "", false, errors.Join(err, findErr)
	}
	return found.Data[0].ID, false, nil
}
