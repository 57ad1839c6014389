package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
)

func restoreCommand() *cobra.Command {
	data := config.Default().Data
	cmd := &cobra.Command{
		Use:   "restore SNAPSHOT",
		Short: "Make a data directory from a snapshot.",
		Args:  command.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mark, root, err := server.Restore(cmd.Context(), data, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "restored the store as of %s, revision %d, into %s\n"+
				"of the network with the root CA %s\n\n"+
				"  A snapshot holds no keys. Put the pki directory of that network at\n"+
				"  %s before the first start: without it, or with that\n"+
				"  of another network, the controller does not start.\n",
				mark.Time.UTC().Format(time.RFC3339), mark.Rev, data, cmp.Or(root, "that was beside it, which it does not name"), filepath.Join(data, "pki"))
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", data, "Directory to make; it must be new or empty.")
	return cmd
}
