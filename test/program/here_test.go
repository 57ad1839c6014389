package program_test

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestStatusHere asks a controller on this machine how it is by its data directory:
// while it serves, when it does not run, and where it does not say.
func TestStatusHere(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	status := func(more ...string) *process {
		return launch(t, settings{args: append([]string{"status", "--data", data}, more...)})
	}
	status().fails("no controller that tells monitoring how it is has run in " + data)
	p := controller(t, data, "--metrics-listen", "127.0.0.1:0")
	for form, want := range map[string]string{"text": `(?m)^health +(ok)$`, "json": `"status": "(ok)"`} {
		here := status("-o", form)
		here.said(regexp.MustCompile(want))
		if code := here.wait(); code != 0 {
			t.Errorf("exit code %d: %s", code, here.stderr.String())
		}
	}
	p.stop()
	status().fails("does not answer at 127.0.0.1:", "netkeep cluster recover")
	controller(t, data).stop() // without metrics
	status().fails("no controller that tells monitoring how it is has run in " + data)
}
