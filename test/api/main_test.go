// Package api_test calls both APIs the way clients do: over HTTPS, knowing
// only what the specification says.
package api_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"netkeep/test/servertest"
)

var update = flag.Bool("update", false, "rewrite the checked-in specifications")

// shared is the controller that all tests use which need no own one. They
// keep apart by names of their own.
var shared *servertest.Server

type M = servertest.M

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	dir, err := os.MkdirTemp("", "netkeep-api")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if shared, err = servertest.Open(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := shared.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	return m.Run()
}
