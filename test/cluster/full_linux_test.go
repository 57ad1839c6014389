package cluster_test

import (
	"net/http"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// full is a disk without space: the controller says so, sends people to the others,
// and ends when there is space again, to be started anew.
var full = fault{
	begin: func(t *testing.T, _ *team, leader *node) { leader.limitFiles(t, 4096) },
	lasts: func(t *testing.T, c *team, leader *node) {
		leader.says(t, "the store stopped; what is known is still answered, and nothing can be changed until there is space on the disk")
		c.eventually(t, "one with a full disk to send everybody away", func() bool {
			return leader.ask(http.MethodGet, "services?limit=1", nil, nil) == 0
		})
	},
	end: func(t *testing.T, _ *team, leader *node) {
		leader.limitFiles(t, unix.RLIM_INFINITY)
		select {
		case <-leader.ended:
		case <-time.After(patience):
			t.Fatal("it does not end although there is space")
		}
		leader.says(t, "the store stopped, and can go on in a new process")
		leader.start(t)
	},
}

// limitFiles forbids a process to write beyond so many bytes of any file, which is to
// it like a disk without space.
func (n *node) limitFiles(t *testing.T, size uint64) {
	t.Helper()
	if err := unix.Prlimit(n.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
}
