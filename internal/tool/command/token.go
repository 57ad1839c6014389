package command

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/profile"
	"netkeep.internal/internal/tool/screen"
)

var tokens = noun{model.Tokens.Def}

// The variables by which a program tells who it is and where the controller is. The
// secret is no flag: everybody on a machine may read the arguments of programs.
const (
	tokenVariable       = "NETKEEP_TOKEN"
	controllerVariable  = "NETKEEP_CONTROLLER"
	caVariable          = "NETKEEP_CONTROLLER_CA"
	fingerprintVariable = "NETKEEP_CONTROLLER_FINGERPRINT"
)

const tokenFileFlag = "token-file"

// machineToken is the token of a machine that commands are to show instead of a session;
// empty for none.
func machineToken(cmd *cobra.Command, env Env) (string, error) {
	file, err := cmd.Flags().GetString(tokenFileFlag)
	if err != nil {
		return "", err
	}
	secret, where := env.Getenv(tokenVariable), tokenVariable
	if file != "" {
		where = file
		if secret, err = readSecret(env, file); err != nil {
			return "", fmt.Errorf("--%s: %w", tokenFileFlag, err)
		}
	}
	secret = strings.TrimSpace(secret)
	switch {
	case secret == "" && file != "":
		return "", Usagef("%s holds no token", where)
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", Usagef("what %s holds is no token: it has blanks or other characters that no token has", where)
	}
	return secret, nil
}

// asMachine opens a session of a machine, which needs no login. The variables say where
// the controller is, or else a profile, of which only that is used.
func asMachine(cmd *cobra.Command, env Env, secret string) (*session, error) {
	s := &session{Screen: env.Screen(), now: env.Now, machine: true}
	if at := env.Getenv(controllerVariable); at != "" && !cmd.Flags().Changed("profile") {
		account, err := whereabouts(cmd.Context(), env, at)
		if err != nil {
			return nil, err
		}
		s.profile.Account = account
	} else {
		dir, name, p, err := inUse(cmd, env)
		if err == nil {
			p.Token, p.Cert, p.Key, p.File, p.SignedIn = "", "", "", "", nil
			s.dir, s.name, s.profile = dir, name, p
		} else if len(p.Address) == 0 && !cmd.Flags().Changed("profile") {
			return nil, Usagef("say where the controller is: %s=https://HOST:1280, and %s=HEX or %s=FILE if this machine does not trust its CA", controllerVariable, fingerprintVariable, caVariable)
		} else {
			return nil, err
		}
	}
	var err error
	if s.Client, err = remote.New(s.profile.Account); err != nil {
		return nil, err
	}
	s.Bearer = func(context.Context) (string, error) { return secret, nil }
	return s, nil
}

// whereabouts is where the controller is that the variables name, and whom to trust.
func whereabouts(ctx context.Context, env Env, at string) (account remote.Account, err error) {
	if account.Address, err = remote.Address(at); err != nil {
		return account, usage{fmt.Errorf("%s: %w", controllerVariable, err)}
	}
	if file := env.Getenv(caVariable); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return account, fmt.Errorf("%s: %w", caVariable, err)
		}
		account.CA = string(text)
		return account, nil
	}
	if want := env.Getenv(fingerprintVariable); want != "" {
		root, err := remote.Authority(ctx, account.Address)
		if err != nil {
			return account, err
		}
		if is := remote.Fingerprint(root); !remote.SameFingerprint(want, is) {
			return account, otherAuthority(account.Address, is)
		}
		account.CA = remote.PEM(root)
	}
	return account, nil
}

// refused says why a machine was refused, to which it is no use to log in.
func refused(err *remote.Error) error {
	return markf(remote.ErrDenied, "%s", cmp.Or(err.Reason, err.Message))
}

// addTokens gives the command about tokens of invitations those about tokens of machines.
func addTokens(cmd *cobra.Command, env Env) {
	list := listKind(env, tokens)
	list.Use, list.Aliases = "list", []string{"ls"}
	list.Short = "List tokens of machines, with when and from where each was last used."
	revoke := deleteKind(env, tokens)
	revoke.Use, revoke.Aliases = "revoke NAME…", nil
	revoke.Short = "Revoke tokens of machines: they are refused from now on."
	cmd.AddCommand(createTokenCommand(env), list, revoke, handOverCommand(env))
}

func createTokenCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token that lets a machine do what an admin role allows, and print its secret.",
		Long: "Create a token that lets a machine do what an admin role allows, and print its secret: alone on\n" +
			"standard output, this once. A program has it in NETKEEP_TOKEN, or in a file that --token-file\n" +
			"names, and every command works with it as far as the role allows, without a login.",
		Example: "  netkeep token create ci --role policy-author --expires 90d --from 10.0.0.0/8 > ci.token",
		Args:    Exactly(1),
	}
	role := cmd.Flags().String("role", "", "Admin role that says what the token allows, by name or id.")
	expires := cmd.Flags().String("expires", "", "When it ends: after how long, as in 90d or 12h, or a time, as in 2026-01-31T08:00:00Z; within a year.")
	from := cmd.Flags().StringSlice("from", nil, "Addresses that it may be used from, such as 10.0.0.0/8; any if not given.")
	owner := cmd.Flags().String("owner", "", "Identity that answers for it, by name or id; you if not given.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		if *role == "" || *expires == "" {
			return Usagef("say what it may do and until when, such as: netkeep token create %s --role viewer --expires 90d", args[0])
		}
		end, err := s.later(*expires)
		if err != nil {
			return err
		}
		in := map[string]any{"name": args[0], "roleId": *role, "expiresAt": end.UTC().Format(time.RFC3339), "from": *from}
		if *from == nil {
			delete(in, "from")
		}
		if *owner != "" {
			if in["ownerId"], err = s.idOf(cmd.Context(), identities, *owner); err != nil {
				return err
			}
		}
		var out struct {
			Token     string    `json:"token"`
			ExpiresAt time.Time `json:"expiresAt"`
		}
		if err := s.Post(cmd.Context(), tokens.at(), in, &out); err != nil {
			return err
		}
		s.Notef("This is the secret of token %s until %s, and is shown this once:", screen.Plain(args[0]), out.ExpiresAt.UTC().Format("2006-01-02 15:04 MST"))
		s.Printf("%s\n", out.Token)
		return nil
	})
	return cmd
}

// later reads a moment to come.
func (s *session) later(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if d, err := longAgo(text); err == nil && d > 0 {
		return s.now().Add(d), nil
	}
	return time.Time{}, Usagef("%q is no end; it must be after how long, as in 90d or 12h, or a time, as in 2026-01-31T08:00:00Z", text)
}

func handOverCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use:               "hand-over NAME IDENTITY",
		Short:             "Have another identity answer for a token of a machine.",
		Args:              Exactly(2),
		ValidArgsFunction: completeNames(env, tokens),
		RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error {
			owner, err := s.idOf(cmd.Context(), identities, args[1])
			if err != nil {
				return err
			}
			return s.patchToken(cmd, args[0], map[string]any{"ownerId": owner})
		}),
	}
}

// patchToken changes a token. Lists of changes know no tokens.
func (s *session) patchToken(cmd *cobra.Command, name string, members map[string]any) error {
	id, err := s.idOf(cmd.Context(), tokens, name)
	if err != nil {
		return err
	}
	if err := s.do(cmd.Context(), "PATCH", tokens.at()+"/"+url.PathEscape(id), members, nil); err != nil {
		return err
	}
	s.Printf("token %s changed\n", screen.Plain(name))
	return nil
}

// inUse is the profile that a command is to use, and where profiles are kept.
func inUse(cmd *cobra.Command, env Env) (dir, name string, p profile.Profile, err error) {
	if dir, err = profile.Dir(env.Getenv); err != nil {
		return "", "", p, err
	}
	book, err := profile.Open(dir)
	if err != nil {
		return "", "", p, err
	}
	if name, err = cmd.Flags().GetString("profile"); err != nil {
		return "", "", p, err
	}
	if name == "" {
		name = env.Getenv("NETKEEP_PROFILE")
	}
	name, p, err = book.Named(name)
	return dir, name, p, err
}
