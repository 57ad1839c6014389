package servertest

import (
	"fmt"
	"os"
	"testing"
)

// Main runs the tests of a package with one controller that they share. They
// keep apart by names of their own.
func Main(m *testing.M, shared **Server) { os.Exit(run(m, shared)) }

func run(m *testing.M, shared **Server) (code int) {
	dir, err := os.MkdirTemp("", "netkeep-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if *shared, err = Open(dir); err != nil {
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
