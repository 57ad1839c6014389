package torture

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

var badRequests = flag.Int("requests", 4000, "how many bad requests are made")

// aside are operations that are left out: they end the sessions that all others need, or
// write files as often as they are asked.
var aside = regexp.MustCompile(`(?i)snapshot|cluster|controllers|rotat|fixDataIntegrity|deleteCurrentApiSession|logout`)

// TestBadRequests makes requests of our own specification, wrong in one way or in
// several, for strangers, users and admins: none is the server's failure, none hangs, and
// when they are over the server has kept nothing of them.
func TestBadRequests(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) {
		c.Limits.Logins, c.Limits.Enrollments, c.Limits.Guesses = 0, 0, 0
		c.Audit.Entries = 1000
		c.Log.Level = "error"
	})
	w := newRequester(t, s)
	w.run(t, *badRequests/10) // so that what is made at the first time is there
	w.clean(t)
	before, goroutines := heap(), runtime.NumGoroutine()
	for done := 0; done < *badRequests; done += 1000 {
		w.run(t, min(1000, *badRequests-done))
		if t.Failed() {
			return
		}
	}
	w.clean(t)
	t.Logf("%d requests to %d operations: %v", w.count.Load(), len(w.ops), w.statuses())
	servertest.Eventually(t, time.Minute, "the end of what the requests began", func() bool { return runtime.NumGoroutine() <= goroutines+20 })
	// The log of the test keeps lines, and the store pages; neither as much as a body a request.
	most := before + 48<<20 + uint64(w.count.Load())*300
	servertest.Eventually(t, time.Minute, "memory as before", func() bool { return heap() <= most })
	t.Logf("memory in use was %d MiB and is %d MiB", before>>20, heap()>>20)
}

// operation is one of a specification.
type operation struct {
	method, path string
	op           *openapi3.Operation
}

// requester makes requests.
type requester struct {
	s     *servertest.Server
	http  *http.Client
	ops   []operation
	count atomic.Int64

	chance *rand.Rand
	admin  *servertest.Client

	mu     sync.Mutex
	ids    []string // of records that there are
	first  map[string]bool
	user   servertest.User
	tokens [3]string // of nobody, a user and an admin
	got    map[int]int
}

func newRequester(t *testing.T, s *servertest.Server) *requester {
	w := &requester{
		s: s, http: &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS(), ForceAttemptHTTP2: true}, Timeout: time.Minute},
		chance: chance(t), admin: s.Login(t, servertest.Username, servertest.Password), first: map[string]bool{}, got: map[int]int{},
	}
	t.Cleanup(w.http.CloseIdleConnections)
	for _, root := range []string{api.ClientRoot, api.ManagementRoot, api.FabricRoot} {
		all := s.Operations(root)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			method, path, _ := strings.Cut(name, " ")
			if !aside.MatchString(all[name].OperationID) && !aside.MatchString(path) {
				w.ops = append(w.ops, operation{method, path, all[name]})
			}
		}
	}
	w.user = s.AddUser(t, false)
	for _, id := range w.records(t) {
		w.first[id] = true
	}
	w.login(t)
	return w
}

// login opens the sessions that requests are made with.
func (w *requester) login(t *testing.T) {
	user := w.s.Login(t, w.user.Username, w.user.Password).Token
	admin := w.s.Login(t, servertest.Username, servertest.Password).Token
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens = [3]string{"", user, admin}
}

// collections are the paths of all lists that admins may delete from.
func (w *requester) collections() (all []string) {
	for _, o := range w.ops {
		collection, found := strings.CutSuffix(o.path, "/{id}")
		if found && o.method == http.MethodDelete && strings.HasPrefix(o.path, api.ManagementRoot) && !strings.Contains(collection, "{") {
			all = append(all, collection)
		}
	}
	return all
}

// records are the ids of all records.
func (w *requester) records(t *testing.T) (ids []string) {
	for _, path := range w.collections() {
		if strings.Contains(path, "current") || strings.HasSuffix(path, "/api-sessions") {
			continue
		}
		for _, rec := range w.admin.For(t).Get(path + "?limit=500").Want(200).List() {
			ids = append(ids, rec["id"].(string))
		}
	}
	return ids
}

