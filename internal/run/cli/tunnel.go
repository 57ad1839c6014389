package cli

import (
	"context"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/tunneler"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/tool/command"
)

// tunnel is what the commands are told.
type tunnel struct {
	env     Env
	opt     tunneler.Options
	bind    string
	allow   []string
	verbose bool
	socket  string
	silence func() // ends what answers on the socket

	intercept interception
	people    people
}

// tunnelCommand is for programs that know nothing of the network.
func tunnelCommand(env Env) *cobra.Command {
	t := &tunnel{env: env, silence: func() {}, opt: tunneler.Options{Version: build.Read().Version, Now: env.Now}}
	parent := command.Parent(&cobra.Command{
		Use:   "tunnel",
		Short: "Bring servers and local programs into the network that know nothing of it.",
		Long: "Act for identities that have enrolled (netkeep enroll), in the foreground until told to\n" +
			"stop. What they may do is followed while it runs: services, policies and configs that\n" +
			"change need no restart. What goes wrong with one of them is logged, and the rest goes on.",
	})
	flags := parent.PersistentFlags()
	flags.StringArrayVarP(&t.opt.Identities, "identity", "i", nil, "File of an identity to act for; may be given several times.")
	flags.DurationVar(&t.opt.Poll, "poll", 5*time.Second, "How often controllers that do not tell of changes by themselves are asked for them.")
	flags.DurationVar(&t.opt.Drain, "drain", 10*time.Second, "How long a stop waits for connections to end; a second signal ends them at once.")
	flags.BoolVarP(&t.verbose, "verbose", "v", false, "Log every connection too.")
	t.sockets(parent)
	t.people.flags(flags)
	parent.AddCommand(t.hostCommand(), t.proxyCommand(), t.runCommand(), t.statusCommand(), t.installCommand(), t.uninstallCommand())
	return parent
}

func (t *tunnel) hostCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Host every service that the identities may host and that has a config of type host.v1.",
		Long: "Host every service that the identities may host and that has a config of type host.v1\n" +
			"(or host.v2): whoever dials it is connected to the server that the config names, within\n" +
			"what the config allows. Checks of health in the config are made. With --allow, this machine\n" +
			"says where services may lead to at all: to an address, a block of them, a name, names below\n" +
			"a domain (*.lan) or anywhere (*), at a port, a range of them or any (*).",
		Example: "  netkeep tunnel host --identity server.json\n" +
			"  netkeep tunnel host --identity server.json --allow 127.0.0.1:8080 --allow '*.lan:443/tcp'",
		Args: command.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd, true, nil) },
	}
	t.allows(cmd)
	return cmd
}

func (t *tunnel) proxyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "proxy SERVICE:PORT...",
		Short:   "Lead local ports to services.",
		Long:    "Listen on local ports, and lead whoever connects to one to its service. With /udp behind\nthe port it is one for datagrams.",
		Example: "  netkeep tunnel proxy --identity laptop.json wiki:8080 dns:5353/udp",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("say which ports lead to which services: SERVICE:PORT, such as wiki:8080 or dns:5353/udp")
			}
			return t.run(cmd, false, args)
		},
	}
	t.binds(cmd)
	return cmd
}

func (t *tunnel) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [SERVICE:PORT...]",
		Short: "Host what can be hosted, and lead local ports and intercepted addresses to services.",
		Long: "Host what can be hosted, and lead local ports to services. With --intercept, on Linux,\n" +
			"programs of this machine reach services under the names and addresses that configs of\n" +
			"type intercept.v1 give them, without a word of configuration; nothing else of what the\n" +
			"machine sends is touched, and all is as before when it stops.",
		Example: "  netkeep tunnel run --identity server.json wiki:8080\n" +
			"  sudo netkeep tunnel run --identity laptop.json --intercept",
		RunE: func(cmd *cobra.Command, args []string) error { return t.run(cmd, true, args) },
	}
	t.binds(cmd)
	t.allows(cmd)
	t.intercepts(cmd)
	return cmd
}

func (t *tunnel) binds(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.bind, "bind", "127.0.0.1", "IP address to listen on; others than this machine's own let everybody in who reaches them.")
}

func (t *tunnel) allows(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&t.allow, "allow", nil, "Reach only HOST:PORTS, such as 10.0.0.0/8:443 or *.lan:80-89/tcp, whatever configs say; may be given several times.")
}

// run does what was asked for until a signal says stop.
func (t *tunnel) run(cmd *cobra.Command, host bool, ports []string) error {
	if err := t.people.signIn(cmd, t.env, &t.opt); err != nil {
		return err
	}
	if len(t.opt.Identities) == 0 {
		return command.Usagef("give the file of an identity with --identity FILE (netkeep enroll TOKEN -o FILE makes one), or sign in with --sso ADDRESS")
	}
	if t.opt.Poll < 100*time.Millisecond {
		return command.Usagef("--poll must be 100ms or more")
	}
	t.opt.Host = host
	if err := t.intercept.read(cmd, &t.opt); err != nil {
		return err
	}
	for _, text := range t.allow {
		a, err := tunneler.ReadAllow(text)
		if err != nil {
			return command.Usagef("%v", err)
		}
		t.opt.Allow = append(t.opt.Allow, a)
	}
	for _, text := range ports {
		p, err := tunneler.ReadPort(text, t.bind)
		if err != nil {
			return command.Usagef("%v", err)
		}
		t.opt.Ports = append(t.opt.Ports, p)
	}
	level := "info"
	if t.verbose {
		level = "debug"
	}
	t.opt.Log = newLogger(t.env, level, "")
	running, end := context.WithCancel(cmd.Context())
	defer end()
	signalled, cancel := signal.NotifyContext(running, t.intercept.signals()...)
	defer cancel()
	leave := make(chan struct{})
	context.AfterFunc(signalled, func() {
		t.intercept.again(running, end)
		cancel() // a second signal ends the process at once
		close(leave)
	})
	t.opt.Leave = leave
	if err := t.answers(cmd.Context()); err != nil {
		return err
	}
	defer t.silence()
	err := tunneler.Run(running, t.opt)
	if err == nil {
		t.opt.Log.Info("stopped")
	}
	return err
}
