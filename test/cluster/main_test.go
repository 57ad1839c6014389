package cluster_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"netkeep.internal/test/machine"
)

// Tests mostly wait: for leases, clocks and each other's controllers. So they run
// beside each other, each with networks of its own. Those that begin in beside take
// turns, so that what runs at a time is no more than two cores can do without anybody
// losing a lease; those that wait longest do not wait for a turn as well. The race
// detector makes so much work of each that they run one after the other.
const turns = 2

var turn = make(chan struct{}, turns)

// atOnce has a test run beside all others.
func atOnce(t *testing.T) {
	t.Helper()
	if !machine.Raced {
		t.Parallel()
	}
}

// beside has a test run beside others.
func beside(t *testing.T) {
	t.Helper()
	if machine.Raced {
		return
	}
	t.Parallel()
	turn <- struct{}{}
	t.Cleanup(func() { <-turn })
}

// programs is where the program is, once somebody has wanted it.
var programs string

// build builds it, once for all who start it.
var build = sync.OnceValues(func() (file string, err error) {
	if programs, err = os.MkdirTemp("", "netkeep-cluster"); err != nil {
		return "", err
	}
	file = filepath.Join(programs, "netkeep")
	cmd := exec.Command("go", "build", "-trimpath", "-o", file, "../../cmd/netkeep")
	cmd.Stderr = os.Stderr
	return file, cmd.Run()
})

// built is the program.
func built(t *testing.T) string {
	t.Helper()
	file, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		// How many may wait for their turn, whatever the machine has.
		if err := flag.Set("test.parallel", strconv.Itoa(1000)); err != nil {
			panic(err)
		}
	}
	defer func() {
		if programs != "" {
			_ = os.RemoveAll(programs)
		}
	}()
	return m.Run()
}
