package command

import (
	"strings"

	"github.com/spf13/cobra"

	"netkeep/internal/tool/join"
)

func routerCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{
		Use:   "router",
		Short: "Set up a router on this machine.",
	})
	cmd.AddCommand(routerEnrollCommand(env))
	return cmd
}

func routerEnrollCommand(env Env) *cobra.Command {
	r := join.RouterRequest{Now: env.Now}
	cmd := &cobra.Command{
		Use:   "enroll TOKEN",
		Short: "Enroll a router, and write its key and certificates.",
		Long: "Enroll a router with an enrollment token: the JWT itself, a file with it, or - for standard\n" +
			"input. With --config, the files go where the router's config says and the certificates are\n" +
			"for the names in it; the config itself stays as it is.",
		Example: "  netkeep router enroll router-1.jwt --config router-1.yml\n  netkeep router enroll router-1.jwt --dir /etc/router --host edge.example.com",
		Args:    Exactly(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&r.Config, "config", "", "Config of the router, which says where its files are.")
	flags.StringVar(&r.Dir, "dir", ".", "Directory for the files, without a config.")
	flags.StringSliceVar(&r.Hosts, "host", nil, "Name or address that clients and other routers reach it under; may be given several times.")
	flags.StringVar(&r.Algorithm, "key-alg", "ec", "Kind of key that is made: "+strings.Join(join.Algorithms(), " or ")+".")
	flags.StringVar(&r.CA, "ca", "", "File with certificates that vouch for the controller, if they are of another authority than the network's.")
	flags.BoolVar(&r.Force, "force", false, "Write over files that are there.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		inv, err := invitation(env, args[0])
		if err != nil {
			return err
		}
		at, err := join.EnrollRouter(cmd.Context(), inv, r)
		if err != nil {
			return err
		}
		scr := env.Screen()
		scr.Printf("Enrolled. The router's config should say:\n\nidentity: {cert: %q, server_cert: %q, key: %q, ca: %q}\n", at.Cert, at.ServerCert, at.Key, at.CA)
		if len(inv.Control) > 0 {
			scr.Printf("ctrl: {endpoint: %q}\n", inv.Control[0])
		}
		return nil
	}
	return cmd
}
