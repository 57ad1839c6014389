package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netkeep/internal/api"
	"netkeep/internal/config"
	"netkeep/internal/server"
)

// drainTime is how long running requests may take to finish at a stop.
const drainTime = 15 * time.Second

func runCommand(env Env) *cobra.Command {
	var file string
	cfg := config.Default()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a controller in the foreground until it is told to stop.",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "YAML file with settings")
	flags := map[string]*string{}
	for s := range cfg.Settings() {
		shown := s.Get()
		flags[s.Flag] = cmd.Flags().String(s.Flag, shown, s.Doc)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := cfg.Load(file, env.Getenv); err != nil {
			return err
		}
		for s := range cfg.Settings() {
			if cmd.Flags().Changed(s.Flag) {
				if err := s.Set(*flags[s.Flag]); err != nil {
					return err
				}
			}
		}
		if err := cfg.Check(); err != nil {
			return err
		}
		return run(cmd.Context(), env, cfg)
	}
	return cmd
}

// run serves until ctx ends, a signal says stop, or the server fails.
func run(ctx context.Context, env Env, cfg config.Config) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	log := newLogger(env, cfg)
	srv, err := server.Start(ctx, cfg, log)
	if err != nil {
		return err
	}
	welcome(env.Stdout, srv, cfg)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-hangup:
			if err := srv.Reload(); err != nil {
				log.Error("reading the certificate again failed", "error", err)
			}
			continue
		case err = <-srv.Failed():
		case <-ctx.Done():
			log.Info("stopping")
		}
		break
	}
	// A second signal ends the process at once.
	cancel()
	drain, done := context.WithTimeout(context.Background(), drainTime)
	defer done()
	if stopErr := srv.Stop(drain); err == nil {
		err = stopErr
	}
	return err
}

func newLogger(env Env, cfg config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		level = slog.LevelInfo
	}
	opt := &slog.HandlerOptions{Level: level}
	if cfg.Log.Format == "text" || cfg.Log.Format == "" && env.Terminal {
		return slog.New(slog.NewTextHandler(env.Stderr, opt))
	}
	return slog.New(slog.NewJSONHandler(env.Stderr, opt))
}

// welcome says where the controller is and how to log in, in lines that work
// as they are printed.
func welcome(w io.Writer, srv *server.Server, cfg config.Config) {
	ca := filepath.Join(cfg.Data, "pki", "root.crt")
	base := "https://" + srv.Address()
	fmt.Fprintf(w, "netkeep is ready at %s\n\n", base)
	fmt.Fprintf(w, "  Look at it:\n    curl --cacert %s %s%s/version\n\n", ca, base, api.ManagementRoot)
	admin, fresh := srv.NewAdmin()
	if !fresh {
		fmt.Fprintf(w, "  Log in as %s:\n    curl --cacert %s -H 'content-type: application/json' \\\n"+
			"      -d '{\"username\":\"%s\",\"password\":\"'\"$NETKEEP_ADMIN_PASSWORD\"'\"}' \\\n"+
			"      '%s%s/authenticate?method=password'\n\n", cfg.Admin.Username, ca, cfg.Admin.Username, base, api.ManagementRoot)
		return
	}
	fmt.Fprintf(w, "  The first admin is %s with the password %s\n  It is shown this once and stored nowhere.\n\n", admin.Username, admin.Password)
	fmt.Fprintf(w, "  Log in:\n    curl --cacert %s -H 'content-type: application/json' \\\n"+
		"      -d '{\"username\":\"%s\",\"password\":\"%s\"}' \\\n"+
		"      '%s%s/authenticate?method=password'\n\n", ca, admin.Username, admin.Password, base, api.ManagementRoot)
}
