package program_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
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
	t.Parallel() // it waits more than it works
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -kill-seed=%d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	c := p.client(data)
	writers := make([]*writer, 4)
	for i := range writers {
		writers[i] = newWriter(fmt.Sprintf("w%d-", i), rand.New(rand.NewPCG(seed, uint64(i+1))))
	}
	var log entries
	for range *killRounds {
		writeUntilKilled(p, c, writers, moments.Int64N(mostWrites), time.Duration(moments.Int64N(int64(5*time.Millisecond))))
		if moments.IntN(8) == 0 { // and in the middle of the next start
			q := launch(t, settings{args: []string{"run", "--data", data, "--listen", "127.0.0.1:0"}})
			q.kill(time.Duration(moments.Int64N(int64(300 * time.Millisecond))))
		}
		p = controller(t, data)
		// The session of the first round is a write like any other.
		c = c.on(t, p, data)
		there := c.everything(t)
		settle(t, there, writers)
		log.audit(t, c, there)
		if t.Failed() {
			return
		}
	}
	var again entries // none of those that were read before is another now
	again.audit(t, c, c.everything(t))
	if diff := cmp.Diff(log.last, again.last); diff != "" {
		t.Errorf("entries are not as they were (-before +now):\n%s", diff)
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

// written are the kinds that writers write, by path.
var written = map[string]string{"configs": "config", "identities": "identity", "services": "service"}

// everything is what there is of them, by path and id.
func (c *client) everything(t *testing.T) map[string]map[string]M {
	t.Helper()
	there := map[string]map[string]M{}
	for path := range written {
		there[path] = c.list(t, path)
	}
	return there
}

// settle compares what the writers know with what is there.
func settle(t *testing.T, there map[string]map[string]M, writers []*writer) {
	t.Helper()
	owned := map[string]records{}
	for path, recs := range there {
		for id, rec := range recs {
			owner, _, _ := strings.Cut(rec["name"].(string), "-")
			if owned[owner] == nil {
				owned[owner] = records{}
			}
			owned[owner][path+"/"+id] = shown(path, rec)
		}
	}
	for _, w := range writers {
		got := owned[strings.TrimSuffix(w.mark, "-")]
		if got == nil {
			got = records{}
		}
		if err := w.settle(got); err != nil {
			t.Error(err)
		}
	}
}

// entries are those of the audit log that were read so far.
type entries struct {
	read int          // the number of the last
	last map[string]M // of changes of what writers write, the last by what was changed
}

// audit reads the entries that are new, and compares what there is with what all of them
// say: none is missing, and there is no change without one.
func (e *entries) audit(t *testing.T, c *client, there map[string]map[string]M) {
	t.Helper()
	if log := c.must(t, 200, http.MethodGet, "audit-verification", nil).body["data"].(M); log["intact"] != true {
		t.Errorf("the audit log is %v", log)
	}
	if e.last == nil {
		e.last = map[string]M{}
	}
	kinds := slices.Collect(maps.Values(written))
	fresh := url.QueryEscape(fmt.Sprintf("number > %d sort by number limit none", e.read))
	for _, entry := range c.must(t, 200, http.MethodGet, "audit-entries?filter="+fresh, nil).body["data"].([]any) {
		entry := entry.(M)
		if e.read++; entry["number"] != float64(e.read) {
			t.Fatalf("entry %v comes as number %d", entry["number"], e.read)
		}
		event, kind := entry["event"], entry["targetKind"]
		if (event == "created" || event == "updated" || event == "deleted") && slices.Contains(kinds, kind.(string)) {
			e.last[entry["targetId"].(string)] = entry
		}
	}
	for path, kind := range written {
		for id, rec := range there[path] {
			if last := e.last[id]; last == nil || last["event"] == "deleted" || last["targetName"] != rec["name"] {
				t.Errorf("%s %s is there, and its last entry is %v", kind, rec["name"], last)
			}
		}
		for id, last := range e.last {
			if last["targetKind"] == kind && last["event"] != "deleted" && there[path][id] == nil {
				t.Errorf("%s %s is gone, and its last entry is %v", kind, id, last)
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
