package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
)

func keysCommand(env Env) *cobra.Command {
	cmd := command.Parent(&cobra.Command{
		Use:   "keys",
		Short: "Look after the keys of a network.",
	})
	cmd.AddCommand(keysRotateCommand(env), keysStatusCommand(env), keysForgetCommand(env))
	return cmd
}

func keysForgetCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "forget",
		Short: "Give up keys that are lost for good, so that the next start makes new ones.",
		Args:  command.Exactly(0),
	}
	load := settings(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := checked(load)
		if err != nil {
			return err
		}
		root, err := server.ForgetKeys(cmd.Context(), cfg, newLogger(env, cfg.Log.Level, cfg.Log.Format))
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "The store has forgotten the root CA %s.\n"+
			"The next start makes a new one. Every client and router has to enroll again,\n"+
			"and invitations and second factors cannot be read any more: when it runs, take\n"+
			"them out with POST .../database/fix-data-integrity.\n", root)
		return nil
	}
	return cmd
}
