// Package cli is the program: the commands that run a controller or look after
// its data, those that carry what goes through a network (a router, a tunnel),
// and with them those that talk to a controller. Only run, admin, keys and
// restore use the server; what talks to a controller is tool/command's.
package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/tool/command"
	"netkeep.internal/internal/tool/screen"
)

// Env is what a command takes from the process that runs it.
type Env = command.Env

// Main runs a command and returns the exit code of the process.
func Main(ctx context.Context, env Env) int {
	err := Root(env).ExecuteContext(ctx)
	if err != nil {
		// One line, whatever the error is made of.
		// Parts of it may be a controller's words.
		fmt.Fprintln(env.Stderr, "netkeep:", screen.Plain(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")))
	}
	return command.Exit(err)
}

// Root is the program with all its commands.
func Root(env Env) *cobra.Command {
	root := command.Parent(&cobra.Command{
		Use:           "netkeep",
		Short:         "A private, zero-trust overlay network: run its controller, look at it, change it.",
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(command.FlagError)
	command.Add(root, env)
	for _, c := range []*cobra.Command{runCommand(env), configCommand(env), adminCommand(env), keysCommand(env), restoreCommand(), takeoverCommand(env), healthCommand(env)} {
		c.GroupID = command.GroupServer
		root.AddCommand(c)
	}
	addTraffic(root, env)
	addRecover(root, env)
	for _, c := range []*cobra.Command{routerCommand(env), tunnelCommand(env)} {
		c.GroupID = command.GroupJoin
		root.AddCommand(c)
	}
	root.AddCommand(versionCommand(), unitsCommand(env))
	return root
}

func versionLine() string {
	b := build.Read()
	return fmt.Sprintf("netkeep %s (revision %s, built %s, %s)", b.Version, b.Revision, b.Date, b.Runtime)
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is.",
		Args:  command.Exactly(0),
		Run:   func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), versionLine()) },
	}
}
