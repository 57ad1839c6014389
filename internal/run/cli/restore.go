package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"netkeep/internal/ops/config"
	"netkeep/internal/run/server"
	"netkeep/internal/tool/command"
)

func restoreCommand() *cobra.Command {
	data := config.Default().Data
	cmd := &cobra.Command{
		Use:   "restore SNAPSHOT",
		Short: "Make a data directory from a snapshot.",
		Args:  command.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			mark, err := server.Restore(cmd.Context(), data, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "restored the store as of %s, revision %d, into %s\n\n"+
				"  A snapshot holds no keys. Put the pki directory of the controller that\n"+
				"  wrote it at %s before the first start: without it the\n"+
				"  controller does not start.\n",
				mark.Time.UTC().Format(time.RFC3339), mark.Rev, data, filepath.Join(data, "pki"))
			return nil
		},
	}
	cmd.Flags().StringVar(&data, "data", data, "Directory to make; it must be new or empty.")
	return cmd
}
