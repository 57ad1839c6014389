package program_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netkeep.internal/test/machine"
)

var fullRounds = flag.Int("full-rounds", 2, "how often to take the space from a controller that writes")

// limitFiles forbids a process to write beyond so many bytes of any file. To
// the program this is like a disk without space.
func (p *process) limitFiles(size uint64) {
	p.t.Helper()
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// withoutSpace shows what becomes of a controller whose disk is full: what is
// asked is answered, and what would change something is refused and told why.
func (p *process) withoutSpace(c *client, add func(name string) bool) {
	p.t.Helper()
	deadline := time.Now().Add(waitTime)
	for i := 0; ; i++ {
		if add(fmt.Sprintf("after %d", i)) {
			continue
		}
		a, err := c.do(http.MethodGet, "/health/ready", nil)
		if err == nil && a.status == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(a.body), "disk space") {
			break
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("it does not say that there is no space: %v, %v", a.body, err)
		}
	}
	c.must(p.t, http.StatusOK, http.MethodGet, "identities", nil)
	a := c.must(p.t, http.StatusServiceUnavailable, http.MethodPost, "identities", M{"name": "refused", "type": "User", "isAdmin": false})
	if !strings.Contains(fmt.Sprint(a.body), "disk space") {
		p.t.Errorf("a write is refused with %v", a.body)
	}
}

// TestFullDisk takes the space from a running controller: it goes on to answer
// what it knows, ends by itself when there is space again, says why, and loses
// nothing that it acknowledged.
func TestFullDisk(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := controller(t, data)
	c := p.client(data)
	acknowledged := map[string]bool{}
	add := func(name string) bool {
		a, err := c.do(http.MethodPost, "identities", M{"name": name, "type": "User", "isAdmin": false})
		if err == nil && a.status == http.StatusCreated {
			acknowledged[name] = true
		}
		return acknowledged[name]
	}
	for i := range 50 {
		if !add(fmt.Sprintf("before %d", i)) {
			t.Fatal("a create failed although there is space")
		}
	}
	p.limitFiles(4096)
	p.withoutSpace(c, add)
	p.limitFiles(unix.RLIM_INFINITY)
	if code := p.wait(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	p.complains(complaints(p.stderr.String()), "the store stopped", "file too large")

	again := controller(t, data)
	there := map[string]bool{}
	for _, identity := range again.client(data).list(t, "identities") {
		there[identity["name"].(string)] = true
	}
	for name := range acknowledged {
		if !there[name] {
			t.Errorf("%q was acknowledged and is gone", name)
		}
	}
	again.stop()
}

// TestFullAgain takes the space away in the middle of everything, again and again: who
// writes is told why not, what is known is answered, and once there is space a new process
// has all that was acknowledged, and of what was in flight all or nothing.
func TestFullAgain(t *testing.T) {
	t.Parallel() // it waits more than it works
	data := filepath.Join(t.TempDir(), "data")
	seed := uint64(time.Now().UnixNano())
	moments := rand.New(rand.NewPCG(seed, 0))
	router := []string{"--router", "127.0.0.1:" + machine.Port(t)}
	p := controller(t, data, router...)
	c := p.client(data)
	crew := newCrew(t, c, seed)
	var log entries
	for range *fullRounds {
		ended, enough := crew.write(c, 1+moments.Int64N(mostWrites))
		select {
		case <-enough:
		case <-ended: // of themselves, which they tell of
		}
		p.limitFiles(uint64(moments.IntN(8192)))
		select {
		case <-ended:
		case <-p.ended:
			t.Fatal("it ends although there is no space")
		case <-time.After(2 * waitTime):
			t.Fatal("writes are neither made nor refused")
		}
		p.withoutSpace(c, func(string) bool { return false })
		p.limitFiles(unix.RLIM_INFINITY)
		if code := p.wait(); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		p.complains(complaints(p.stderr.String()), "the store stopped")
		p = controller(t, data, router...)
		c = c.on(t, p, data)
		log.audit(t, c, crew.settle(t, c))
		if t.Failed() {
			return
		}
	}
	c.scan(t)
	p.stop()
	crew.report(t, *fullRounds)
}
