package program_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"netkeep.internal/test/sink"
)

// TestOutletKilled kills a controller again and again in the middle of sending entries,
// with what it sent taken or lost: each entry goes out, in its order, to an endpoint and
// to a file.
func TestOutletKilled(t *testing.T) {
	const rounds = 6
	to := sink.New(t)
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "audit.jsonl")
	flags := []string{"--audit-http", to.URL, "--audit-file", file}
	p := controller(t, data, flags...)
	first := p.client(data)
	for round := range rounds {
		c := first.on(t, p, data)
		add := func(n int) {
			for i := range n {
				c.must(t, http.StatusCreated, http.MethodPost, "identities", M{"name": fmt.Sprint("i", round, "-", n, "-", i), "type": "User", "isAdmin": false})
			}
		}
		hold := to.Hold(t, round%2 == 0)
		add(3)
		select {
		case <-hold.Came:
		case <-time.After(waitTime):
			t.Fatal("nothing is sent")
		}
		add(5) // meanwhile
		p.kill(0)
		hold.End()
		p = controller(t, data, flags...)
	}
	entries := first.on(t, p, data).list(t, "audit-entries")
	last, err := strconv.ParseInt(slices.Max(slices.Collect(maps.Keys(entries))), 10, 64)
	if err != nil || len(entries) < 8*rounds || int(last) != len(entries) {
		t.Fatalf("there are %d entries, the last is %d: %v", len(entries), last, err)
	}
	awaitTrue(t, "all entries at the endpoint", func() bool { return to.Last() >= last })
	if flaw := to.Flaw(); flaw != "" {
		t.Error("of those that were sent: " + flaw)
	}
	p.stop()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var written sink.Book
	if torn := written.Take(text); torn > rounds {
		t.Errorf("%d lines of the file cannot be read", torn)
	}
	if flaw := written.Flaw(); flaw != "" || written.Last() < last {
		t.Errorf("in the file are entries up to %d of %d: %s", written.Last(), last, flaw)
	}
}