// clean deletes what the requests have made.
func (w *requester) clean(t *testing.T) {
	t.Helper()
	for range 3 { // some hold others
		for _, path := range w.collections() {
			if strings.Contains(path, "current") {
				continue
			}
			for _, rec := range w.admin.For(t).Get(path + "?limit=500").Want(200).List() {
				if id := rec["id"].(string); !w.first[id] && !strings.HasSuffix(path, "/api-sessions") {
					w.admin.For(t).Delete(path + "/" + id)
				}
			}
		}
	}
}

// run makes so many requests, several at a time.
func (w *requester) run(t *testing.T, n int) {
	t.Helper()
	w.login(t) // the last ones may have been logged out
	w.mu.Lock()
	w.ids = slices.DeleteFunc(w.records(t), func(id string) bool { return w.first[id] })
	w.mu.Unlock()
	var slow struct {
		sync.Mutex
		request
		took time.Duration
	}
	var all sync.WaitGroup
	left := atomic.Int64{}
	left.Store(int64(n))
	for range 6 {
		mine := rand.New(rand.NewPCG(w.chance.Uint64(), 0))
		all.Go(func() {
			for left.Add(-1) >= 0 {
				q := w.make(mine)
				took := w.send(t, q)
				slow.Lock()
				if took > slow.took {
					slow.request, slow.took = q, took
				}
				slow.Unlock()
			}
		})
	}
	all.Wait()
	// A machine that is busy holds up any of them, but not the same one ever again.
	for range 10 {
		if slow.took <= time.Second {
			return
		}
		slow.took = w.send(t, slow.request)
	}
	t.Errorf("%.2000s took %s, ten times", slow.what(), slow.took)
}

// request is one that was made.
type request struct {
	operation

	target string
	body   []byte
	header http.Header
}

func (q request) what() string { return q.method + " " + q.target + " " + string(q.body) }

// make makes a request.
func (w *requester) make(r *rand.Rand) request {
	o := w.ops[r.IntN(len(w.ops))]
	g := &generator{Rand: r, ids: w.known()}
	q := request{operation: o, target: g.path(o), header: http.Header{}}
	body, contentType := g.body(o.op)
	q.body = body
	if contentType != "" {
		q.header.Set("Content-Type", contentType)
	}
	g.headers(o.op, q.header)
	if token := w.tokens[g.pick(1, 3, 6)]; token != "" {
		q.header.Set("net-session", token)
	}
	return q
}

// send sends a request, looks at what comes back, and says how long that took.
func (w *requester) send(t *testing.T, q request) (took time.Duration) {
	req, err := http.NewRequestWithContext(t.Context(), q.method, w.s.URL+q.target, bytes.NewReader(q.body))
	if err != nil {
		return 0 // it cannot be sent
	}
	req.Header = q.header.Clone()
	what, begun := q.what(), time.Now()
	resp, err := w.http.Do(req)
	if err != nil {
		t.Errorf("%.2000s: %v", what, err)
		return time.Since(begun)
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		w.counted(resp.StatusCode)
		return time.Since(begun)
	}
	answer, err := io.ReadAll(resp.Body)
	took = time.Since(begun)
	w.counted(resp.StatusCode)
	switch {
	case err != nil:
		t.Errorf("%.2000s: its answer ends: %v", what, err)
	case resp.StatusCode >= 500:
		t.Errorf("%.2000s: status %d, %.2000s", what, resp.StatusCode, answer)
	case resp.StatusCode >= 400 && q.method != http.MethodHead:
		w.explained(t, what, answer)
	}
	return took
}

// explained fails the test if a refusal does not say what it is.
func (w *requester) explained(t *testing.T, what string, answer []byte) {
	var said struct {
		Error struct {
			Code, Message string
			Cause         struct{ Message string }
		}
	}
	if err := json.Unmarshal(answer, &said); err != nil || said.Error.Code == "" || said.Error.Message+said.Error.Cause.Message == "" {
		t.Errorf("%.2000s: is refused with %.500s: %v", what, answer, err)
	}
}

func (w *requester) known() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ids
}

func (w *requester) counted(status int) {
	w.count.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got[status]++
}

func (w *requester) statuses() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.got)
}
