package state_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// device has the size and the indexes of an identity.
type device struct {
	kind.Meta
	Name       string            `json:"name" kind:"unique,searched"`
	ExternalID string            `json:"externalId" kind:"unique,nullable"`
	Type       string            `json:"type" kind:"index"`
	PolicyID   string            `json:"policyId" kind:"ref=place:restrict"`
	IsAdmin    bool              `json:"isAdmin"`
	Attributes []string          `json:"roleAttributes" kind:"attributes"`
	AppData    jsontext.Value    `json:"appData" kind:"nofilter"`
	Cost       int               `json:"cost"`
	Costs      map[string]int    `json:"costs" kind:"ref=place:clear"`
	Env        map[string]string `json:"env" kind:"nofilter"`
}

var (
	devices   = kind.Define(kind.Spec[device]{Name: "device", Path: "devices", Doc: "A device."})
	tickets   = kind.Define(kind.Spec[ticket]{Name: "ticket", Path: "tickets", Doc: "A ticket.", Lane: kind.Session})
	deviceSet = kind.NewCatalog(places.Def, devices.Def, tickets.Def)
)

// ticket has the size and the indexes of an API session.
type ticket struct {
	kind.Meta
	Device   string `json:"deviceId" kind:"index"`
	Token    string `json:"token" kind:"unique"`
	Address  string `json:"address"`
	LastUsed string `json:"lastUsed"`
}

// bench is an author as requests have them.
var bench = state.Author{
	Kind: "device", ID: "00000000001", Name: "device-0000001.branch-1.example", Operation: "patchDevice",
	Request: "00000000002", Source: "192.0.2.1",
}

func newDevice(i int) *device {
	return &device{
		Meta:       kind.Meta{ID: fmt.Sprintf("%011d", i*7919%1_000_003), Tags: kind.Tags{"site": "north"}},
		Name:       fmt.Sprintf("device-%07d.branch-%d.example", i, i%97),
		Type:       fmt.Sprintf("type-%d", i%10),
		PolicyID:   "default",
		Attributes: []string{fmt.Sprintf("branch-%d", i%97), fmt.Sprintf("half-%d", i%2), "all-devices"},
		AppData:    jsontext.Value(`{"owner":"somebody"}`),
		Env:        map[string]string{"os": "linux", "arch": "amd64", "hostname": fmt.Sprintf("host-%d", i)},
	}
}

// only is a store of memory that does not repeat to a State what it wrote
// itself, nor keep it: benchmarks measure the State.
type only struct {
	store.Store
	records []store.Record
	rev     store.Rev
}

func (o *only) Load(_ context.Context, fn func(store.Record) error) (store.Mark, error) {
	for _, rec := range o.records {
		if err := fn(rec); err != nil {
			return store.Mark{}, err
		}
	}
	return store.Mark{Rev: o.rev, Head: o.rev}, nil
}

func (o *only) Commit(ctx context.Context, _ store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	return o.Put(ctx, head, ops)
}

func (o *only) Put(context.Context, store.Head, []store.Op) (store.Written, error) {
	o.rev++
	return store.Written{Rev: o.rev, After: o.rev - 1}, nil
}

func (o *only) Follow(ctx context.Context, _ store.Rev, _ func(store.Batch) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// filled returns a store with n devices.
func filled(b *testing.B, n int) *only {
	b.Helper()
	add := func(o *only, d *kind.Def, rec kind.Record) {
		value, err := d.Encode(rec)
		if err != nil {
			b.Fatal(err)
		}
		o.records = append(o.records, store.Record{Key: d.Name + "/" + rec.Base().ID, Value: value, Rev: 1})
	}
	o := &only{Store: storetest.NewMemory(), rev: 1}
	for i := range n {
		add(o, devices.Def, newDevice(i))
	}
	add(o, places.Def, &place{Meta: kind.Meta{ID: "default"}})
	slices.SortFunc(o.records, func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) })
	return o
}

func openFilled(b *testing.B, n int) *state.State {
	b.Helper()
	s, err := state.Open(b.Context(), filled(b, n), deviceSet, state.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

func sizes(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { run(b, n) })
	}
}

