package command

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/profile"
)

// Account is somebody who has signed in, for programs that act for them.
type Account struct {
	Address string
	Others  []string
	CA      string
	// Token is what a controller is shown, as often as one is needed, and its end.
	Token func(context.Context) (string, time.Time, error)
	// Left is an error once they have signed out.
	Left func() error

	tokens keeper
	with   profile.Profile
}

// Account has somebody sign in at a controller, unless they have, and keeps that in the
// profile of the controller.
func (f SignIn) Account(cmd *cobra.Command, env Env, address string, trusting Trusting) (*Account, error) {
	a, err := f.account(cmd, env, []string{address}, trusting)
	if err != nil {
		return nil, err
	}
	return a, a.keep()
}

// account is Account that nothing is kept of yet, with the profile in use if there is no
// address.
func (f SignIn) account(cmd *cobra.Command, env Env, address []string, trusting Trusting) (*Account, error) {
	dir, err := profile.Dir(env.Getenv)
	if err != nil {
		return nil, err
	}
	book, err := profile.Open(dir)
	if err != nil {
		return nil, err
	}
	flags := loginFlags{ca: trusting.CA, fingerprint: trusting.Fingerprint}
	name, p, err := target(cmd, env, flags, book, address)
	if err != nil {
		return nil, err
	}
	scr := env.Screen()
	if err := trust(cmd.Context(), scr, flags, &p); err != nil {
		return nil, err
	}
	if p.HasCertificate() {
		return nil, fmt.Errorf("the profile %s logs in with a certificate: run the same with --profile NAME for another", name)
	}
	client, err := remote.New(p.Account)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	tokens := keeper{env, dir, name}
	if p.Second {
		p.SignedIn, p.Second = nil, false
	}
	if p.SignedIn, err = f.signedIn(cmd.Context(), scr, client, &p, "", tokens); err != nil {
		return nil, err
	}
	return &Account{Address: p.Address, Others: p.Others, CA: p.CA, Token: tokens.Token, Left: tokens.left, tokens: tokens, with: p}, nil
}

// keep has the next program find the sign-in.
func (a *Account) keep() error {
	name := a.tokens.name
	return profile.Change(a.tokens.dir, func(b *profile.Book) error {
		b.Profiles[name] = a.with
		if b.Current == "" {
			b.Current = name
		}
		return nil
	})
}

// Trusting is whom to believe to be a controller.
type Trusting struct{ CA, Fingerprint string }

// Flags adds what says so.
func (t *Trusting) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&t.CA, "ca", "", "File with the CA of the controller's certificate, for --sso.")
	flags.StringVar(&t.Fingerprint, "fingerprint", "", "SHA-256 fingerprint of the controller's CA, for --sso.")
}

// SecondOf returns the tokens that somebody has signed in for beside the certificate of an
// identity's file.
func SecondOf(env Env) func(file string) func(context.Context) (string, error) {
	return func(file string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) { return second(ctx, env, file) }
	}
}

func second(ctx context.Context, env Env, file string) (string, error) {
	dir, err := profile.Dir(env.Getenv)
	if err != nil {
		return "", err
	}
	book, err := profile.Open(dir)
	if err != nil {
		return "", err
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	for name, p := range book.Profiles {
		if p.File == whole && p.Second && p.SignedIn != nil {
			token, _, err := keeper{env, dir, name}.Token(ctx)
			return token, err
		}
	}
	return "", fmt.Errorf("nobody has signed in beside it: run netkeep login --identity %s", file)
}
