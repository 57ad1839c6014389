// Package attack_test has strangers and insiders try to take the service away
// from everybody else, by asking for whatever can be had without end.
package attack_test

import (
	"testing"

	"netkeep/test/servertest"
)

type M = servertest.M

var shared *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, &shared) }
