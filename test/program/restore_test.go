package program_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
)

// TestRestore takes a snapshot while writers are at work and restores it. The
// restored controller answers every list like one that was given, record by
// record, what the log of the first held at that revision.
func TestRestore(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "first")
	p := controller(t, data)
	c := p.client(data)
	furnish(t, c)
	writers := make([]*writer, 4)
	var done sync.WaitGroup
	for i := range writers {
		writers[i] = newWriter(fmt.Sprintf("w%d-", i), rand.New(rand.NewPCG(1, uint64(i))))
		done.Go(func() { writers[i].write(c, func() {}) })
	}
	for written := 0; written < 100; {
		<-time.After(10 * time.Millisecond)
		written = len(c.list(t, "configs")) + len(c.list(t, "services")) + len(c.list(t, "identities"))
	}
	c.must(t, 200, http.MethodPost, "database/snapshot", nil)
	c.must(t, 429, http.MethodPost, "database/snapshot", nil)
	p.stop()
	stopped := time.Now()
	done.Wait()
	for _, w := range writers {
		if w.failure != nil {
			t.Fatal(w.failure)
		}
	}
	file := onlySnapshot(t, data)

	restored := filepath.Join(dir, "restored")
	r := launch(t, settings{args: []string{"restore", "--data", restored, file}})
	if code := r.wait(); code != 0 || !strings.Contains(r.stdout.String(), filepath.Join(restored, "pki")) {
		t.Fatalf("restore ended with %d and printed %q", code, r.stdout.String())
	}
	replayed := filepath.Join(dir, "replayed")
	if records, later := replay(t, data, replayed, revision(t, file)); records < 100 || later == 0 {
		t.Fatalf("the snapshot has %d records, and %d batches were written after it: the test tests nothing", records, later)
	}
	copyKeys(t, data, restored, replayed)
	got, want := controller(t, restored), controller(t, replayed)
	compareLists(t, c.on(t, got, restored), c.on(t, want, replayed), stopped)
	awaitTrue(t, "the entry of the restore", func() bool { return c.on(t, got, restored).happened(t, "snapshot-restored") == 1 })
	checkModes(t, restored)
	got.stop()
	want.stop()
}

