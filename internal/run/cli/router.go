package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/router/home"
	"netkeep.internal/internal/tool/command"
	"netkeep.internal/internal/tool/layout"
)

func routerCommand(env Env) *cobra.Command {
	cmd := command.Parent(&cobra.Command{
		Use:   "router",
		Short: "Set up a router on this machine, and run it.",
	})
	cmd.AddCommand(routerEnrollCommand(env), routerRunCommand(env))
	return cmd
}

// routerEnroll is what the command is told: a router of ours, or one of others.
type routerEnroll struct {
	others layout.Request
	data   string
	once   bool
	set    home.Settings
}

func routerEnrollCommand(env Env) *cobra.Command {
	e := routerEnroll{others: layout.Request{Now: env.Now}, set: home.DefaultSettings()}
	cmd := &cobra.Command{
		Use:   "enroll TOKEN",
		Short: "Enroll a router, and write its key and certificates.",
		Long: "Enroll a router with an enrollment token: the JWT itself, a file with it, or - for standard\n" +
			"input. With --data, it is a router of netkeep, whose files go to that directory, and netkeep\n" +
			"router run runs it. Otherwise it is one of OpenZiti: with --config, the files go where its\n" +
			"config says and the certificates are for the names in it; the config itself stays as it is.",
		Example: "  netkeep router enroll router-1.jwt --data /var/lib/netkeep-router --advertise edge.example.com\n" +
			"  netkeep router enroll router-1.jwt --config router-1.yml\n  netkeep router enroll router-1.jwt --dir /etc/router --host edge.example.com",
		Args: command.Exactly(1),
	}
	flags := cmd.Flags()
	r := &e.others
	flags.StringVar(&e.data, "data", "", "Directory for a router of netkeep.")
	flags.BoolVar(&e.once, "once", false, "With --data: do nothing, and be content, if a router is there already, as where a container starts again.")
	flags.StringVar(&e.set.Listen, "listen", e.set.Listen, "With --data: host and port where clients connect, and other routers.")
	flags.StringVar(&e.set.LinkListen, "link-listen", "", "With --data: host and port where other routers connect, if not where clients do.")
	flags.StringSliceVar(&e.set.LinkGroups, "link-group", nil, "With --data: group of routers to link with; may be given several times. Those that are in none if empty.")
	flags.StringSliceVar(&e.set.Advertise, "advertise", nil, "With --data: name or address that leads there, with its port if that is another; may be given several times. That of --listen if empty.")
	flags.StringVar(&e.set.Metrics, "metrics-listen", e.set.Metrics, "With --data: host and port to serve metrics on, in plain HTTP; auto is "+home.MetricsAddress+" if nothing else has it, off is nowhere.")
	flags.StringVar(&r.Config, "config", "", "Config of the router, which says where its files are.")
	flags.StringVar(&r.Dir, "dir", ".", "Directory for the files, without a config.")
	flags.StringSliceVar(&r.Hosts, "host", nil, "Name or address that clients and other routers reach it under; may be given several times.")
	flags.StringVar(&r.Algorithm, "key-alg", "ec", "Kind of key that is made: "+strings.Join(enroll.Algorithms(), " or ")+".")
	flags.StringVar(&r.CA, "ca", "", "File with certificates that vouch for the controller, if they are of another authority than the network's.")
	flags.BoolVar(&r.Force, "force", false, "Write over files that are there.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := e.check(cmd); err != nil {
			return err
		}
		if there, err := home.Enrolled(e.data); e.once && (there || err != nil) {
			return err
		}
		inv, err := command.Invitation(env, args[0])
		switch {
		case err != nil:
			return err
		case e.data != "":
			return e.own(cmd.Context(), env, inv)
		}
		return e.other(cmd.Context(), env, inv)
	}
	return cmd
}

