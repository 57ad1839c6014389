package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
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
		Args:  command.Exactly(0),
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
	ignoreFileLimit()
	// One that comes before there is something to read again must not end it.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	log := newLogger(env, cfg.Log.Level, cfg.Log.Format)
	for _, text := range config.Ignored(env.Environ) {
		log.Warn(text)
	}
	// A start makes much that stays and little garbage: collect less often.
	usual := debug.SetGCPercent(startGCPercent)
	srv, err := server.Start(ctx, cfg, log)
	switch {
	case err != nil && ctx.Err() != nil:
		log.Info("stopped before it was ready")
		return nil
	case err != nil:
		return err
	}
	debug.SetGCPercent(usual)
	// What it took to load would otherwise stay with the program for minutes.
	go func() {
		debug.FreeOSMemory()
		new(rest).run(ctx, srv.Rest)
	}()
	logStart(log, srv, cfg)
	welcome(env, srv, cfg)
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
	log.Info("ready", "version", b.Version, "revision", b.Revision, "data", cfg.Data, "listen", srv.Listening().String(),
		"advertise", srv.Address(), "management", srv.ManagementAddress(), "metrics", place(srv.Metrics()))
}

func newLogger(env Env, least, format string) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(least)); err != nil {
		level = slog.LevelInfo
	}
	opt := &slog.HandlerOptions{Level: level}
	if format == "text" || format == "" && env.Screen().Tells {
		return slog.New(slog.NewTextHandler(env.Stderr, opt))
	}
	return slog.New(slog.NewJSONHandler(env.Stderr, opt))
}

// welcome says where the controller is and what to try, in lines that work as
// they are printed.
func welcome(env Env, srv *server.Server, cfg config.Config) {
	w := env.Stdout
	fmt.Fprintf(w, "netkeep is ready at https://%s\n\n", srv.Address())
	next := "list services"
	if admin, fresh := srv.NewAdmin(); fresh {
		fmt.Fprintf(w, "  The first admin is %s with the password %s\n  It is shown this once and stored nowhere.\n\n", admin.Username, admin.Password)
		next = "demo"
	}
	fmt.Fprintf(w, "  The console is at https://%s/console/\n\n", srv.ManagementAddress())
	if at := srv.Router(); at != nil {
		fmt.Fprintf(w, "  A router for clients is at %s\n\n", at)
	}
	program := quote(cmp.Or(env.Program, "netkeep"))
	fmt.Fprintf(w, "  Try in another terminal:\n    %s login --data %s --username %s\n    %s %s\n    %s status\n\n",
		program, quote(cfg.Data), quote(cfg.Admin.Username), program, next, program)
	fmt.Fprintf(w, "%s    SHA-256 %s\n\n", elsewhere(program, srv.ManagementAddress()), srv.Fingerprint())
}

// elsewhere is how to log in from another machine, if one can.
func elsewhere(program, address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip.IsLoopback()) {
		return "  No other machine reaches this address; --listen and --advertise give it another.\n  The fingerprint of the CA is\n"
	}
	return fmt.Sprintf("  From another machine: %s login https://%s\n  which asks whether this is the fingerprint of the CA:\n", program, address)
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