// furnish adds one of everything that writers do not write.
func furnish(t *testing.T, c *client) {
	t.Helper()
	for _, add := range []struct {
		path string
		body M
	}{
		{"auth-policies", M{"name": "p", "primary": M{
			"cert": M{"allowed": true, "allowExpiredCerts": false}, "extJwt": M{"allowed": false, "allowedSigners": []any{}},
			"updb": M{"allowed": true, "minPasswordLength": 6, "requireNumberChar": false, "requireSpecialChar": false, "requireMixedCase": false, "maxAttempts": 5, "lockoutDurationMinutes": 1},
		}, "secondary": M{"requireTotp": false}}},
		{"edge-routers", M{"name": "edge", "isTunnelerEnabled": true}},
		{"routers", M{"name": "transit"}},
		{"posture-checks", M{"name": "domain", "typeId": "DOMAIN", "domains": []any{"example.org"}}},
		{"service-policies", M{"name": "dial", "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"#all"}, "serviceRoles": []any{"#all"}}},
		{"edge-router-policies", M{"name": "erp", "semantic": "AnyOf", "identityRoles": []any{"#all"}, "edgeRouterRoles": []any{"#all"}}},
		{"service-edge-router-policies", M{"name": "serp", "semantic": "AnyOf", "serviceRoles": []any{"#all"}, "edgeRouterRoles": []any{"#all"}}},
		{"identities", M{"name": "invited", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}},
	} {
		c.must(t, 201, http.MethodPost, add.path, add.body)
	}
}

// onlySnapshot returns the one file in the directory of snapshots.
func onlySnapshot(t *testing.T, data string) string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(data, "snapshots"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there are the snapshots %v: %v", files, err)
	}
	return filepath.Join(data, "snapshots", files[0].Name())
}

// revision reads the revision from a snapshot's name.
func revision(t *testing.T, file string) (rev store.Rev) {
	t.Helper()
	_, after, _ := strings.Cut(filepath.Base(file), "-r")
	if _, err := fmt.Sscanf(after, "%d-n", &rev); err != nil {
		t.Fatal(err)
	}
	return rev
}

// replay makes a data directory with what the log of another held at a
// revision. It returns how many records that are, and how many batches came
// later.
func replay(t *testing.T, from, into string, at store.Rev) (records, later int) {
	t.Helper()
	all := map[string][]byte{}
	var says string // what the last commit up to there does
	last := errors.New("that is all")
	old := openStore(t, from)
	end, err := old.Load(t.Context(), func(store.Record) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	err = old.Follow(t.Context(), 0, func(b store.Batch) error {
		if b.Commit && b.Rev <= at {
			says = b.Head.End
		}
		for _, op := range b.Ops {
			switch {
			case b.Rev > at:
			case op.Value == nil:
				delete(all, op.Key)
			default:
				all[op.Key] = op.Value
			}
		}
		if b.Rev > at {
			later++
		}
		if b.Rev >= end.Rev {
			return last
		}
		return nil
	})
	if !errors.Is(err, last) {
		t.Fatal(err)
	}
	fresh := openStore(t, into)
	var prev store.Written
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(all)), 100) {
		ops := make([]store.Op, len(keys))
		for i, key := range keys {
			ops[i] = store.Op{Key: key, Value: all[key]}
		}
		if prev, err = fresh.Commit(t.Context(), prev.Rev, store.Head{Time: time.Now(), End: says}, ops); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(old.Close(), fresh.Close()); err != nil {
		t.Fatal(err)
	}
	return len(all), later
}

func openStore(t *testing.T, data string) *etcdstore.Store {
	t.Helper()
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.Open(context.Background(), etcdstore.Options{Dir: filepath.Join(data, "store")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// copyKeys gives the keys of one controller to others.
func copyKeys(t *testing.T, from string, into ...string) {
	t.Helper()
	for _, data := range into {
		if err := os.CopyFS(filepath.Join(data, "pki"), os.DirFS(filepath.Join(from, "pki"))); err != nil {
			t.Fatal(err)
		}
		// CopyFS leaves the modes to the umask.
		if err := os.Chmod(filepath.Join(data, "pki"), 0o700); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(data, "pki", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.Chmod(file, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// compareLists compares every page of every list of the Management API, of audit entries
// those from before a time.
func compareLists(t *testing.T, got, want *client, until time.Time) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "openapi", "edge-management.json"))
	if err != nil {
		t.Fatal(err)
	}
	var spec M
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	lists, pages, entries := 0, 0, 0
	for path, item := range spec["paths"].(M) {
		get, ok := item.(M)["get"].(M)
		switch {
		case !ok || !isList(get):
			continue
		case path == "/specs", path == "/controllers": // which are as old as the process, and where it is
			continue
		case path == "/difference": // which is made of audit entries, of a time that it has to be told
			continue
		}
		lists++
		for _, path := range concrete(t, want, strings.TrimPrefix(path, "/")) {
			for offset := 0; ; offset += 7 {
				page := fmt.Sprintf("%s?limit=7&offset=%d", path, offset)
				if path == "audit-entries" { // which tell of the start of each, and of who logs in
					page += "&filter=" + url.QueryEscape("createdAt < datetime("+until.UTC().Format(time.RFC3339Nano)+")")
				}
				a, b := got.must(t, 200, http.MethodGet, page, nil), want.must(t, 200, http.MethodGet, page, nil)
				if diff := cmp.Diff(still(b.body), still(a.body)); diff != "" {
					t.Errorf("%s differs (-replayed +restored):\n%s", page, diff)
				}
				n := len(rows(b.body["data"]))
				pages, entries = pages+1, entries+n
				if n < 7 {
					break
				}
			}
		}
	}
	t.Logf("compared %d lists, %d pages, %d entries", lists, pages, entries)
	if lists < 20 || entries < 200 {
		t.Errorf("compared only %d lists with %d entries", lists, entries)
	}
}

// rows are what an answer has a page of: what it is, or whom somebody reaches.
func rows(data any) []any {
	if one, ok := data.(M); ok {
		data = one["reached"]
	}
	list, _ := data.([]any)
	return list
}

// isList reports whether an operation answers in pages.
func isList(op M) bool {
	params, _ := op["parameters"].([]any)
	return slices.ContainsFunc(params, func(p any) bool { return p.(M)["name"] == "limit" })
}

// concrete returns a path once for every record that it may be about.
func concrete(t *testing.T, c *client, path string) (all []string) {
	t.Helper()
	of, rest, has := strings.Cut(path, "/{id}")
	if !has {
		return []string{path}
	}
	for id := range c.list(t, of) {
		all = append(all, of+"/"+id+rest)
	}
	return all
}

// still is an answer without what changes by asking.
func still(v any) any {
	switch x := v.(type) {
	case M:
		c := M{}
		for name, member := range x {
			if name != "lastActivityAt" && name != "cachedLastActivityAt" && name != "lastSeenAt" {
				c[name] = still(member)
			}
		}
		return c
	case []any:
		c := make([]any, len(x))
		for i, member := range x {
			c[i] = still(member)
		}
		return c
	}
	return v
}

// TestRestoreRefuses gives what cannot be restored. It says why in one line
// and leaves nothing behind.
func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := controller(t, data)
	p.client(data).must(t, 200, http.MethodPost, "database/snapshot", nil)
	p.stop()
	file := onlySnapshot(t, data)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	fresh := filepath.Join(dir, "fresh")
	for name, test := range map[string]struct {
		args []string
		says []string
	}{
		"a directory in use": {[]string{"--data", data, file}, []string{data, "not empty"}},
		"no such file":       {[]string{"--data", fresh, file + "x"}, []string{file + "x", "no such file"}},
		"cut short":          {[]string{"--data", fresh, write(t, "cut", string(whole[:len(whole)/2]))}, []string{"damaged or cut short"}},
		"damaged":            {[]string{"--data", fresh, write(t, "damaged", string(damaged))}, []string{"damaged or cut short"}},
		"empty":              {[]string{"--data", fresh, write(t, "empty", "")}, []string{"cut short"}},
		"nothing given":      {[]string{"--data", fresh}, []string{"arg"}},
	} {
		t.Run(name, func(t *testing.T) {
			code := 1
			if name == "nothing given" {
				code = 2
			}
			launch(t, settings{args: append([]string{"restore"}, test.args...)}).refuses(code, test.says...)
			if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it left a directory: %v", err)
			}
		})
	}
}

// TestSharedSnapshots has two networks keep their snapshots in one directory,
// each its last one. Neither counts the other's, lists them or deletes them, and
// who tries one of them in the wrong place is told.
func TestSharedSnapshots(t *testing.T) {
	dir := t.TempDir()
	shared := filepath.Join(dir, "snapshots")
	scheduled := func() (names []string) {
		files, err := filepath.Glob(filepath.Join(shared, "*-scheduled.db"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			names = append(names, filepath.Base(file))
		}
		return names
	}
	start := func(name string) *process {
		return controller(t, filepath.Join(dir, name), "--snapshots-dir", shared, "--snapshots-every", "24h", "--snapshots-keep", "1")
	}
	await := func(want int) {
		t.Helper()
		deadline := time.Now().Add(waitTime)
		for len(scheduled()) != want {
			if time.Now().After(deadline) {
				t.Fatalf("there is %v, and not %d", scheduled(), want)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	p := start("first")
	await(1)
	p.stop()
	first := scheduled()[0]
	p = start("second")
	await(2)
	c := p.client(filepath.Join(dir, "second"))
	if files := c.must(t, 200, http.MethodGet, "database/snapshots", nil).body["data"].([]any); len(files) != 1 || files[0].(M)["name"] == first {
		t.Errorf("the second lists %v, where %s is of the first", files, first)
	}
	said := c.must(t, 200, http.MethodPost, "database/snapshots/"+first+"/verify", nil).body["data"].(M)
	if problem, _ := said["problem"].(string); said["intact"] != false || !strings.Contains(problem, "it is of another network, that with the root CA") {
		t.Errorf("the second says of it %v", said)
	}
	p.stop()
	if left := scheduled(); len(left) != 2 || !slices.Contains(left, first) {
		t.Errorf("%s is gone: there is %v", first, left)
	}
	restored := filepath.Join(dir, "restored")
	r := launch(t, settings{args: []string{"restore", "--data", restored, filepath.Join(shared, first)}})
	whose := fingerprint.FindString(p.stdout.String())
	if code := r.wait(); code != 0 || !strings.Contains(r.stdout.String(), "of the network with the root CA ") || strings.Contains(r.stdout.String(), whose) {
		t.Errorf("restore ended with %d and printed %q, where %s is the other's root", code, r.stdout.String(), whose)
	}
	copyKeys(t, filepath.Join(dir, "second"), restored)
	launch(t, settings{args: []string{"run", "--data", restored, "--listen", "127.0.0.1:0"}}).
		refuses(1, "the store belongs to the network with the root CA", "is that of another, "+whose)
}

var fingerprint = regexp.MustCompile(`[0-9a-f]{64}`)

// TestUnfinishedSnapshot starts a controller that was killed while it wrote a
// snapshot.
func TestUnfinishedSnapshot(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	controller(t, data).stop()
	if err := os.Mkdir(filepath.Join(data, "snapshots"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "snapshots", ".unfinished-77"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	controller(t, data).stop()
	if left, err := os.ReadDir(filepath.Join(data, "snapshots")); err != nil || len(left) > 0 {
		t.Errorf("there is %v: %v", left, err)
	}
}
