package command

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manualCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "manual DIR",
		Short: "Write a man page of every command into a directory.",
		Args:  Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // the same program always writes the same pages
			began := time.Time{}
			if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "netkeep", Manual: "netkeep", Date: &began}, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "The man pages are in %s; read one with: man %s/netkeep.1\n", args[0], args[0])
			return nil
		},
	}
}
