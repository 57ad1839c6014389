// Netkeep-bench puts load on a controller and measures it. It is a plain HTTP
// client: it works with any controller that serves the same API and knows it by
// URL and session header alone. Of netkeep's it imports the routers that follow
// a script, and what they speak.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: netkeep-bench COMMAND [flags]

  fill      create a network of a given size through the Management API
  run       put load on a filled controller, scenario by scenario
  routers   connect routers that follow a script, and measure what they cost
  streams   have clients told of changes as they happen, and measure what that costs
  cluster   start several controllers, and measure what it costs that they are several
  baseline  measure a bare HTTPS server in this process, to compare with

netkeep-bench COMMAND -h lists the flags of a command.
`

// command runs with its own flags. It writes results to out, and progress to
// progress, from several goroutines.
type command func(ctx context.Context, args []string, out, progress io.Writer) error

var commands = map[string]command{"fill": fillCommand, "run": runCommand, "routers": routersCommand, "streams": streamsCommand, "cluster": clusterCommand, "baseline": baselineCommand}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "netkeep-bench:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(progress, usage)
		return errors.New("the first argument must be fill, run, routers, streams, cluster or baseline")
	}
	return commands[args[0]](ctx, args[1:], out, progress)
}
