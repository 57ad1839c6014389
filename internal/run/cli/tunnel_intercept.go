package cli

import (
	"context"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/tun"
	"netkeep.internal/internal/client/tunneler"
	"netkeep.internal/internal/tool/command"
)

// interception is what was said of it.
type interception struct {
	on     bool
	device string
	addrs  string
}

func (t *tunnel) intercepts(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&t.intercept.on, "intercept", false, "Let programs reach services under the names and addresses that configs of type intercept.v1 give them; needs root or CAP_NET_ADMIN.")
	flags.StringVar(&t.intercept.device, "device", tun.DefaultName, "Name of the network device that intercepted addresses lead to.")
	flags.StringVar(&t.intercept.addrs, "range", tun.DefaultRange, "Block of addresses that intercepted names get some of; one that this machine uses for nothing else.")
}

// read takes up what was said.
func (i *interception) read(cmd *cobra.Command, opt *tunneler.Options) error {
	if !i.on {
		for _, name := range []string{"device", "range"} {
			if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
				return command.Usagef("--%s is of use with --intercept alone", name)
			}
		}
		return nil
	}
	block, err := netip.ParsePrefix(i.addrs)
	if err != nil {
		return command.Usagef("--range %q is no block of addresses, such as %s", i.addrs, tun.DefaultRange)
	}
	if err := tun.CheckRange(block); err != nil {
		return command.Usagef("%v", err)
	}
	opt.Intercept = &tunneler.Interception{Device: i.device, Range: block}
	return nil
}

// signals are those that say stop. What is changed on the machine must be as
// before when a terminal is closed too.
func (i *interception) signals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if i.on {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// again has a second signal end everything at once and in order, where the
// process must not go without that; a third ends the process.
func (i *interception) again(ctx context.Context, end func()) {
	if !i.on {
		return
	}
	second, stop := signal.NotifyContext(ctx, i.signals()...)
	context.AfterFunc(second, func() {
		stop()
		end()
	})
}
