//go:build !unix

package device

import "runtime"

// OS is the operating system of the machine, without a version: nobody has said
// how to tell that here.
func OS() System { return System{Type: runtime.GOOS} }