// BenchmarkCreate deletes what it creates, so that the table keeps its size.
func BenchmarkCreate(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s := openFilled(b, n)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			rec := newDevice(n + i%100)
			err := s.Update(b.Context(), bench, func(tx *state.Tx) error { return devices.Create(tx, rec) })
			if err != nil {
				b.Fatal(err)
			}
			err = s.Update(b.Context(), bench, func(tx *state.Tx) error { return devices.Delete(tx, rec.ID) })
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEditAttribute(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s := openFilled(b, n)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			id := newDevice(i % n).ID
			err := s.Update(b.Context(), bench, func(tx *state.Tx) error {
				return devices.Edit(tx, id, func(d *device) error {
					d.Attributes[0] = fmt.Sprintf("branch-%d", (i+1)%97)
					return nil
				})
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEditOther(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s := openFilled(b, n)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			id := newDevice(i % n).ID
			err := s.Update(b.Context(), bench, func(tx *state.Tx) error {
				return devices.Edit(tx, id, func(d *device) error { d.Cost = i; return nil })
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkReaders edits while so many wait: for what is written, for something
// else, or not at all for now.
func BenchmarkReaders(b *testing.B) {
	for _, wait := range []struct {
		name  string
		kinds []*kind.Def
		idle  bool
	}{{name: "idle", idle: true}, {name: "other", kinds: []*kind.Def{tickets.Def}}, {name: "same"}} {
		for _, readers := range []int{0, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", wait.name, readers), func(b *testing.B) {
				const n = 50_000 // or the stacks of those who wait would be most of what there is to collect
				s := openFilled(b, n)
				ctx, cancel := context.WithCancel(b.Context())
				var ready, done sync.WaitGroup
				for range readers {
					sub := s.Subscribe(wait.kinds...)
					ready.Add(1)
					done.Go(func() {
						_, _ = sub.Next(ctx) // everything
						ready.Done()
						if wait.idle {
							<-ctx.Done()
						}
						for ctx.Err() == nil {
							_, _ = sub.Next(ctx)
						}
					})
				}
				ready.Wait()
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					id := newDevice(i % n).ID
					err := s.Update(b.Context(), bench, func(tx *state.Tx) error {
						return devices.Edit(tx, id, func(d *device) error { d.Cost = i; return nil })
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				cancel()
				done.Wait()
			})
		}
	}
}

// BenchmarkSession opens and ends a session.
func BenchmarkSession(b *testing.B) {
	s := openFilled(b, 10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprintf("c%024d", i%1000)
		err := s.UpdateSessions(b.Context(), bench, func(tx *state.Tx) error {
			return tickets.Create(tx, &ticket{Meta: kind.Meta{ID: id}, Device: "d", Token: id, Address: "192.0.2.1"})
		})
		if err != nil {
			b.Fatal(err)
		}
		err = s.UpdateSessions(b.Context(), bench, func(tx *state.Tx) error { return tickets.Delete(tx, id) })
		if err != nil {
			b.Fatal(err)
		}
	}
}

// many is how many records there are where pages of them are asked for, and where they are loaded.
var many = flag.Int("records", 100_000, "how many records BenchmarkQuery and BenchmarkOpen have")

func BenchmarkQuery(b *testing.B) {
	n := *many
	s := openFilled(b, n)
	for _, text := range []string{
		`name contains "77" sort by name limit 100`,
		`name contains "77" sort by cost limit 100`,
		`name icontains "DEVICE-00077" limit 100`,
		`name contains "device" sort by name limit 100`,
		`name contains "device" limit 100`,
		fmt.Sprintf(`true sort by name skip %d limit 100`, n/10*9),
		fmt.Sprintf(`true skip %d limit 100`, n/10*9),
		fmt.Sprintf(`type = "type-3" skip %d limit 100`, n/100*9),
		`name = "device-0000077.branch-77.example"`,
		`type = "type-3" limit 100`,
		`type = "type-3" and name = "device-0000073.branch-73.example"`,
		`true limit 100`,
	} {
		q, err := filter.Compile(devices.Symbols, text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Snapshot().Query(devices.Def, q, q.Page(nil, nil))
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	n := *many
	st := filled(b, n)
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, err := state.Open(b.Context(), st, deviceSet, state.Options{})
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "heap-B/record")
		if s.Snapshot().Len(devices.Def) != n {
			b.Fatal("not all were loaded")
		}
		s.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
}
