// Package attack_test has strangers and insiders try to take the service away
// from everybody else: with bodies that never end, answers that nobody reads,
// connections that say nothing, passwords without a pause, and with whatever
// else can be had without end. Meanwhile others go about their work, each from
// an address of its own, and nearly all of what they ask must be answered well
// and soon.
//
// CI runs each attack for a short time. -seconds makes it longer, and -scale
// larger.
package attack_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// How long and how hard is attacked. The attacks of the review that found them
// have scale 1.
var (
	seconds = flag.Float64("seconds", 2, "how long each attack goes on")
	scale   = flag.Float64("scale", 1, "how large an attack is; 1 is what once shut everybody out")
)

// What others may expect meanwhile.
const (
	enough = 0.99        // of what they ask is answered well
	prompt = time.Second // and so soon
)

type M = servertest.M

var shared *servertest.Server

// TestMain runs the tests, or attacks one of them.
func TestMain(m *testing.M) {
	if os.Getenv(attacking) != "" {
		attackAsTold(os.Stdin, os.Stdout)
		return
	}
	servertest.Main(m, &shared)
}

// scaled is how many of something there are in an attack of this scale.
func scaled(n int) int { return max(1, int(float64(n)**scale)) }
