package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netkeep/internal/ops/build"
	"netkeep/internal/tool/command"
	"netkeep/internal/transit/tunneler"
)

// tunnelCommand is for programs that know nothing of the network.
func tunnelCommand(env Env) *cobra.Command {
	opt := tunneler.Options{Version: build.Read().Version, Now: env.Now}
	bind, verbose := "", false
	parent := command.Parent(&cobra.Command{
		Use:   "tunnel",
		Short: "Bring servers and local programs into the network that know nothing of it.",
		Long: "Act for identities that have enrolled (netkeep enroll), in the foreground until told to\n" +
			"stop. What they may do is followed while it runs: services, policies and configs that\n" +
			"change need no restart. What goes wrong with one of them is logged, and the rest goes on.",
	})
	parent.PersistentFlags().StringArrayVarP(&opt.Identities, "identity", "i", nil, "File of an identity to act for; may be given several times.")
	parent.PersistentFlags().DurationVar(&opt.Poll, "poll", 5*time.Second, "How often controllers are asked whether anything changed.")
	parent.PersistentFlags().BoolVarP(&verbose, "verbose", "v", false, "Log every connection too.")
	run := func(cmd *cobra.Command, host bool, ports []string) error {
		if len(opt.Identities) == 0 {
			return command.Usagef("give the file of an identity with --identity FILE; netkeep enroll TOKEN -o FILE makes one")
		}
		if opt.Poll < 100*time.Millisecond {
			return command.Usagef("--poll must be 100ms or more")
		}
		opt.Host = host
		for _, text := range ports {
			p, err := tunneler.ReadPort(text, bind)
			if err != nil {
				return command.Usagef("%v", err)
			}
			opt.Ports = append(opt.Ports, p)
		}
		level := "info"
		if verbose {
			level = "debug"
		}
		opt.Log = newLogger(env, level, "")
		ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer cancel()
		return runTunnel(ctx, opt)
	}
	binds := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringVar(&bind, "bind", "127.0.0.1", "IP address to listen on; others than this machine's own let everybody in who reaches them.")
		return cmd
	}
	parent.AddCommand(
		&cobra.Command{
			Use:   "host",
			Short: "Host every service that the identities may host and that has a config of type host.v1.",
			Long: "Host every service that the identities may host and that has a config of type host.v1\n" +
				"(or host.v2): whoever dials it is connected to the server that the config names, within\n" +
				"what the config allows. Checks of health in the config are made.",
			Example: "  netkeep tunnel host --identity server.json",
			Args:    command.Exactly(0),
			RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd, true, nil) },
		},
		binds(&cobra.Command{
			Use:     "proxy SERVICE:PORT...",
			Short:   "Lead local ports to services.",
			Long:    "Listen on local ports, and lead whoever connects to one to its service. With /udp behind\nthe port it is one for datagrams.",
			Example: "  netkeep tunnel proxy --identity laptop.json wiki:8080 dns:5353/udp",
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return command.Usagef("say which ports lead to which services: SERVICE:PORT, such as wiki:8080 or dns:5353/udp")
				}
				return run(cmd, false, args)
			},
		}),
		binds(&cobra.Command{
			Use:     "run [SERVICE:PORT...]",
			Short:   "Host what can be hosted, and lead local ports to services.",
			Example: "  netkeep tunnel run --identity server.json wiki:8080",
			RunE:    func(cmd *cobra.Command, args []string) error { return run(cmd, true, args) },
		}),
	)
	return parent
}

func runTunnel(ctx context.Context, opt tunneler.Options) error {
	err := tunneler.Run(ctx, opt)
	if err == nil {
		opt.Log.Info("stopped")
	}
	return err
}
