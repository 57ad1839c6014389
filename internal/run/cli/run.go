package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netkeep/internal/ops/build"
	"netkeep/internal/ops/config"
	"netkeep/internal/run/server"
	"netkeep/internal/web/api"
)

// drainTime is how long running requests may take to finish at a stop.
const drainTime = 15 * time.Second

// startGCPercent is how much the heap may grow between collections while
// everything is loaded.
const startGCPercent = 400

func runCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a controller in the foreground until it is told to stop.",
		Args:  cobra.NoArgs,
	}
	load := settings(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := checked(load)
		if err != nil {
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
	// A limit on the size of files is then an error of the write, like a full
	// disk, and not the end of the process.
	signal.Ignore(syscall.SIGXFSZ)
	// One that comes before there is something to read again must not end it.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log := newLogger(env, cfg)
	for _, text := range config.Ignored(env.Environ) {
		log.Warn(text)
	}
	// A start makes much that stays and little garbage: collect less often.
	usual := debug.SetGCPercent(startGCPercent)
	srv, err := server.Start(ctx, cfg, nil, log)
	switch {
	case err != nil && ctx.Err() != nil:
		log.Info("stopped before it was ready")
		return nil
	case err != nil:
		return err
	}
	debug.SetGCPercent(usual)
	logStart(log, srv, cfg)
	welcome(env.Stdout, srv, cfg)
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

// logStart says what has started and where it is.
func logStart(log *slog.Logger, srv *server.Server, cfg config.Config) {
	b := build.Read()
	metrics := "off"
	if at := srv.Metrics(); at != nil {
		metrics = at.String()
	}
	log.Info("ready", "version", b.Version, "revision", b.Revision, "data", cfg.Data, "listen", srv.Listening().String(),
		"advertise", srv.Address(), "management", srv.ManagementAddress(), "metrics", metrics)
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
	base := "https://" + srv.ManagementAddress()
	curl := "curl --cacert " + quote(filepath.Join(cfg.Data, "pki", "root.crt"))
	fmt.Fprintf(w, "netkeep is ready at https://%s\n\n", srv.Address())
	fmt.Fprintf(w, "  Look at it:\n    %s %s\n\n", curl, quote(base+api.ManagementRoot+"/version"))
	admin, fresh := srv.NewAdmin()
	if fresh {
		fmt.Fprintf(w, "  The first admin is %s with the password %s\n  It is shown this once and stored nowhere.\n\n  Log in:\n",
			admin.Username, admin.Password)
	} else {
		fmt.Fprintf(w, "  Log in as %s:\n", cfg.Admin.Username)
	}
	fmt.Fprintf(w, "    %s -H 'content-type: application/json' \\\n      -d %s \\\n      %s\n\n",
		curl, credentials(cfg.Admin.Username, admin.Password), quote(base+api.ManagementRoot+"/authenticate?method=password"))
}

// credentials is a login's body as one word of a shell. Where the password is
// not known the shell takes it from the environment.
func credentials(username, password string) string {
	body, after := `{"username":`+strconv.Quote(username)+`,"password":"`, `"}`
	if password != "" {
		return quote(body + password + after)
	}
	return quote(body) + `"$NETKEEP_ADMIN_PASSWORD"` + quote(after)
}

// plain are words that a shell takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)

// quote writes a text as one word of a shell.
func quote(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
