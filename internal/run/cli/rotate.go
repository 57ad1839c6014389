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

// rotated are the keys that can be rotated, as people say them.
var rotated = map[string]string{
	server.IntermediateCA: "intermediate CA", server.RootCA: "root CA", server.SessionSecret: "key of session tokens", server.SealSecret: "key of seals",
	server.ClusterCA: "CA between controllers",
}

func keysRotateCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate intermediate|root|session|seal|cluster",
		Short: "Put another key in place of the one in use, while the network goes on.",
		Long: "Puts another key in place of the present one, at a controller that may run meanwhile and\n" +
			"follows within seconds. Other controllers of the network get it from that one, and it is\n" +
			"used when all have said that they have it.\n\n" +
			"An intermediate CA is replaced at once; what the one before signed is good until it ends.\n" +
			"The others are replaced in steps: what was made with the one before is good until --finish.\n" +
			"A root CA: clients and routers get new certificates, and netkeep keys status says who has\n" +
			"not yet; --undo goes back. The key of session tokens: --finish ends the sessions that were\n" +
			"opened before. The key of seals, under which invitations and second factors are stored: they\n" +
			"are sealed anew by themselves, and --finish gives up the one before. The CA between\n" +
			"controllers that keep the store together: each has to be started again, one after the other,\n" +
			"to trust the new one, and once more after --finish to trust the one before no more.",
		Args: command.Exactly(1), ValidArgs: []string{server.IntermediateCA, server.RootCA, server.SessionSecret, server.SealSecret, server.ClusterCA},
	}
	load := settings(cmd, env)
	var r server.Rotation
	flags := cmd.Flags()
	flags.BoolVar(&r.Finish, "finish", false, "End the trust in the key of before, once everybody has followed.")
	flags.BoolVar(&r.Undo, "undo", false, "Go back to the root CA of before, as long as the rotation is not finished.")
	flags.BoolVar(&r.Force, "force", false, "With --finish: also if somebody has not followed, who has to enroll again then. Without: use a new key that waits for controllers which have not got it.")
	flags.StringVar(&r.RootKey, "root-key", "", "File with the key of the present root CA, if it is not kept in the data directory.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.What = args[0]
		if err := checkRotation(r); err != nil {
			return err
		}
		cfg, err := checked(load)
		if err != nil {
			return err
		}
		st, err := server.RotateKeys(cmd.Context(), cfg, r, newLogger(env, cfg.Log.Level, cfg.Log.Format))
		if err != nil {
			return err
		}
		return sayRotated(cmd.OutOrStdout(), r, st)
	}
	return cmd
}

// checkRotation refuses steps that there are not.
func checkRotation(r server.Rotation) error {
	switch _, known := rotated[r.What]; {
	case !known:
		return fmt.Errorf("%q is no key of a network; rotate the intermediate, the root, session, seal or cluster", r.What)
	case r.What == server.IntermediateCA && (r.Finish || r.Undo):
		return errors.New("an intermediate CA is replaced at once: there is nothing to finish or to undo")
	case r.What != server.RootCA && r.Undo:
		return errors.New("--undo is for the root CA alone: rotate once more, what was made with any of them is good until --finish")
	case r.Finish && r.Undo:
		return errors.New("--finish and --undo are the two ways to end a rotation: choose one")
	case r.Force && r.Undo:
		return errors.New("--force is for --finish, or for a new key that waits for controllers")
	}
	return nil
}

// sayRotated says what was done, and what is to do next.
func sayRotated(w io.Writer, r server.Rotation, st server.KeysStatus) error {
	text := rotatedText(r, st)
	switch k := st.Shared; {
	case k == nil:
	case len(k.Restart) > 0 && len(k.Lacking) == 0:
		text += restartText(k)
	case k.Next != "" || len(k.Lacking) > 0:
		text += fmt.Sprintf("These controllers have still to get it: %s.\n", strings.Join(k.Lacking, ", "))
		if k.Next != "" {
			text += "It is used as soon as all have it, and until then the one before is.\n" +
				"netkeep keys status says who lacks it; --force uses it without them, who get it when they are back.\n"
		}
	default:
		text += fmt.Sprintf("All %d controllers have it.\n", len(k.Controllers))
	}
	_, err := io.WriteString(w, text)
	return err
}

// restartText says which controllers to start again, and what for.
func restartText(k *server.SharedKeys) string {
	why := "to trust the CA between controllers of before no more"
	if k.Next == server.ClusterCA {
		why = "to trust the new CA between controllers, which is used as soon as all do"
	}
	return fmt.Sprintf("Start these controllers again, one after the other, %s: %s.\n", why, strings.Join(k.Restart, ", "))
}

