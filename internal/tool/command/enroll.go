package command

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/advice"
	"netkeep.internal/internal/tool/screen"
)

// maxToken is more than any enrollment token has.
const maxToken = 64 << 10

// Invitation reads an enrollment token: the text itself, a file or standard
// input.
func Invitation(env Env, arg string) (*enroll.Invitation, error) {
	text := arg
	if _, err := os.Stat(arg); arg == "-" || err == nil {
		data, err := readFile(env, arg, maxToken)
		if err != nil {
			return nil, err
		}
		text = string(data)
	} else if strings.Count(arg, ".") != 2 {
		return nil, fmt.Errorf("%s is neither a file nor an enrollment token", screen.Plain(arg))
	}
	return enroll.Read(text)
}

func enrollCommand(env Env) *cobra.Command {
	r := enroll.Request{Now: env.Now, Words: enroll.Flags}
	passwordFile, at, fingerprint, sign := "", maybe{}, "", SignIn{}
	cmd := &cobra.Command{
		Use:   "enroll [TOKEN]",
		Short: "Join a network as an identity, and write the file that SDKs and tunnelers need.",
		Long: "Join a network with an enrollment token: the JWT itself, a file with it, or - for standard\n" +
			"input. Nothing is sent to a server whose key did not sign the token or, if that one does not\n" +
			"answer, that is not of the root CA that the token names. The file that is written holds a\n" +
			"private key: only its owner may read it, and none is written over.\n\n" +
			"With --sso somebody joins who has an account of an identity provider, if its signer lets\n" +
			"people enroll: with -o by a certificate, and else to sign in each time.",
		Example: "  netkeep enroll laptop.jwt -o laptop.json\n  netkeep enroll machine.jwt -o machine.json --cert machine.crt --key machine.key\n" +
			"  netkeep enroll --sso https://controller.example.com:1280 -o laptop.json",
		Args: between(0, 2),
	}
	flags := cmd.Flags()
	flags.StringVarP(&r.Output, "output", "o", "", "File to write the identity to; not needed for a password.")
	flags.BoolVar(&r.Force, "force", false, "Write over a file that is there.")
	flags.StringVar(&r.Cert, "cert", "", "File with the certificate of another CA that the token is for.")
	flags.StringVar(&r.Key, "key", "", "File with the key of --cert, or with a key to enroll with; one is made if not given.")
	flags.StringVar(&r.Algorithm, "key-alg", "ec", "Kind of key that is made: "+strings.Join(enroll.Algorithms(), " or ")+".")
	flags.StringVar(&r.CA, "ca", "", "File with certificates that vouch for the controller, if they are of another authority than the network's.")
	flags.BoolVar(&r.Several, "all-controllers", false, "Name all controllers in the file for SDKs of others, as those for C take it; SDKs for Go of 1.5 and later cannot bear it.")
	flags.StringVar(&r.Name, "name", "", "Name that the new identity should have, if the token is a CA's.")
	flags.StringVarP(&r.Username, "username", "u", "", "User name, if the token is for a password and has none.")
	flags.StringVar(&passwordFile, "password-file", "", "File with the new password, - for standard input; asked for if not given.")
	at.flag(flags, "sso", "Enroll who signs in with an identity provider at the controller of an address, or of the profile in use.")
	flags.StringVar(&fingerprint, "fingerprint", "", "SHA-256 fingerprint of the controller's CA, for --sso.")
	sign.Flags(flags)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if at.on {
			return at.person(cmd, env, sign, args, Trusting{r.CA, fingerprint}, r)
		}
		if len(args) == 0 {
			return Usagef("give an enrollment token, or sign in with --sso ADDRESS")
		}
		if len(args) > 1 {
			return Usagef("there is no place for %q in: %s", args[1], cmd.UseLine())
		}
		inv, err := Invitation(env, args[0])
		if err != nil {
			return err
		}
		scr := env.Screen()
		r.Password = func() (string, error) { return newPassword(env, scr, passwordFile) }
		file, username, err := enroll.Enroll(cmd.Context(), inv, r)
		if err != nil {
			return err
		}
		if file == "" {
			words := []string{"login", inv.Controller}
			if username != "" {
				words = append(words, "--username", username)
			}
			scr.Printf("Enrolled. Log in with the password: %s\n", screen.Plain(advice.Command(words...)))
			return nil
		}
		scr.Printf("Enrolled. The identity is in %s, which only you may read.\n", file)
		return nil
	}
	return cmd
}

// newPassword reads a password, or asks for it twice.
func newPassword(env Env, scr *screen.Screen, file string) (string, error) {
	if file != "" {
		return readSecret(env, file)
	}
	first, err := scr.Secret("New password: ")
	if errors.Is(err, screen.ErrNobody) {
		return "", fmt.Errorf("%w; give the password with --password-file", err)
	}
	if err != nil {
		return "", err
	}
	again, err := scr.Secret("Once more: ")
	if err == nil && again != first {
		err = errors.New("these are two different passwords; try again")
	}
	return first, err
}

// person has somebody sign in and become an identity, at the controller that --sso or an
// argument names, or else that of the profile in use.
func (c maybe) person(cmd *cobra.Command, env Env, sign SignIn, at []string, trusting Trusting, r enroll.Request) error {
	if c.value != "" {
		at = append(at, c.value)
	}
	if len(at) > 1 || len(at) == 1 && isToken(at[0]) {
		return Usagef("--sso takes the place of a token: leave one of them out")
	}
	if r.Output != "" && !r.Force {
		if _, err := os.Lstat(r.Output); err == nil { // before anybody signs in
			return fmt.Errorf("%s is there already: name another file, or give --force to write over it", r.Output)
		}
	}
	a, err := sign.account(cmd, env, at, trusting)
	if err != nil {
		return err
	}
	client, err := remote.New(remote.Account{Address: a.Address, Others: a.Others, CA: a.CA})
	if err != nil {
		return err
	}
	defer client.Close()
	scr, signed := env.Screen(), a.with.SignedIn
	name, err := enroll.Person{Client: client, Token: signed.Show, Signer: signed.Signer.ID, CA: a.CA}.Enroll(cmd.Context(), r)
	if err != nil {
		return err
	}
	if r.Output != "" {
		scr.Printf("Enrolled as %s. The identity is in %s, which only you may read.\n", screen.Plain(name), r.Output)
		return nil
	}
	if err := a.keep(); err != nil {
		return err
	}
	scr.Printf("Enrolled as %s. Go on with: netkeep login %s --sso, or netkeep tunnel run --sso %s\n", screen.Plain(name), a.Address, a.Address)
	return nil
}
