package cluster_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/sink"
)

// TestEntriesOfThree has three controllers write more entries than the store keeps:
// each archives all of them, one sends them on for all, and when that is killed or
// stopped in the middle of sending another goes on from there.
func TestEntriesOfThree(t *testing.T) {
	beside(t)
	to, dir := sink.New(t), t.TempDir()
	c := newTeam(t, func(n int) []string {
		file := filepath.Join(dir, fmt.Sprint("token", n))
		if err := os.WriteFile(file, []byte(strconv.Itoa(n)), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"--audit-http", to.URL, "--audit-http-token-file", file, "--audit-entries", "1000"}
	})
	write := func(name string, each int, by ...*node) {
		t.Helper()
		var all sync.WaitGroup
		for _, n := range by {
			all.Go(func() {
				for i := range each {
					if !n.adds(fmt.Sprint(name, n.n, "-", i)) {
						t.Errorf("controller %d takes no writes", n.n)
						return
					}
				}
			})
		}
		all.Wait()
	}
	write("first", 550, c.nodes...)
	first := int64(0)
	c.eventually(t, "the store to forget", func() bool {
		first, _ = c.nodes[0].window()
		return first > 1
	})
	for _, n := range c.nodes {
		if last := n.archived(t); last < first-1 {
			t.Errorf("controller %d has archived up to %d, and the store begins with %d", n.n, last, first)
		}
	}

	for name, end := range map[string]func(*node){
		"killed":  (*node).kill,
		"stopped": func(n *node) { n.signal(syscall.SIGTERM); <-n.ended },
	} {
		hold := to.Hold(t, false)
		write(name, 5, c.nodes...)
		sender := c.nodes[sending(t, hold)]
		end(sender)
		hold.End()
		others := c.others(sender)
		write(name+" and gone", 20, others...)
		others[0].sent(t, to)
		sender.start(t)
		write(name+" and back", 5, sender)
		sender.sent(t, to)
	}
}

// sending is the number of the controller that a sink keeps waiting.
func sending(t *testing.T, hold *sink.Hold) int {
	t.Helper()
	select {
	case who := <-hold.Came:
		n, err := strconv.Atoi(who)
		if err != nil {
			t.Fatal(err)
		}
		return n
	case <-time.After(patience):
		t.Fatal("nothing is sent")
		return 0
	}
}

// adds writes, however often it has to ask.
func (n *node) adds(name string) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		switch n.ask(http.MethodPost, "identities", M{"name": name, "type": "User", "isAdmin": false}, nil) {
		case http.StatusCreated, http.StatusBadRequest: // the latter if an answer was lost
			return true
		}
	}
	return false
}

// sent waits until all that a controller knows of was sent.
func (n *node) sent(t *testing.T, to *sink.Sink) {
	t.Helper()
	last := int64(0)
	n.eventually(t, "entries", func() bool {
		_, last = n.window()
		return last > 0
	})
	n.eventually(t, "all to be sent", func() bool { return to.Last() >= last })
	if flaw := to.Flaw(); flaw != "" {
		t.Error("of those that were sent: " + flaw)
	}
}

// window are the numbers of the first and the last entry, of a log that is whole; 0 if
// it is not told.
func (n *node) window() (first, last int64) {
	var said struct {
		Data struct {
			Intact bool  `json:"intact"`
			First  int64 `json:"first"`
			Last   int64 `json:"last"`
		} `json:"data"`
	}
	if n.ask(http.MethodGet, "audit-verification", nil, &said) != http.StatusOK || !said.Data.Intact {
		return 0, 0
	}
	return said.Data.First, said.Data.Last
}

// archived reads the archive of a controller, which has to be whole, and returns up to
// which entry it goes.
func (n *node) archived(t *testing.T) int64 {
	t.Helper()
	out, err := exec.Command(n.binary, "audit", "verify", "--archive", filepath.Join(n.data, "audit"), "--offline").CombinedOutput()
	found := regexp.MustCompile(`The archive is whole: entries 1 to (\d+)`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Errorf("of the archive of controller %d it is said: %v %s", n.n, err, out)
		return 0
	}
	last, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return last
}
