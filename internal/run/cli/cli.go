// Package cli is the commands of the netkeep program. Only run, admin,
// keys and restore use the server; the others need no controller.
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"netkeep/internal/ops/build"
)

// Env is what a command takes from the process that runs it.
type Env struct {
	Args    []string
	Environ []string // as "name=value"
	Stdout  io.Writer
	Stderr  io.Writer
	// Terminal says whether people read Stderr.
	Terminal bool
}

// Main runs a command and returns the exit code of the process.
func Main(ctx context.Context, env Env) int {
	root := &cobra.Command{
		Use:           "netkeep",
		Short:         "The control plane of a private, zero-trust overlay network.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(env.Args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(runCommand(env), configCommand(env), adminCommand(env), keysCommand(env), restoreCommand(), versionCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		// One line, whatever the error is made of.
		fmt.Fprintln(env.Stderr, "netkeep:", strings.ReplaceAll(err.Error(), "\n", "; "))
		return 1
	}
	return 0
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is.",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			b := build.Read()
			fmt.Fprintf(cmd.OutOrStdout(), "netkeep %s (revision %s, built %s, %s)\n", b.Version, b.Revision, b.Date, b.Runtime)
		},
	}
}
