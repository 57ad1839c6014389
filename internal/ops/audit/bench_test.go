package audit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// forgetful is a store that keeps nothing that is written to it, and repeats nothing:
// what is left is what a State does.
type forgetful struct {
	store.Store
	rev store.Rev
}

func (f *forgetful) Load(context.Context, func(store.Record) error) (store.Mark, error) {
	f.rev = 1
	return store.Mark{Rev: 1, Head: 1}, nil
}

func (f *forgetful) Commit(ctx context.Context, _ store.Rev, head store.Head, ops []store.Op) (store.Written, error) {
	return f.Put(ctx, head, ops)
}

func (f *forgetful) Put(context.Context, store.Head, []store.Op) (store.Written, error) {
	f.rev++
	return store.Written{Rev: f.rev, After: f.rev - 1}, nil
}

func (f *forgetful) Follow(ctx context.Context, _ store.Rev, _ func(store.Batch) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// BenchmarkWrite changes an identity among ten thousand, with entries and without:
// once with a store that costs nothing, and once with the real one, where entries are
// packed too.
func BenchmarkWrite(b *testing.B) {
	for _, journal := range []state.Journal{nil, audit.Journal{}} {
		name := "without"
		if journal != nil {
			name = "with"
		}
		b.Run("memory/"+name, func(b *testing.B) { benchmarkWrite(b, &forgetful{Store: storetest.NewMemory()}, journal) })
		b.Run("etcd/"+name, func(b *testing.B) {
			st, err := etcdstore.Open(b.Context(), etcdstore.Options{Dir: b.TempDir()})
			must(b, err)
			defer st.Close()
			benchmarkWrite(b, st, journal)
		})
	}
}

func benchmarkWrite(b *testing.B, st store.Store, journal state.Journal) {
	s, err := state.Open(b.Context(), st, model.All, state.Options{Journal: journal})
	must(b, err)
	defer s.Close()
	fillIdentities(b, s)
	keeper := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1_000_000, Now: time.Now}
	if journal != nil {
		must(b, keeper.Keep(b.Context())) // what there is by now is nobody's cost
	}
	b.ReportAllocs()
	begun := cpu()
	defer func() { b.ReportMetric(float64((cpu()-begun).Microseconds())/float64(b.N), "cpu-µs/op") }()
	for i := 0; b.Loop(); i++ {
		changeIdentity(b, s, i)
		if journal != nil && i%packEvery == packEvery-1 {
			must(b, keeper.Keep(b.Context()))
		}
	}
}

// packEvery is after how many changes old entries are packed, as somebody does every
// few seconds.
const packEvery = 512

// BenchmarkMemory says what a controller's process needs for a million entries, with
// the engine in it, which is opened anew as after a restart.
func BenchmarkMemory(b *testing.B) {
	const all = 1_000_000
	dir := b.TempDir()
	measure := func(fill bool) (live, anonymous int64) {
		st, err := etcdstore.Open(b.Context(), etcdstore.Options{Dir: dir})
		must(b, err)
		defer st.Close()
		s, err := state.Open(b.Context(), st, model.All, state.Options{Journal: audit.Journal{}})
		must(b, err)
		defer s.Close()
		l := &audit.Log{State: s}
		if fill {
			fillLog(b, s, all)
			return 0, 0
		}
		askPage(b, l, `targetId = "nobody"`)
		live = heap()
		debug.FreeOSMemory()
		anonymous = resident(b)
		runtime.KeepAlive(l)
		return live, anonymous
	}
	for b.Loop() {
		none, noneThere := measure(false)
		measure(true)
		many, manyThere := measure(false)
		b.ReportMetric(float64(many-none)/1e6, "heap-MB")
		b.ReportMetric(float64(manyThere-noneThere)/1e6, "anonymous-MB")
	}
}

// resident is how much memory of its own the process has.
func resident(b *testing.B) (bytes int64) {
	text, err := os.ReadFile("/proc/self/status")
	must(b, err)
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &bytes); err == nil {
			return bytes << 10
		}
	}
	return 0
}

// BenchmarkQuery asks for pages of a million entries, as many as a store keeps by
// default, of 100,000 identities and by 200 who act.
func BenchmarkQuery(b *testing.B) {
	const all = 1_000_000
	st, err := etcdstore.Open(b.Context(), etcdstore.Options{Dir: b.TempDir()})
	must(b, err)
	defer st.Close()
	s, err := state.Open(b.Context(), st, model.All, state.Options{})
	must(b, err)
	defer s.Close()
	fillLog(b, s, all)

	before := heap()
	begun := time.Now()
	l := &audit.Log{State: s}
	askPage(b, l, `targetId = "nobody"`)
	b.Logf("the first question took %v; columns of %d entries take %.1f MB", time.Since(begun), all, float64(heap()-before)/1e6)
	for _, text := range []string{
		"sort by number desc",
		"sort by createdAt desc",
		`targetId = "i70000"`,
		`targetName = "identity-70000.branch.example" sort by createdAt desc`,
		`actorId = "admin-3" sort by number desc`,
		`actorName contains "min 19"`,
		`operation = "patchIdentity" and actorId in ["admin-3", "admin-77"]`,
		`createdAt > datetime(2026-01-01T05:00:00Z) and createdAt < datetime(2026-01-01T05:01:00Z)`,
		`targetKind = "identity" and actorId = "admin-3" and createdAt > datetime(2026-01-01T05:00:00Z) sort by createdAt desc`,
		`event != "deleted"`,
		`event != "deleted" sort by number desc skip 90000 limit 10`,
		`not (actorId = "admin-3" or operation = "deleteIdentity") sort by number desc`,
		`requestId = "request-900000"`,
		`event = "nothing"`,
	} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				askPage(b, l, text)
			}
		})
	}
	runtime.KeepAlive(l)
}

