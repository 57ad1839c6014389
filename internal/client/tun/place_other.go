//go:build !linux && !darwin && !windows

package tun

import (
	"errors"
	"net/netip"
	"runtime"
	"syscall"
)

// fastMTU is of no use here.
const fastMTU = longestMTU

// place is where a device is in the machine's network.
type place struct {
	name  string
	index int
}

// errElsewhere says what to do on systems where nobody has tried it.
var errElsewhere = errors.New("services cannot be intercepted on " + runtime.GOOS + " yet, only on Linux, macOS and Windows: lead local ports to them with netkeep tunnel proxy SERVICE:PORT")

func (p *place) make(Options, netip.Addr) (wire, error) { return nil, errElsewhere }
func (p *place) route([]Route) error                    { return errElsewhere }
func (p *place) look() error                            { return nil }
func (p *place) leave() error                           { return nil }

// Unseen is the Control of dialers whose connections go where they would without
// any device of ours.
func Unseen(string, string, syscall.RawConn) error { return nil }