func rotatedText(r server.Rotation, st server.KeysStatus) string {
	root := st.Fingerprint(st.Authorities.Root)
	if r.What == server.RootCA && !r.Finish && !r.Undo && st.Shared != nil && st.Shared.Next == server.RootCA {
		root = st.Fingerprint(st.FormerRoot) // which will take the place of the present one
	}
	secret := r.What == server.SessionSecret || r.What == server.SealSecret
	switch {
	case r.What == server.ClusterCA && r.Finish:
		return "The CA between controllers of before has retired. Keep a backup of the pki directory.\n"
	case r.What == server.ClusterCA:
		return "There is a new CA between controllers. Both are trusted until\n\n  netkeep keys rotate cluster --finish\n\nKeep a backup of the pki directory.\n"
	case r.Finish && secret:
		return fmt.Sprintf("The %s of before is gone. Keep a backup of the pki directory.\n", rotated[r.What])
	case secret:
		return fmt.Sprintf("The network has a new %s. What was made with the one before is good until\n\n  netkeep keys rotate %s --finish\n\n"+
			"netkeep keys status says how much is left of it. Keep a backup of the pki directory.\n", rotated[r.What], r.What)
	case r.Finish:
		return fmt.Sprintf("The root CA of before has retired, and its keys are gone. The network's is\n\n  %s\n\nKeep a backup of the pki directory.\n", root)
	case r.Undo:
		return fmt.Sprintf("The root CA of before signs again:\n\n  %s\n\n"+
			"Both are trusted still. Who had followed comes back by itself: netkeep keys status\n"+
			"says who has not, and netkeep keys rotate root --finish ends the trust in the other.\n", root)
	case r.What == server.RootCA:
		return fmt.Sprintf("The network has a new root CA. Its fingerprint is\n\n  %s\n\n"+
			"Both are trusted now. A controller that runs follows within seconds, and clients\n"+
			"and routers then get new certificates. Next:\n"+
			"  1. netkeep keys status says who has not followed yet.\n"+
			"  2. netkeep keys rotate root --finish, when all have; --undo goes back until then.\n"+
			"Keep a backup of the pki directory, and take root.key away from it if you did before.\n", root)
	}
	return fmt.Sprintf("The network has a new intermediate CA under the root CA\n\n  %s\n\n"+
		"A controller that runs follows within seconds. What the one before signed is good\n"+
		"until it ends: there is nothing else to do, but to keep a backup of the pki directory.\n", root)
}

func keysStatusCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the keys of a network, which controller has which, and who has not followed a new root CA yet.",
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
	if st.Authorities.Next != nil {
		line("next", st.Authorities.Next)
	}
	for _, name := range server.Secrets {
		fmt.Fprintf(&b, "%-15s  %s\n", name+" key", st.Keys.SecretID(name))
	}
	for _, ca := range []struct {
		what string
		cert *x509.Certificate
	}{{"cluster CA", st.Keys.Cluster().Current}, {"next", st.Keys.Cluster().Next}, {"trusted as well", st.Keys.Cluster().Former}} {
		if ca.cert != nil {
			line(ca.what, ca.cert)
		}
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
		case st.Keys.Next() == server.RootCA:
			b.WriteString("The new root CA does not sign yet: other controllers have still to get it.\n")
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
		if p != nil && p.Routers.Left+p.Identities.Left > 0 {
			fmt.Fprintf(&b, "\nWho has a certificate that is still trusted, as of %s:\n", p.At.Format(time.RFC3339))
			sayFollowers(&b, p, "no more", most)
			b.WriteString("The others have certificates of a root CA that has retired: enroll them again.\n")
		}
	}
	saySecrets(&b, st)
	sayShared(&b, st)
	_, err := io.WriteString(w, b.String())
	return err
}

// saySecrets says what rests on secrets of before.
func saySecrets(b *strings.Builder, st server.KeysStatus) {
	left := func(secret, what string, count *int) {
		switch {
		case !st.Keys.Turning(secret):
		case count == nil:
			fmt.Fprintf(b, "The controller has not said yet how much rests on the %s key of before.\n", secret)
		default:
			fmt.Fprintf(b, "On the %s key of before, which is good until netkeep keys rotate %s --finish, rest %d %s.\n", secret, secret, *count, what)
		}
	}
	p := st.Progress
	if p == nil {
		p = new(server.Progress)
	}
	left(server.SessionSecret, "sessions", p.Sessions)
	left(server.SealSecret, "records", p.Seals)
}

// sayShared says which keys each controller has.
func sayShared(b *strings.Builder, st server.KeysStatus) {
	k := st.Shared
	if k == nil {
		return
	}
	fmt.Fprintf(b, "\nControllers, as of %s; the keys have changed %d times:\n", k.At.Format(time.RFC3339), k.Generation)
	for _, c := range k.Controllers {
		fmt.Fprintf(b, "  %s %s: root %.16s, intermediate %.16s, session %s, seal %s", c.ID, k.Has(c), c.Root, c.Intermediate, c.Session, c.Seal)
		if c.Cluster != "" {
			fmt.Fprintf(b, ", cluster %.16s", c.Cluster)
		}
		b.WriteString("\n")
	}
	if len(k.Restart) > 0 {
		b.WriteString(restartText(k))
	}
	if k.Next != "" {
		fmt.Fprintf(b, "The new %s is used as soon as all have it.\n", rotated[k.Next])
	}
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
