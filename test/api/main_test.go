// Package api_test calls both APIs the way clients do: over HTTPS, knowing
// only what the specification says.
package api_test

import (
	"flag"
	"testing"

	"netkeep.internal/test/servertest"
)

var update = flag.Bool("update", false, "rewrite the checked-in specifications")

// shared is the controller that all tests use which need no own one. They
// keep apart by names of their own.
var shared *servertest.Server

type M = servertest.M

func TestMain(m *testing.M) { servertest.Main(m, &shared) }
