package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/command"
	"netkeep.internal/internal/tool/unit"
)

// unitsCommand is for who makes packages.
func unitsCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "units DIR",
		Short: "Write what packages bring for systemd into a directory: services, their users and directories.",
		Args:  command.Exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			files := unit.Packaged()
			for _, name := range slices.Sorted(maps.Keys(files)) {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(files[name]), 0o644); err != nil {
					return err
				}
			}
			fmt.Fprintf(env.Stdout, "%d files are in %s\n", len(files), args[0])
			return nil
		},
	}
}
