package overlay

import (
	"context"

	"netkeep.internal/internal/client/device"
	"netkeep.internal/internal/client/sdk"
)

// Posture answers what posture checks ask of the device, in the place of what
// can be seen from inside the program. What is nil is answered as if there were
// no Posture; there is nothing by itself to say of a domain, or as a code. The
// functions are called again and again, one at a time, and must not use the
// network.
type Posture struct {
	// OS is the operating system. By itself it is what Go was built for and the
	// kernel's version.
	OS func() OS
	// MACs are hardware addresses, in hexadecimal with any separators. By itself
	// they are those of the machine's interfaces.
	MACs func() []string
	// Domain is the Windows domain that the device belongs to.
	Domain func() string
	// Process says whether a program runs, by the path of its file. By itself it
	// is looked for, on Linux, among the processes that can be seen.
	Process func(path string) Process
	// MFA returns a code of the identity's second factor: a one-time code, or one
	// for recovery. It is asked when the login needs one, again when a session has
	// ended, and when a service is dialled or hosted whose check waits for one.
	MFA func(ctx context.Context) (code string, err error)
}

// OS is an operating system.
type OS struct {
	Type    string // as checks call it: linux, windows, darwin, android, ios
	Version string // as 6.1.0
}

// Process is a program that may run.
type Process struct {
	Running bool
	// Hash is the SHA-512 of its file, in hexadecimal, if checks ask for it.
	Hash string
	// Signers are fingerprints of the certificates that have signed it.
	Signers []string
}

// WithPosture has posture checks answered by the program.
func WithPosture(p Posture) Option {
	return func(o *sdk.Options) {
		o.Device = sdk.Device{Addresses: p.MACs, Domain: p.Domain}
		o.Code = p.MFA
		if p.OS != nil {
			o.Device.OS = func() device.System { return device.System(p.OS()) }
		}
		if p.Process != nil {
			o.Device.Program = func(path string) device.Program { return device.Program(p.Process(path)) }
		}
	}
}
