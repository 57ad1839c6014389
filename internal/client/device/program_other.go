//go:build !linux

package device

// Programs looks which programs run: none, as nobody has said how to tell that
// here.
type Programs struct{}

// Look returns what there is to say of programs.
func (*Programs) Look([]string) map[string]Program { return nil }
