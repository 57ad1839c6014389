package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/lang/advice"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
	"netkeep.internal/internal/tool/screen"
)

func takeoverCommand(env Env) *cobra.Command {
	t := server.Takeover{Data: config.Default().Data}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "takeover",
		Short: "Make a data directory of the network that an OpenZiti controller had.",
		Long: "Make a data directory of the network that an OpenZiti controller had: its records, keys,\n" +
			"ports and names, so that clients and routers go on. The old controller must be stopped, or\n" +
			"--db must name a snapshot. Its files are only read: to go back, start it again.\n" +
			"With --plan nothing is kept, and the report says what would come over and what to know.",
		Args: command.Exactly(0),
	}
	cmd.Flags().StringVar(&t.Config, "config", "", "Settings of the OpenZiti controller, such as ctrl.yml.")
	cmd.Flags().StringVar(&t.Dir, "dir", "", "Directory that the OpenZiti controller was started in, which paths in its settings are relative to; where the settings are if empty.")
	cmd.Flags().StringVar(&t.Database, "db", "", "Database to read, in place of the one that the settings name: a snapshot, say.")
	cmd.Flags().StringVar(&t.Data, "data", t.Data, "Directory to make; it must be new or empty.")
	cmd.Flags().BoolVar(&t.Plan, "plan", false, "Only say what would be done.")
	cmd.Flags().BoolVar(&t.LeaveOut, "leave-out", false, "Do without records that the rules of netkeep refuse.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the report as JSON.")
	_ = cmd.MarkFlagRequired("config")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		t.Log, t.Progress = newLogger(env, "warn", "text"), progress(cmd.ErrOrStderr(), env.Now)
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends it at once
		report, err := server.TakeOver(ctx, t)
		if err != nil && ctx.Err() != nil && !errors.Is(err, server.ErrTakeoverLeft) {
			return errors.New("it was ended before all was there, and nothing of it is left: the same command begins anew")
		}
		if report != nil {
			if bad := tellTakeover(cmd.OutOrStdout(), report, asJSON); err == nil {
				err = bad
			}
		}
		if err != nil || t.Plan || asJSON {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "\nThe network is in %s. Stop the old controller if it runs, and start this one:\n\n  %s\n",
			t.Data, advice.Command("run", "--config", filepath.Join(t.Data, "netkeep.yaml")))
		return nil
	}
	return cmd
}

// tellTakeover prints the report.
func tellTakeover(w io.Writer, report *server.TakeoverReport, asJSON bool) error {
	if asJSON {
		text, err := json.MarshalIndent(report, "", "  ")
		fmt.Fprintf(w, "%s\n", screen.EscapeJSON(text))
		return err
	}
	var text bytes.Buffer
	err := report.Write(&text)
	_, bad := w.Write(screen.PlainLines(text.Bytes())) // names are somebody else's
	return errors.Join(err, bad)
}

// progressEvery is how often it is told how far a long work is.
const progressEvery = 2 * time.Second

// progress tells how far a takeover is, if that takes long.
func progress(w io.Writer, now func() time.Time) func(done, all int) {
	last := now()
	return func(done, all int) {
		if now().Sub(last) < progressEvery {
			return
		}
		last = now()
		fmt.Fprintf(w, "%d of %d records\n", done, all)
	}
}
