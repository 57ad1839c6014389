package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

func runCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	var t target
	var b bounds
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(progress)
	t.flags(f, 8)
	b.flags(f)
	names := f.String("scenario", "", "which scenarios to run, separated by commas, or all:\n"+describeScenarios())
	asJSON := f.Bool("json", false, "print results as JSON, one object a line")
	if err := parse(f, args); err != nil {
		return err
	}
	chosen, err := choices(*names)
	if err := errors.Join(err, t.check(), b.check()); err != nil {
		return err
	}
	s, err := newBench(&t)
	if err != nil {
		return err
	}
	var failed error
	for _, sc := range chosen {
		if ctx.Err() != nil {
			break
		}
		res, err := s.run(ctx, sc, b)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("scenario %s: %w", sc.name, err))
			continue
		}
		if err := show(out, res, *asJSON); err != nil {
			return err
		}
	}
	return errors.Join(failed, s.close())
}

func show(out io.Writer, res result, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintln(out, res)
		return err
	}
	line, err := json.Marshal(res)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

// choices finds scenarios by their names.
func choices(names string) ([]scenario, error) {
	if names == "all" {
		return scenarios, nil
	}
	var chosen []scenario
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--scenario: there is no %q; -h lists them", name)
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

func describeScenarios() string {
	var b strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&b, "%-26s %s\n", s.name, s.doc)
	}
	return b.String()
}

// bench is a controller under load.
type bench struct {
	target  *target
	admin   *client // logged in, for what is not measured
	clients []*client
	server  *process
	id      string // in the names of what this run makes, apart from other runs

	undo []func() error // what the scenario that runs has to clean up, last first
}

func newBench(t *target) (*bench, error) {
	server, err := openProcess(t.pid)
	if err != nil {
		return nil, err
	}
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	s := &bench{target: t, admin: newClient(t, roots), server: server, id: strings.ToLower(rand.Text()[:8])}
	if err := s.admin.login(managementRoot, t.username, t.password); err != nil {
		return nil, err
	}
	for range t.clients {
		s.clients = append(s.clients, newClient(t, roots))
	}
	return s, nil
}

func (s *bench) close() error {
	err := s.admin.logout(managementRoot)
	for _, c := range append(s.clients, s.admin) {
		c.close()
	}
	return err
}

// run prepares a scenario, measures it and cleans up after it.
func (s *bench) run(ctx context.Context, sc scenario, b bounds) (res result, err error) {
	defer func() {
		for _, f := range slices.Backward(s.undo) {
			err = errors.Join(err, f())
		}
		s.undo = nil
	}()
	l := load{name: sc.name, steps: sc.steps, token: s.admin.token}
	if err := sc.prepare(s, &l); err != nil {
		return result{}, err
	}
	return measure(ctx, s.clients, s.server, l, b)
}
