package program_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// limitFiles forbids a process to write beyond so many bytes of any file. To
// the program this is like a disk without space.
func (p *process) limitFiles(size uint64) {
	p.t.Helper()
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// TestFullDisk takes the space from a running controller: it must end by
// itself, say why, and lose nothing that it acknowledged.
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
	deadline := time.Now().Add(waitTime)
	for i := 0; ; i++ {
		add(fmt.Sprintf("after %d", i))
		select {
		case <-p.ended:
		default:
			if time.Now().Before(deadline) {
				continue
			}
			t.Fatal("the controller goes on without space")
		}
		break
	}
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