func askPage(b *testing.B, l *audit.Log, text string) {
	q, err := filter.Compile(model.AuditEntries.Symbols, text)
	must(b, err)
	if _, _, err := l.Query(b.Context(), q, q.Page(nil, nil)); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkVerify reads a log of 102,400 entries from end to end.
func BenchmarkVerify(b *testing.B) {
	const all = 800 * 128
	s, err := state.Open(b.Context(), storetest.NewMemory(), model.All, state.Options{})
	must(b, err)
	defer s.Close()
	fillLog(b, s, all)
	l := &audit.Log{State: s}
	begun := cpu()
	for b.Loop() {
		v, err := l.Verify(b.Context())
		must(b, err)
		if v.Found != all || len(v.Flaws) > 0 {
			b.Fatalf("%d entries are found of %d, with the flaws %v", v.Found, all, v.Flaws)
		}
	}
	b.ReportMetric(float64((cpu()-begun).Nanoseconds())/float64(b.N*all), "cpu-ns/entry")
}

// heap is what lives after what does not was collected.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fillLog puts entries of so many changes into the store, packed but for the last.
func fillLog(b *testing.B, s *state.State, all int) {
	rnd := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	chain := audit.Journal{}.Continue(s.Snapshot())
	identity := func(n int, attribute string) *model.Identity {
		rec := model.Identities.New()
		rec.ID, rec.Name, rec.Type = fmt.Sprint("i", n), fmt.Sprint("identity-", n, ".branch.example"), "Device"
		rec.CreatedAt, rec.UpdatedAt, rec.RoleAttributes = kind.MomentOf(at), kind.MomentOf(at), []string{attribute, "all-devices"}
		return rec
	}
	var blocks []*model.AuditBlock
	flush := func() {
		must(b, s.UpdateSessions(b.Context(), state.Program("filler"), func(tx *state.Tx) error {
			for _, block := range blocks {
				if err := tx.Recast(model.AuditBlocks.Def, block); err != nil {
					return err
				}
			}
			return nil
		}))
		blocks = nil
	}
	for made := 0; made < all; {
		var few []*model.AuditBlock
		for range 128 {
			at = at.Add(time.Duration(rnd.IntN(40)) * time.Millisecond)
			actor := rnd.IntN(200)
			by := state.Author{
				Kind: "identity", ID: fmt.Sprint("admin-", actor), Name: fmt.Sprint("Admin ", actor), Request: fmt.Sprint("request-", made),
				Source: fmt.Sprint("192.0.2.", actor), Session: fmt.Sprint("session-", actor, "-", made/5000), Factors: "password,code", Operation: "patchIdentity",
			}
			n := rnd.IntN(100_000)
			c := state.Change{Ref: state.Ref{Def: model.Identities.Def, ID: fmt.Sprint("i", n)}}
			c.Before, c.After = identity(n, fmt.Sprint("branch-", made%97)), identity(n, fmt.Sprint("branch-", made%89))
			switch rnd.IntN(10) {
			case 0, 1:
				by.Operation, c.Before = "createIdentity", nil
			case 2:
				by.Operation, c.After = "deleteIdentity", nil
			case 3:
				by, c.ID = state.Program("sessions"), "web"
				c.Def, c.Before = model.Services.Def, nil
				c.After = &model.Service{Meta: kind.Meta{ID: "web", CreatedAt: kind.MomentOf(at), UpdatedAt: kind.MomentOf(at)}, Name: "web", TerminatorStrategy: "random"}
			}
			next, entries, err := chain.Note(state.Write{Author: by, Changes: []state.Change{c}}, at)
			must(b, err)
			chain = next
			for _, e := range entries {
				few = append(few, e.Record.(*model.AuditBlock))
			}
			made++
		}
		if made+1000 > all {
			blocks = append(blocks, few...)
		} else {
			packed, _, err := audit.Together(few)
			must(b, err)
			blocks = append(blocks, packed)
		}
		if len(blocks) >= 16 || made >= all {
			flush()
		}
	}
	must(b, s.UpdateSessions(b.Context(), state.Program("filler"), func(tx *state.Tx) error {
		_, rec := chain.End(tx, false)
		head := rec.Record.(*model.AuditChain)
		head.Unpacked = head.Last - 1200
		return model.AuditChains.Create(tx, head)
	}))
}

// cpu is what the process has used of processors.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
