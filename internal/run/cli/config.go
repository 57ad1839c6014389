package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"netkeep/internal/ops/config"
)

// settings gives a command a flag for every setting, and returns how to load
// them once the command runs.
func settings(cmd *cobra.Command, env Env) func() (config.Config, config.Origins, error) {
	file := cmd.Flags().String("config", "", "YAML file with settings; the one that "+config.FileEnv+" names if empty")
	given := map[string]*string{}
	cfg := config.Default()
	for s := range cfg.Settings() {
		given[s.Flag] = cmd.Flags().String(s.Flag, s.Default, s.Doc)
	}
	return func() (config.Config, config.Origins, error) {
		src := config.Sources{File: *file, Environ: env.Environ, Flags: map[string]string{}}
		for name, text := range given {
			if cmd.Flags().Changed(name) {
				src.Flags[name] = *text
			}
		}
		return config.Load(src)
	}
}

// checked loads settings that a controller can run with.
func checked(load func() (config.Config, config.Origins, error)) (config.Config, error) {
	cfg, _, err := load()
	if err == nil {
		err = cfg.Check()
	}
	return cfg, err
}

func configCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at settings without running a controller.",
		Args:  cobra.NoArgs, // which is looked at only if it runs
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configPrintCommand(env), configCheckCommand(env))
	return cmd
}

func configPrintCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the settings that a controller would run with, and where each comes from.",
		Args:  cobra.NoArgs,
	}
	load := settings(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, from, err := load()
		if err != nil {
			return err
		}
		// A check reads the password file; what is printed names it only.
		whole := cfg
		if err := whole.Check(); err != nil {
			return err
		}
		return cfg.Print(cmd.OutOrStdout(), from)
	}
	return cmd
}

func configCheckCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Tell what is wrong with the settings, if anything is.",
		Args:  cobra.NoArgs,
	}
	load := settings(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := checked(load); err != nil {
			return err
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "The settings are right.")
		return err
	}
	return cmd
}
