package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// audience is how many listen, and as how many identities.
type audience struct{ streams, identities, changes int }

func (a *audience) flags(f *flag.FlagSet) {
	f.IntVar(&a.streams, "streams", 1000, "how many streams are open, each with a session and a connection of its own; the controller's limits must allow as many")
	f.IntVar(&a.identities, "identities", 100, "of how many identities they are")
	f.IntVar(&a.changes, "changes", 5, "how many changes they are told of")
}

func (a *audience) check() error {
	for _, n := range []int{a.streams, a.identities, a.changes} {
		if n < 1 || n > maxRecords {
			return fmt.Errorf("numbers must be between 1 and %d, not %d", maxRecords, n)
		}
	}
	return nil
}

// streamsCommand measures what clients cost that are told when their services
// change, and what it costs to tell all of them.
func streamsCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	var t target
	var a audience
	f := flag.NewFlagSet("streams", flag.ContinueOnError)
	f.SetOutput(progress)
	t.flags(f, 32)
	a.flags(f)
	if err := parse(f, args); err != nil {
		return err
	}
	if err := errors.Join(t.check(), a.check()); err != nil {
		return err
	}
	fl, err := newFleet(&t)
	if fl == nil {
		return err
	}
	if err == nil {
		err = fl.measureStreams(ctx, a, out, progress)
	}
	return errors.Join(err, fl.close())
}

// listener is somebody with a stream.
type listener struct {
	client *client
	body   io.ReadCloser
	lines  *bufio.Scanner
}

// hear waits for the next event.
func (l *listener) hear() error {
	for l.lines.Scan() {
		if strings.HasPrefix(l.lines.Text(), "data: ") {
			return nil
		}
	}
	return errors.Join(l.lines.Err(), errors.New("a stream has ended"))
}

func (f *fleet) measureStreams(ctx context.Context, a audience, out, progress io.Writer) error {
	role := "bench-stream-" + rand.Text()[:8]
	fmt.Fprintf(progress, "enrolling %d identities\n", a.identities)
	certs := make([]tls.Certificate, a.identities)
	for i := range certs {
		var err error
		if certs[i], err = f.enrollListener(fmt.Sprintf("%s-%d", role, i), role); err != nil {
			return err
		}
	}
	before, start := f.memory(), time.Now()
	all, err := f.listen(ctx, a.streams, certs)
	defer func() {
		for _, l := range all {
			l.body.Close()
			l.client.close()
		}
	}()
	if err != nil {
		return err
	}
	after := f.memory()
	fmt.Fprintf(out, "open       %6d streams in %s  memory %.0fMB, %+.0fMB, %.1fkB each\n",
		len(all), time.Since(start).Round(time.Millisecond), after, after-before, (after-before)*1024/float64(len(all)))
	var last []time.Duration
	for range a.changes {
		took, err := f.measureTelling(all, role, out)
		if err != nil {
			return err
		}
		last = append(last, took)
	}
	slices.Sort(last)
	fmt.Fprintf(out, "told       %6d changes  the last stream after p50 %s  p99 %s  most %s\n", len(last),
		percentile(last, 50).Round(100*time.Microsecond), percentile(last, 99).Round(100*time.Microsecond), last[len(last)-1].Round(100*time.Microsecond))
	return nil
}

// enrollListener makes an identity and gives it a certificate.
func (f *fleet) enrollListener(name, role string) (cert tls.Certificate, err error) {
	id, visitor := f.identity, f.visitor
	defer func() { f.identity, f.visitor = id, visitor }()
	f.identity, err = f.create("identities", map[string]any{
		"name": name, "type": "Device", "isAdmin": false, "roleAttributes": []string{role}, "enrollment": map[string]any{"ott": true},
	})
	if err == nil {
		err = f.enrollVisitor()
	}
	return f.visitor, err
}

// listen opens streams, some at a time, and waits for the first event of each.
func (f *fleet) listen(ctx context.Context, count int, certs []tls.Certificate) (all []*listener, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := make(chan int)
	for range f.t.clients {
		wg.Go(func() {
			for i := range next {
				l, failed := f.open(certs[i%len(certs)])
				mu.Lock()
				if err = errors.Join(err, failed); failed == nil {
					all = append(all, l)
				}
				mu.Unlock()
			}
		})
	}
	for i := range count {
		mu.Lock()
		broken := err != nil
		mu.Unlock()
		if broken || ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return all, errors.Join(err, ctx.Err())
}

// open logs in and opens a stream over the same connection.
func (f *fleet) open(cert tls.Certificate) (*listener, error) {
	c := newClient(f.t, f.roots)
	c.http.Timeout = 0
	c.http.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cert}
	_, token, err := f.visit(c)
	if err != nil {
		return nil, err
	}
	sent, err := c.encode(request{method: http.MethodGet, path: clientRoot + "/current-api-session/service-updates/stream", token: token})
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(sent)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		return nil, fmt.Errorf("a stream is refused with status %d: %s", resp.StatusCode, shorten(said))
	}
	l := &listener{c, resp.Body, bufio.NewScanner(resp.Body)}
	return l, l.hear()
}

// measureTelling makes a policy for everybody who listens, and waits until all know. It
// returns how long that was for the last of them, with the write.
func (f *fleet) measureTelling(all []*listener, role string, out io.Writer) (last time.Duration, err error) {
	took := make([]time.Duration, len(all))
	failed := make([]error, len(all))
	var wg sync.WaitGroup
	end := f.server.begin()
	var start time.Time
	ready := make(chan struct{})
	for i, l := range all {
		wg.Go(func() {
			<-ready
			failed[i] = l.hear()
			took[i] = time.Since(start)
		})
	}
	start = time.Now()
	close(ready)
	_, err = f.create("service-policies", servicePolicyBody{
		Name: role + rand.Text()[:8], Type: "Dial", Semantic: "AnyOf", IdentityRoles: []string{"#" + role}, ServiceRoles: []string{"@" + f.service},
	})
	if err != nil {
		return 0, err
	}
	wrote := time.Since(start)
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return 0, err
	}
	slices.Sort(took)
	use, err := end(len(all))
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "tell       %6d streams  write %s  p50 %s  p99 %s  last %s", len(all),
		wrote.Round(time.Millisecond), percentile(took, 50).Round(time.Millisecond), percentile(took, 99).Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	if use != nil {
		fmt.Fprintf(out, "  %s", use)
	}
	fmt.Fprintln(out)
	return took[len(took)-1], nil
}
