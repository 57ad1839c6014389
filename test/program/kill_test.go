package program_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/schema"
)

var (
	killRounds = flag.Int("kill-rounds", 50, "how often to kill the controller")
	killSeed   = flag.Uint64("kill-seed", 0, "seed of the random moments; 0 takes one from the clock")
)

// TestKill9 kills a controller again and again while writers are at work. At
// every restart each acknowledged write is there as a whole, and nothing else
// but what was in flight, as a whole or not at all.
func TestKill9(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -kill-seed=%d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	first := p.client(data)
	writers := make([]*writer, 4)
	for i := range writers {
		writers[i] = newWriter(fmt.Sprintf("w%d-", i), rand.New(rand.NewPCG(seed, uint64(i+1))))
	}
	for range *killRounds {
		writeUntilKilled(p, first.on(t, p, data), writers, moments.Int64N(mostWrites), time.Duration(moments.Int64N(int64(5*time.Millisecond))))
		if moments.IntN(8) == 0 { // and in the middle of the next start
			q := launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}})
			q.kill(time.Duration(moments.Int64N(int64(300 * time.Millisecond))))
		}
		p = controller(t, data)
		// The session of the first round is a write like any other.
		settle(t, first.on(t, p, data), writers)
		audited(t, first.on(t, p, data))
		if t.Failed() {
			return
		}
	}
	p.stop()
	report(t, writers)
}

// on returns the client as one of another process on the same data.
func (c *client) on(t *testing.T, p *process, data string) *client {
	t.Helper()
	other := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	other.token = c.token
	return other
}

// mostWrites is how many writes there are at most between two kills.
const mostWrites = 80

// writeUntilKilled lets the writers write and ends the process in the midst, a
// moment after so many writes were acknowledged.
func writeUntilKilled(p *process, c *client, writers []*writer, writes int64, after time.Duration) {
	var done sync.WaitGroup
	var acknowledged atomic.Int64
	enough := make(chan struct{})
	if writes == 0 {
		close(enough)
	}
	for _, w := range writers {
		done.Go(func() {
			w.write(c, func() {
				if acknowledged.Add(1) == writes {
					close(enough)
				}
			})
		})
	}
	ended := make(chan struct{})
	go func() { done.Wait(); close(ended) }()
	select {
	case <-enough:
	case <-ended: // of themselves, which they tell of
	}
	p.kill(after)
	<-ended
}

// kill ends the process at a moment that it cannot prepare for.
func (p *process) kill(after time.Duration) {
	p.t.Helper()
	<-time.After(after)
	p.signal(os.Kill)
	p.wait()
}

// settle compares what the writers know with what is there.
func settle(t *testing.T, c *client, writers []*writer) {
	t.Helper()
	there := map[string]records{}
	for _, path := range []string{"configs", "identities", "services"} {
		for id, rec := range c.list(t, path) {
			owner, _, _ := strings.Cut(rec["name"].(string), "-")
			if there[owner] == nil {
				there[owner] = records{}
			}
			there[owner][path+"/"+id] = shown(path, rec)
		}
	}
	for _, w := range writers {
		got := there[strings.TrimSuffix(w.mark, "-")]
		if got == nil {
			got = records{}
		}
		if err := w.settle(got); err != nil {
			t.Error(err)
		}
	}
}

// audited compares what there is with what its entries say: none is missing, and
// there is no change without one.
func audited(t *testing.T, c *client) {
	t.Helper()
	if log := c.must(t, 200, http.MethodGet, "audit-verification", nil).body["data"].(M); log["intact"] != true {
		t.Errorf("the audit log is %v", log)
	}
	entries := c.list(t, "audit-entries")
	last := map[string]M{}
	for _, number := range slices.Sorted(maps.Keys(entries)) {
		e := entries[number]
		if event := e["event"]; event != "created" && event != "updated" && event != "deleted" {
			continue // it is of no change
		}
		last[e["targetId"].(string)] = e
	}
	for kind, path := range map[string]string{"config": "configs", "identity": "identities", "service": "services"} {
		there := c.list(t, path)
		for id, rec := range there {
			if e := last[id]; e == nil || e["event"] == "deleted" || e["targetName"] != rec["name"] {
				t.Errorf("%s %s is there, and its last entry is %v", kind, rec["name"], e)
			}
		}
		for id, e := range last {
			if e["targetKind"] == kind && e["event"] != "deleted" && there[id] == nil {
				t.Errorf("%s %s is gone, and its last entry is %v", kind, id, e)
			}
		}
	}
}

func report(t *testing.T, writers []*writer) {
	t.Helper()
	acknowledged, happened, open := 0, 0, 0
	for _, w := range writers {
		acknowledged, happened, open = acknowledged+w.acknowledged, happened+w.happened, open+w.open
	}
	t.Logf("%d writes were acknowledged; of %d in flight at a kill %d happened", acknowledged, open, happened)
	if acknowledged < 10*(*killRounds) {
		t.Errorf("only %d writes were acknowledged: the test tests nothing", acknowledged)
	}
}

// TestKillFirstStart kills a controller while it makes its data directory: a
// later start finishes the work.
func TestKillFirstStart(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	for range 6 {
		data := filepath.Join(t.TempDir(), "data")
		s := settings{
			args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"},
			env:  []string{"NETKEEP_ADMIN_PASSWORD=" + password},
		}
		for range 2 {
			launch(t, s).kill(time.Duration(moments.Int64N(int64(500 * time.Millisecond))))
		}
		p := controller(t, data)
		c := p.client(data)
		if diff := cmp.Diff(len(schema.BuiltIn()), len(c.list(t, "config-types"))); diff != "" {
			t.Errorf("built-in config types differ (-want +got):\n%s", diff)
		}
		admins := 0
		for _, identity := range c.list(t, "identities") {
			if identity["isDefaultAdmin"] == true {
				admins++
			}
		}
		if admins != 1 {
			t.Errorf("there are %d default admins", admins)
		}
		p.stop()
	}
}
