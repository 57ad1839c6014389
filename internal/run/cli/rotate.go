package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/tool/command"
)

func keysRotateCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate intermediate|root",
		Short: "Put another CA in place of the one that signs, while the network goes on.",
		Long: "Puts another intermediate or root CA in place of the present one, in the data directory of\n" +
			"a controller, which may run meanwhile and follows within seconds.\n\n" +
			"An intermediate CA is replaced at once; what the one before signed is good until it ends.\n" +
			"A root CA is replaced in steps: the new one signs at once and both are trusted; clients and\n" +
			"routers get new certificates; netkeep keys status says who has not yet; --finish ends the\n" +
			"trust in the one before, or --undo goes back to it.",
		Args: command.Exactly(1), ValidArgs: []string{"intermediate", "root"},
	}
	load := settings(cmd, env)
	var r server.Rotation
	flags := cmd.Flags()
	flags.BoolVar(&r.Finish, "finish", false, "End the trust in the root CA of before, once everybody has followed.")
	flags.BoolVar(&r.Undo, "undo", false, "Go back to the root CA of before, as long as the rotation is not finished.")
	flags.BoolVar(&r.Force, "force", false, "With --finish: also if somebody has not followed, who has to enroll again then.")
	flags.StringVar(&r.RootKey, "root-key", "", "File with the key of the present root CA, if it is not kept in the data directory.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch r.Root = args[0] == "root"; {
		case !r.Root && args[0] != "intermediate":
			return fmt.Errorf("%q is no CA of a network; rotate the intermediate or the root", args[0])
		case !r.Root && (r.Finish || r.Undo):
			return errors.New("an intermediate CA is replaced at once: there is nothing to finish or to undo")
		case r.Finish && r.Undo:
			return errors.New("--finish and --undo are the two ways to end a rotation: choose one")
		case r.Force && !r.Finish:
			return errors.New("--force is for --finish alone")
		}
		cfg, err := checked(load)
		if err != nil {
			return err
		}
		st, err := server.RotateKeys(cfg, r, newLogger(env, cfg.Log.Level, cfg.Log.Format))
		if err != nil {
			return err
		}
		return sayRotated(cmd.OutOrStdout(), r, st)
	}
	return cmd
}

// sayRotated says what was done, and what is to do next.
func sayRotated(w io.Writer, r server.Rotation, st server.KeysStatus) error {
	var text string
	switch {
	case r.Finish:
		text = "The root CA of before has retired, and its keys are gone. The network's is\n\n  %s\n\n" +
			"If other controllers share the store, copy the pki directory to them, all files.\n"
	case r.Undo:
		text = "The root CA of before signs again:\n\n  %s\n\n" +
			"Both are trusted still. Who had followed comes back by itself: netkeep keys status\n" +
			"says who has not, and netkeep keys rotate root --finish ends the trust in the other.\n"
	case r.Root:
		text = "The network has a new root CA. Its fingerprint is\n\n  %s\n\n" +
			"Both are trusted now. A controller that runs follows within seconds, and clients\n" +
			"and routers then get new certificates. Next:\n" +
			"  1. If other controllers share the store, copy the pki directory to them, all files.\n" +
			"  2. netkeep keys status says who has not followed yet.\n" +
			"  3. netkeep keys rotate root --finish, when all have; --undo goes back until then.\n" +
			"Keep a backup of the pki directory, and take root.key away from it if you did before.\n"
	default:
		text = "The network has a new intermediate CA under the root CA\n\n  %s\n\n" +
			"A controller that runs follows within seconds. What the one before signed is good\n" +
			"until it ends: there is nothing else to do, but to copy the pki directory, all files,\n" +
			"to other controllers that share the store, and to your backup.\n"
	}
	_, err := fmt.Fprintf(w, text, st.Fingerprint(st.Authorities.Root))
	return err
}

func keysStatusCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show who signs for a network, and who has not followed a new root CA yet.",
		Args:  command.Exactly(0),
	}
	load := settings(cmd, env)
	all := cmd.Flags().Bool("all", false, "Name all who have not followed, up to a thousand of a kind.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := checked(load)
		if err != nil {
			return err
		}
		st, err := server.ReadKeys(cfg)
		if err != nil {
			return err
		}
		most := 10
		if *all {
			most = 1000
		}
		return sayStatus(cmd.OutOrStdout(), st, most)
	}
	return cmd
}

func sayStatus(w io.Writer, st server.KeysStatus, most int) error {
	var b strings.Builder
	line := func(what string, cert *x509.Certificate) {
		fmt.Fprintf(&b, "%-15s  %s  ends %s\n", what, st.Fingerprint(cert), cert.NotAfter.UTC().Format(time.DateOnly))
	}
	line("root CA", st.Root)
	line("intermediate CA", st.Intermediate)
	if st.Rotating() {
		line("trusted as well", st.FormerRoot)
	}
	if !st.Origin.Equal(st.Root) {
		b.WriteString("network          " + st.Fingerprint(st.Origin) + "  by its first root CA, as snapshots name it\n")
	}
	switch p := st.Progress; {
	case st.Rotating() && p == nil:
		b.WriteString("The controller has not said yet who has followed: start it if it does not run.\n")
	case st.Rotating():
		fmt.Fprintf(&b, "\nWho has followed, as of %s:\n", p.At.Format(time.RFC3339))
		sayFollowers(&b, p, "not yet", most)
		switch {
		case st.Old:
			b.WriteString("The controller has said nothing since: start it.\n")
		case p.Routers.Left+p.Identities.Left == 0:
			b.WriteString("All who have certificates of this network have followed: netkeep keys rotate root --finish\n")
		default:
			b.WriteString("Netkeep's follow by themselves when they are connected, clients within the hour. A router of\n" +
				"OpenZiti follows when it is started once with --extend; a program with OpenZiti's Go SDK when\n" +
				"netkeep tunnel proxy was run with its identity's file.\n")
		}
		b.WriteString("Who has certificates of others, or none, cannot be seen: they need the new root CA too.\n")
	default:
		b.WriteString("No rotation of the root CA is under way.\n")
		if p != nil {
			fmt.Fprintf(&b, "\nWho has a certificate that is still trusted, as of %s:\n", p.At.Format(time.RFC3339))
			sayFollowers(&b, p, "no more", most)
			b.WriteString("The others have certificates of a root CA that has retired: enroll them again.\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sayFollowers counts those who have followed, and names the others.
func sayFollowers(b *strings.Builder, p *server.Progress, others string, most int) {
	for _, f := range []struct {
		what string
		server.Followers
	}{{"routers", p.Routers}, {"identities", p.Identities}} {
		fmt.Fprintf(b, "  %d of %d %s\n", f.All-f.Left, f.All, f.what)
		for i, name := range f.Names {
			if i == most {
				fmt.Fprintf(b, "    and %d more have not (--all names them)\n", f.Left-most)
				break
			}
			b.WriteString("    " + others + ": " + name + "\n")
		}
	}
}
