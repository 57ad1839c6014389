package integrity_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/integrity"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
)

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// network is a state with a scanner, in a bubble of its own time.
type network struct {
	t       tester
	mem     *storetest.Memory // another handle, to damage what is stored
	state   *state.State
	scanner *integrity.Scanner
	close   func()
}

// lag is what the scanner allows memory and the sweeper.
const lag = 3 * time.Second

// open starts a network over a store. dir is where its quarantine is.
func open(t tester, mem *storetest.Memory, st store.Store, dir string) *network {
	t.Helper()
	s, err := state.Open(context.Background(), st, kinds, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n := &network{t: t, mem: mem.Another(), state: s, scanner: &integrity.Scanner{
		State: s, Store: st, Quarantine: filepath.Join(dir, "quarantine"), Lag: lag,
		Seed: func(tx *state.Tx) error { return seed(tx) },
		Now:  time.Now, Log: slog.New(slog.DiscardHandler),
	}}
	var running sync.WaitGroup
	running.Go(func() { n.scanner.Run(ctx) })
	n.close = func() {
		stop()
		running.Wait()
		s.Close()
	}
	n.update(seed)
	return n
}

func (n *network) update(fn func(kind.Writer) error) {
	n.t.Helper()
	if err := n.state.Update(context.Background(), state.Program("test"), func(tx *state.Tx) error { return fn(tx) }); err != nil {
		n.t.Fatal(err)
	}
}

// visit adds a record of the session lane.
func (n *network) visit(v *visit) {
	n.t.Helper()
	err := n.state.UpdateSessions(context.Background(), state.Program("test"), func(tx *state.Tx) error { return visits.Create(tx, v) })
	if err != nil {
		n.t.Fatal(err)
	}
}

// write puts bytes into the store past all rules; nil deletes. It returns when
// memory has followed.
func (n *network) write(key string, value []byte) {
	n.t.Helper()
	if _, err := n.mem.Put(context.Background(), store.Head{}, []store.Op{{Key: key, Value: value, Prev: store.Any}}); err != nil {
		n.t.Fatal(err)
	}
	synctest.Wait()
}

// spoil stores a changed record past all rules.
func spoil[T any](n *network, k *kind.Kind[T], id string, change func(*T)) {
	n.t.Helper()
	rec, ok := n.state.Snapshot().Lookup(k.Def, id)
	if !ok {
		n.t.Fatalf("there is no %s %s", k.Name, id)
	}
	c := k.Clone(rec)
	change(any(c).(*T))
	value, err := k.Encode(c)
	if err != nil {
		n.t.Fatal(err)
	}
	n.write(k.Name+"/"+id, value)
}

// scan runs a scan to its end.
func (n *network) scan(fix bool) integrity.Report {
	n.t.Helper()
	if err := n.scanner.Start(state.Program("test"), fix); err != nil {
		n.t.Fatal(err)
	}
	for range 1000 {
		synctest.Wait()
		if r := n.scanner.Report(); !r.Running {
			if r.Error != "" {
				n.t.Fatalf("the scan ended early: %s", r.Error)
			}
			return r
		}
		<-time.After(100 * time.Millisecond)
	}
	n.t.Fatal("the scan does not end")
	panic("unreachable")
}

// stored returns everything in the store.
func (n *network) stored() map[string]store.Record {
	n.t.Helper()
	all := map[string]store.Record{}
	_, err := n.mem.Load(context.Background(), func(rec store.Record) error {
		all[rec.Key] = rec
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return all
}

// describe returns the findings as lines.
func describe(r integrity.Report) []string {
	var lines []string
	for _, f := range r.Findings {
		line := "stays: "
		if f.Fixed {
			line = "fixed: "
		}
		lines = append(lines, line+f.Description)
	}
	slices.Sort(lines)
	return lines
}

// kept reports whether a file in the quarantine holds exactly these bytes.
func (n *network) kept(value []byte) bool {
	n.t.Helper()
	files, err := filepath.Glob(filepath.Join(n.scanner.Quarantine, "*"))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, file := range files {
		have, err := os.ReadFile(file)
		if err != nil {
			n.t.Fatal(err)
		}
		if bytes.Equal(have, value) {
			return true
		}
	}
	return false
}

// inBubble runs a test with a network of its own.
func inBubble(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		mem := storetest.NewMemory()
		n := open(t, mem, mem, dir)
		defer n.close()
		n.update(func(w kind.Writer) error {
			for _, id := range []string{"a", "b"} {
				if err := places.Create(w, &place{Meta: kind.Meta{ID: id}, Name: id}); err != nil {
					return err
				}
			}
			for _, id := range []string{"ann", "ben"} {
				p := &person{Meta: kind.Meta{ID: id}, Name: id, Badge: "badge " + id, Home: "a", Born: "b", Traits: []string{"kind"}}
				if err := people.Create(w, p); err != nil {
					return err
				}
			}
			thing := &item{Meta: kind.Meta{ID: "cup"}, Owner: "ben", Keepers: []string{"ann", "ben"}, Weights: map[string]int{"a": 1, "b": 2}}
			if err := items.Create(w, thing); err != nil {
				return err
			}
			return rules.Create(w, &rule{Meta: kind.Meta{ID: "r"}, Who: []string{"@ann", "@ben", "#kind"}})
		})
		n.visit(&visit{Meta: kind.Meta{ID: "v"}, Person: "ann", Token: "very secret"})
		test(t, n)
	})
}

// has reports whether a line starts and goes on like this.
func has(lines []string, start, rest string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, start) && strings.Contains(l, rest) })
}
