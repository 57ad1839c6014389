package servertest

import (
	"fmt"
	"os"
	"testing"

	"netkeep.internal/internal/ops/config"
)

// Main runs the tests of a package with one controller that they share. They
// keep apart by names of their own.
func Main(m *testing.M, shared **Server, change ...func(*config.Config)) {
	os.Exit(run(m, shared, change))
}

func run(m *testing.M, shared **Server, change []func(*config.Config)) (code int) {
	dir, err := os.MkdirTemp("", "netkeep-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if *shared, err = Open(dir, change...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := (*shared).Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.Run()
}