// check refuses flags that are for a router of the other sort.
func (e *routerEnroll) check(cmd *cobra.Command) error {
	ours, theirs := []string{"listen", "link-listen", "link-group", "advertise", "metrics-listen", "once"}, []string{"config", "dir", "host", "key-alg"}
	wrong, why := ours, "is for routers of netkeep: it needs --data"
	if e.data != "" {
		wrong, why = theirs, "is for routers of OpenZiti: leave it out, or leave out --data"
	}
	for _, name := range wrong {
		if cmd.Flags().Changed(name) {
			return command.Usagef("--%s %s", name, why)
		}
	}
	if e.data == "" {
		return nil
	}
	if e.set.Fill(); len(e.set.Advertise) == 0 {
		return command.Usagef("say under which name or address clients reach the router: --advertise HOST")
	}
	return nil
}

// own enrolls a router of netkeep.
func (e *routerEnroll) own(ctx context.Context, env Env, inv *enroll.Invitation) error {
	opt := enroll.Options{Now: env.Now, Words: enroll.Flags}
	var err error
	if opt.Trust, err = enroll.ReadTrust(e.others.CA); err != nil {
		return err
	}
	if err := home.Enroll(ctx, e.data, inv, e.set, e.others.Force, opt); err != nil {
		return err
	}
	env.Screen().Printf("Enrolled. Run the router with:\n\n  netkeep router run --data %s\n", quote(e.data))
	return nil
}

// other enrolls a router of others.
func (e *routerEnroll) other(ctx context.Context, env Env, inv *enroll.Invitation) error {
	at, err := layout.Enroll(ctx, inv, e.others)
	if err != nil {
		return err
	}
	scr := env.Screen()
	scr.Printf("Enrolled. The router's config should say:\n\nidentity: {cert: %q, server_cert: %q, key: %q, ca: %q}\n", at.Cert, at.ServerCert, at.Key, at.CA)
	switch len(inv.Control) {
	case 0:
	case 1:
		scr.Printf("ctrl: {endpoint: %q}\n", inv.Control[0])
	default:
		scr.Printf("ctrl: {endpoints: %s}\n", strings.ReplaceAll(fmt.Sprintf("%q", inv.Control), `" "`, `", "`))
	}
	return nil
}

func routerRunCommand(env Env) *cobra.Command {
	data := ""
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a router of netkeep in the foreground until it is told to stop.",
		Long: "Run a router of netkeep in the foreground until it is told to stop. Its settings are those of\n" +
			"router.yml in its directory; variables such as NETKEEP_LOG_LEVEL and the flags below go before.",
		Args: command.Exactly(0),
	}
	cmd.Flags().StringVar(&data, "data", "", "Directory that the router was enrolled with.")
	usual := home.DefaultSettings()
	sources := settingFlags(cmd, env, config.Of(&usual))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if data == "" {
			return command.Usagef("say which router: --data DIRECTORY, the one that it was enrolled with")
		}
		return runRouter(cmd.Context(), env, data, sources())
	}
	return cmd
}

// runRouter carries until ctx ends, a signal says stop, or the router fails.
func runRouter(ctx context.Context, env Env, data string, over config.Sources) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	set, err := home.ReadSettings(data, over)
	if err != nil {
		set = home.Settings{} // Open says what is wrong
	}
	b := build.Read()
	log := newLogger(env, set.Log.Level, set.Log.Format)
	s, err := home.Open(data, home.Options{Over: over, Now: env.Now, Log: log, Version: b.Version, Revision: b.Revision, Built: b.Date})
	if err != nil {
		return err
	}
	defer s.Close()
	debug.FreeOSMemory() // what it took to get here is of no more use, and a router runs on small machines
	r, err := s.Start()
	if err != nil {
		return err
	}
	log.Info("ready", "version", b.Version, "revision", b.Revision, "data", data, "listen", r.Listening.String(),
		"advertise", s.Settings().Advertise, "metrics", place(r.Metrics))
	select {
	case <-r.Done():
		return r.Err()
	case <-ctx.Done():
		log.Info("stopping")
	}
	// A second signal ends the process at once.
	cancel()
	return r.Stop(context.Background())
}

// place is an address that there may not be.
func place(at net.Addr) string {
	if at == nil {
		return "off"
	}
	return fmt.Sprint(at)
}
