// Netkeep is the control plane of a private, zero-trust overlay network.
package main

import (
	"context"
	"os"
	"time"

	"netkeep.internal/internal/run/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), cli.Env{
		Program: os.Args[0], Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now,
	}))
}
