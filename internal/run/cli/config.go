package cli

import (
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
)

// settings gives a command a flag for every setting that is no secret, and returns how to load
// them once the command runs.
func settings(cmd *cobra.Command, env Env) func() (config.Config, config.Origins, error) {
	file := cmd.Flags().String("config", "", "YAML file with settings; the one that "+config.FileEnv+" names if empty")
	cfg := config.Default()
	sources := settingFlags(cmd, env, cfg.Settings())
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return notAFlag(cmd, &cfg, err) })
	return func() (config.Config, config.Origins, error) {
		src := sources()
		src.File = *file
		return config.Load(src)
	}
}

// settingFlags gives a command a flag for each of the settings that is no secret,
// and returns where they come from once the command runs.
func settingFlags(cmd *cobra.Command, env Env, all iter.Seq[config.Setting]) func() config.Sources {
	given := map[string]*string{}
	for s := range all {
		if s.Secret {
			continue
		}
		given[s.Flag] = cmd.Flags().String(s.Flag, s.Default, s.Doc)
		if s.Default == "true" || s.Default == "false" {
			cmd.Flags().Lookup(s.Flag).NoOptDefVal = "true" // as people write it
		}
	}
	return func() config.Sources {
		src := config.Sources{Environ: env.Environ, Flags: map[string]string{}}
		for name, text := range given {
			if cmd.Flags().Changed(name) {
				src.Flags[name] = *text
			}
		}
		return src
	}
}

// notAFlag says of a secret that was given as a flag where it belongs.
func notAFlag(cmd *cobra.Command, cfg *config.Config, err error) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return command.FlagError(cmd, err)
	}
	for s := range cfg.Settings() {
		if s.Secret && s.Flag == unknown.GetSpecifiedName() {
			return command.Usagef("there is no flag --%s: everybody on this machine could read it; use the variable %s, %s in a file, or --%s-file",
				s.Flag, s.Env, s.Key, s.Flag)
		}
	}
	return command.FlagError(cmd, err)
}

// warn tells of variables that are no settings.
func warn(env Env) {
	for _, text := range config.Ignored(env.Environ) {
		fmt.Fprintln(env.Stderr, "netkeep: warning:", text)
	}
}

// checked loads settings that a controller can run with.
func checked(load func() (config.Config, config.Origins, error)) (config.Config, error) {
	cfg, _, err := load()
	if err == nil {
		err = cfg.Check()
	}
	if err == nil {
		err = server.Check(cfg)
	}
	return cfg, err
}

func configCommand(env Env) *cobra.Command {
	cmd := command.Parent(&cobra.Command{
		Use:   "config",
		Short: "Look at settings without running a controller.",
	})
	cmd.AddCommand(configPrintCommand(env), configCheckCommand(env))
	return cmd
}

func configPrintCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print the settings that a controller would run with, and where each comes from.",
		Args:  command.Exactly(0),
	}
	load := settings(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		warn(env)
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
		Args:  command.Exactly(0),
	}
	load := settings(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		warn(env)
		cfg, err := checked(load)
		if err == nil {
			err = server.CheckCertificate(cfg)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "The settings are right.")
		return err
	}
	return cmd
}
