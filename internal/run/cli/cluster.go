package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
)

// addRecover adds what is done to a controller's data to the commands for the
// controllers of a network.
func addRecover(root *cobra.Command, env Env) {
	for _, c := range root.Commands() {
		if c.Name() == "cluster" {
			c.AddCommand(recoverCommand(env))
		}
	}
}

func recoverCommand(env Env) *cobra.Command {
	data := config.Default().Data
	sure := false
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Go on with one controller when most of the others are lost for good.",
		Long: "Makes a controller that is stopped the only one that keeps the store, and forgets the others.\n" +
			"It is for the day when more than half of them are lost for good: as long as most of them run,\n" +
			"or can be started, there is no need for it.\n\n" +
			"What may be lost: changes that the others had decided and this one had not heard of. Choose\n" +
			"the controller whose data is the latest. The others must never be started again with the data\n" +
			"they have; they join again with an empty directory and a new token.",
		Args: command.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !sure {
				return errors.New("this forgets the other controllers for good, and what they had decided and this one had not heard of: netkeep help cluster recover says more; if that is meant, add --yes")
			}
			rev, err := server.Recover(cmd.Context(), data, newLogger(env, "warn", ""))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "The controller of %s keeps the store alone now, as of revision %d.\n"+
				"Start it as before. Never start the others again with the data they have: give each\n"+
				"an empty directory, and have it join with a token of netkeep cluster invite.\n", data, rev)
			return err
		},
	}
	cmd.Flags().StringVar(&data, "data", data, "Data directory of the controller to go on with.")
	cmd.Flags().BoolVar(&sure, "yes", false, "Do it: the others are lost for good.")
	return cmd
}
