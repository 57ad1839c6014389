// Netkeep is the control plane of a private, zero-trust overlay network.
package main

import (
	"context"
	"os"

	"netkeep/internal/run/cli"
)

func main() {
	info, err := os.Stderr.Stat()
	os.Exit(cli.Main(context.Background(), cli.Env{
		Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
	}))
}
