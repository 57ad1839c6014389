// Package device knows what posture checks may ask of the machine that it runs
// on: its operating system, its hardware addresses, and whether programs run. It
// says what it can see and nothing else; what cannot be seen is as if it were
// not there, so that a check of it fails. It imports nothing of ours.
package device

import (
	"net"
	"slices"
)

// System is an operating system.
type System struct {
	Type    string // as Go calls it
	Version string // of its kernel; empty if it cannot be told
}

// Program is one that may run.
type Program struct {
	Running bool
	// Hash is the SHA-512 of its file, in hexadecimal; empty if it does not run,
	// or cannot be read.
	Hash string
	// Signers are fingerprints of the certificates that have signed it, which
	// nobody can see here.
	Signers []string
}

// Addresses are the hardware addresses of the machine.
func Addresses() []string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return []string{}
	}
	all := []string{}
	for _, i := range interfaces {
		if len(i.HardwareAddr) > 0 {
			all = append(all, i.HardwareAddr.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
