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
	"netkeep.internal/test/machine"
)

var (
	killRounds = flag.Int("kill-rounds", 50, "how often to kill the controller")
	killSeed   = flag.Uint64("kill-seed", 0, "seed of the random moments; 0 takes one from the clock")
)

// TestKill9 kills a controller again and again while writers and holders are at work: records,
// invitations, certificates, API sessions, sessions and grants. At
// every restart each acknowledged write is there as a whole, and nothing else
// but what was in flight, as a whole or not at all; and the audit log says so.
func TestKill9(t *testing.T) {
	t.Parallel() // it waits more than it works
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -kill-seed=%d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	data := filepath.Join(t.TempDir(), "data")
	// Without a router there are no sessions. Starts begin with what memory had at some moment.
	router := []string{"--router", "127.0.0.1:" + machine.Port(t)}
	router = append(router, checkpoints...)
	p := controller(t, data, router...)
	c := p.client(data)
	crew := newCrew(t, c, seed)
	var log entries
	for range *killRounds {
		writeUntilKilled(p, c, crew, moments.Int64N(mostWrites), time.Duration(moments.Int64N(int64(5*time.Millisecond))))
		if moments.IntN(8) == 0 { // and in the middle of the next start
			q := launch(t, settings{args: append([]string{"run", "--data", data, "--listen", "127.0.0.1:0"}, router...)})
			q.kill(time.Duration(moments.Int64N(int64(300 * time.Millisecond))))
		}
		p = controller(t, data, router...)
		// The session of the first round is a write like any other.
		c = c.on(t, p, data)
		log.audit(t, c, crew.settle(t, c))
		if t.Failed() {
			return
		}
	}
	var again entries // none of those that were read before is another now
	again.audit(t, c, c.everything(t))
	if diff := cmp.Diff(log.last, again.last); diff != "" {
		t.Errorf("entries are not as they were (-before +now):\n%s", diff)
	}
	c.scan(t)
	p.stop()
	crew.report(t, *killRounds)
}

// crew are those who write, all at once.
type crew struct {
	writers []*writer
	holders []*holder
}

// newCrew makes one of four writers and four holders, who write nothing yet.
func newCrew(t *testing.T, c *client, seed uint64) *crew {
	t.Helper()
	all := &crew{}
	service := c.openToHolders(t)
	for i := range 4 {
		all.writers = append(all.writers, newWriter(fmt.Sprintf("w%d-", i), rand.New(rand.NewPCG(seed, uint64(i+1)))))
		all.holders = append(all.holders, newHolder(fmt.Sprintf("holder%c", 'A'+i), rand.New(rand.NewPCG(seed, uint64(i+100))), service))
	}
	return all
}

// settle compares what they know with what is there, and returns that of the writers.
func (all *crew) settle(t *testing.T, c *client) map[string]map[string]M {
	t.Helper()
	there := c.everything(t)
	settle(t, there, all.writers)
	standing := c.standing(t)
	for _, h := range all.holders {
		if err := h.settle(c, standing[h.name]); err != nil {
			t.Error(err)
		}
	}
	return there
}

// scan has the controller look whether all that is stored hangs together.
func (c *client) scan(t *testing.T) {
	t.Helper()
	c.must(t, 202, http.MethodPost, "database/check-data-integrity", nil)
	for {
		scan := c.must(t, 200, http.MethodGet, "database/data-integrity-results", nil).body["data"].(M)
		if scan["inProgress"] != true {
			if found := scan["results"].([]any); len(found) > 0 {
				t.Errorf("the scan found %v", found)
			}
			return
		}
		<-time.After(20 * time.Millisecond)
	}
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
func writeUntilKilled(p *process, c *client, all *crew, writes int64, after time.Duration) {
	ended, enough := all.write(c, writes)
	select {
	case <-enough:
	case <-ended: // of themselves, which they tell of
	}
	p.kill(after)
	<-ended
}

// write lets them write until they are not answered any more, which closes ended;
// enough is closed when so many writes were acknowledged.
func (all *crew) write(c *client, writes int64) (ended, enough chan struct{}) {
	var done sync.WaitGroup
	var acknowledged atomic.Int64
	ended, enough = make(chan struct{}), make(chan struct{})
	if writes == 0 {
		close(enough)
	}
	count := func() {
		if acknowledged.Add(1) == writes {
			close(enough)
		}
	}
	for _, w := range all.writers {
		done.Go(func() { w.write(c, count) })
	}
	for _, h := range all.holders {
		done.Go(func() { h.write(c, count) })
	}
	go func() { done.Wait(); close(ended) }()
	return ended, enough
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

// audited are those whose every change has an entry that the test reads.
var audited = map[string]string{
	"configs": "config", "identities": "identity", "services": "service", "authenticators": "authenticator", "enrollments": "enrollment", "grants": "grant",
}

// everything is what there is of what writers write, by path and id.
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
	if log := c.verified(t); log["intact"] != true {
		t.Errorf("the audit log is %v", log)
	}
	if e.last == nil {
		e.last = map[string]M{}
	}
	kinds := slices.Collect(maps.Values(audited))
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
	for path, kind := range audited {
		recs := there[path]
		if written[path] == "" {
			recs = c.list(t, path)
		}
		for id, rec := range recs {
			last := e.last[id]
			if last == nil || last["event"] == "deleted" || written[path] != "" && last["targetName"] != rec["name"] {
				t.Errorf("%s %s %s is there, and its last entry is %v", kind, id, rec["name"], last)
			}
		}
		for id, last := range e.last {
			if last["targetKind"] == kind && last["event"] != "deleted" && recs[id] == nil {
				t.Errorf("%s %s is gone, and its last entry is %v", kind, id, last)
			}
		}
	}
}

// verified is what the controller finds when it reads all entries, as many in a request
// as there is time for.
func (c *client) verified(t *testing.T) M {
	t.Helper()
	all := M{"next": 1.0, "follows": "", "intact": true}
	for intact := true; intact && all["next"] != 0.0; intact = all["intact"] == true {
		part := url.Values{"from": {fmt.Sprintf("%.0f", all["next"])}, "follows": {all["follows"].(string)}}
		all = c.must(t, 200, http.MethodGet, "audit-verification?"+part.Encode(), nil).body["data"].(M)
	}
	return all
}

// report says what they did in so many rounds.
func (all *crew) report(t *testing.T, rounds int) {
	t.Helper()
	var records, holders tally
	for _, w := range all.writers {
		records.add(w.tally)
	}
	did := map[string]int{}
	for _, h := range all.holders {
		holders.add(h.tally)
		for what, n := range h.did {
			did[what] += n
		}
	}
	t.Logf("in %d rounds, of records: %v", rounds, records)
	t.Logf("in %d rounds, of holders: %v: %v", rounds, holders, did)
	if min(records.acknowledged, holders.acknowledged) < 4*rounds {
		t.Error("so few writes were acknowledged that the test tests nothing")
	}
}

// tally is what became of somebody's writes.
type tally struct {
	acknowledged, open, happened int
}

func (t *tally) add(of tally) {
	t.acknowledged, t.open, t.happened = t.acknowledged+of.acknowledged, t.open+of.open, t.happened+of.happened
}

func (t tally) String() string {
	return fmt.Sprintf("%d writes were acknowledged; of %d in flight %d happened", t.acknowledged, t.open, t.happened)
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
