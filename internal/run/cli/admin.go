package cli

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
)

func adminCommand(env Env) *cobra.Command {
	cmd := command.Parent(&cobra.Command{
		Use:   "admin",
		Short: "Look after the admin that a network began with.",
	})
	cmd.AddCommand(adminResetCommand(env))
	return cmd
}

func adminResetCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Let the default admin in again: a new password, and whatever shut it out is undone.",
		Long: "Let the default admin in again: it gets a new password, is enabled and unlocked, and its\n" +
			"sessions end. The controller must be stopped. The settings are those of netkeep run.",
		Args: command.Exactly(0),
	}
	load := settings(cmd, env)
	file := cmd.Flags().String("password-file", "", "File with the new password, - for standard input; one is made and printed if empty.")
	removeMFA := cmd.Flags().Bool("remove-mfa", false, "Take the admin's second factor away too.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("admin-password-file") {
			return command.Usagef("--admin-password-file is for the first start of a network; the file with the new password goes with --password-file")
		}
		cfg, err := checked(load)
		if err != nil {
			return err
		}
		reset := server.AdminReset{Username: cfg.Admin.Username, RemoveFactor: *removeMFA}
		if reset.Password, err = newPassword(cmd.InOrStdin(), *file); err != nil {
			return err
		}
		done, err := server.ResetAdmin(cmd.Context(), cfg, reset, newLogger(env, cfg.Log.Level, cfg.Log.Format))
		if err != nil {
			return err
		}
		if *file != "" {
			reset.Password = ""
		}
		tellReset(cmd.OutOrStdout(), reset, done)
		return nil
	}
	return cmd
}

// newPassword reads a password from where the name of a file says, or makes one.
func newPassword(stdin io.Reader, file string) (string, error) {
	if file == "" {
		return rand.Text(), nil
	}
	from, name := stdin, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fmt.Errorf("the new password: %w", err)
		}
		defer f.Close()
		from, name = f, file
	}
	password, err := config.ReadPassword(from)
	if err != nil {
		return "", fmt.Errorf("the new password: %s %w", name, err)
	}
	return password, nil
}

// tellReset says what was done. A password that was made is shown, and no other.
func tellReset(w io.Writer, reset server.AdminReset, done server.AdminResetDone) {
	if reset.Password == "" {
		fmt.Fprintf(w, "The default admin is %s, with the password that was given.\n", done.Username)
	} else {
		fmt.Fprintf(w, "The default admin is %s with the password %s\nIt is shown this once and stored nowhere.\n", done.Username, reset.Password)
	}
	if done.Created {
		fmt.Fprintln(w, "There was none; it was made.")
	}
	if done.WasDisabled {
		fmt.Fprintln(w, "It was disabled or locked out, and is enabled.")
	}
	if done.Policy != "" {
		fmt.Fprintf(w, "Its authentication policy did not let it in with a password; it has the policy %q now.\n", done.Policy)
	}
	switch {
	case done.HadFactor && reset.RemoveFactor:
		fmt.Fprintln(w, "Its second factor was removed.")
	case done.HadFactor:
		fmt.Fprintln(w, "It still has its second factor, which --remove-mfa removes.")
	}
	fmt.Fprintln(w, "Its sessions were ended.")
}
