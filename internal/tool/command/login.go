package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/profile"
	"netkeep.internal/internal/tool/screen"
)

// The ways to log in, as the API calls them.
const (
	byPassword = "password"
	byCert     = "cert"
	byJWT      = "ext-jwt"
)

// loginFlags is what a login may be given.
type loginFlags struct {
	username, passwordFile string
	cert, key, jwt         string
	ca, fingerprint, data  string
	identity               string
	code                   string
	sso                    maybe
	sign                   SignIn
	kept                   keeper // of the profile
}

// other reports whether one is to log in in another way than before.
func (f *loginFlags) other() bool {
	return f.cert != "" || f.identity != "" || f.jwt != "" || f.username != "" || f.passwordFile != ""
}

func loginCommand(env Env) *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use:   "login [ADDRESS]",
		Short: "Log in to a controller, and remember it.",
		Long: "Log in to a controller with a password, a client certificate, a JWT or an account of an\n" +
			"identity provider (--sso), and remember the session under a profile. Without an address, the\n" +
			"profile in use is logged in to again.\n\n" +
			"With --sso one signs in in a browser or, where there is none, on another device. The session\n" +
			"is then renewed by itself for as long as the provider lets it. Where there are several\n" +
			"providers, --sso=SIGNER names one.\n\n" +
			"The first time, the fingerprint of the controller's CA is shown: compare it with the one\n" +
			"that the controller printed when it started. --ca, --fingerprint or --data answer that\n" +
			"question beforehand.",
		Example: "  netkeep login https://controller.example.com:1280\n  netkeep login --data data\n  netkeep login --identity alice.json\n" +
			"  netkeep login https://controller.example.com:1280 --sso\n  netkeep login --sso=Corp",
		Args: between(0, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return login(cmd, env, f, args) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.username, "username", "u", "", "User name; admin if not given and there is nobody to ask.")
	flags.StringVar(&f.passwordFile, "password-file", "", "File with the password, - for standard input; asked for if neither it nor NETKEEP_PASSWORD is given.")
	flags.StringVar(&f.cert, "cert", "", "File with a client certificate to log in with.")
	flags.StringVar(&f.key, "key", "", "File with its private key.")
	flags.StringVar(&f.identity, "identity", "", "File of an identity that has enrolled, which says where the controller is, whom to trust and who one is.")
	flags.StringVar(&f.jwt, "jwt", "", "File with a JWT of an external signer to log in with, - for standard input.")
	flags.StringVar(&f.ca, "ca", "", "File with the CA of the controller's certificate.")
	flags.StringVar(&f.fingerprint, "fingerprint", "", "SHA-256 fingerprint of the controller's CA.")
	flags.StringVar(&f.data, "data", "", "Data directory of a controller on this machine, which says where it is and whom to trust.")
	flags.StringVar(&f.code, "code", "", "One-time code, if a second factor is asked for.")
	f.sso.flag(flags, "sso", "Sign in with an identity provider that the controller names; with --sso=SIGNER with that one.")
	f.sign.Flags(flags)
	return cmd
}

func login(cmd *cobra.Command, env Env, f loginFlags, args []string) error {
	f.sso.on = f.sso.on || f.sign != (SignIn{}) && !f.other()
	if f.sso.on && f.other() && f.identity == "" {
		return Usagef("--sso is a way to log in of its own: leave the others out")
	}
	dir, err := profile.Dir(env.Getenv)
	if err != nil {
		return err
	}
	book, err := profile.Open(dir)
	if err != nil {
		return err
	}
	if args, err = f.signer(args, book); err != nil {
		return err
	}
	scr := env.Screen()
	name, p, err := target(cmd, env, f, book, args)
	if err != nil {
		return err
	}
	if err := trust(cmd.Context(), scr, f, &p); err != nil {
		return err
	}
	f.kept = keeper{env, dir, name}
	in, err := enter(cmd.Context(), env, scr, f, &p)
	if err != nil {
		return err
	}
	p.Token, p.Expires, p.Identity = in.Token, in.ExpiresAt, in.Identity.Name
	err = profile.Change(dir, func(b *profile.Book) error {
		b.Profiles[name], b.Current = p, name
		return nil
	})
	if err != nil {
		return err
	}
	scr.Printf("Logged in to %s as %s (profile %s).\n", p.Address, screen.Plain(p.Identity), name)
	return nil
}

// target is the profile that is logged in to, with the address of its
// controller.
func target(cmd *cobra.Command, env Env, f loginFlags, book *profile.Book, args []string) (name string, p profile.Profile, err error) {
	name, err = cmd.Flags().GetString("profile")
	if err != nil {
		return "", p, err
	}
	if name == "" {
		name = env.Getenv("NETKEEP_PROFILE")
	}
	var address string
	switch {
	case len(args) > 0:
		if address, err = remote.Address(args[0]); err != nil {
			return "", p, usage{err}
		}
	case f.identity != "" && f.data == "":
		id, err := remote.ReadIdentity(f.identity)
		if err != nil {
			return "", p, err
		}
		if address, err = remote.Address(id.API); err != nil {
			return "", p, err
		}
	case f.data != "":
		if address, err = localAddress(f.data); err != nil {
			return "", p, err
		}
	default:
		name, p, err = book.Named(name)
		if errors.Is(err, profile.ErrNone) {
			return "", p, Usagef("say where the controller is: netkeep login https://HOST:1280")
		}
		return name, p, err
	}
	if name == "" {
		name = strings.TrimPrefix(address, "https://")
	}
	// What is known of a controller holds for it alone.
	if old := book.Profiles[name]; old.Address == address {
		p = old
	}
	p.Address = address
	return name, p, nil
}

// localAddress is where the controller of a data directory is.
func localAddress(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, "address"))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is not the data directory of a controller that has run here; start it with: netkeep run --data %s", data, data)
	}
	if err != nil {
		return "", fmt.Errorf("the controller's address: %w", err)
	}
	return remote.Address(string(text))
}

// localTrust is whom to trust by the data directory of a controller: its own CA,
// and beside it the certificates of a pair that the operator gave it, unless this
// machine trusts that anyway.
func localTrust(ctx context.Context, data, address string) (string, error) {
	served, err := os.ReadFile(filepath.Join(data, "served.crt"))
	if err == nil {
		if known, err := remote.Known(ctx, address, ""); known || err != nil {
			return "", err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("the controller's certificate: %w", err)
	}
	root, err := os.ReadFile(filepath.Join(data, "pki", "root.crt"))
	return string(root) + string(served), err
}

// trust finds out whom the controller's certificate must come from.
func trust(ctx context.Context, scr *screen.Screen, f loginFlags, p *profile.Profile) error {
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		p.CA = string(text)
		return err
	}
	if f.data != "" {
		var err error
		p.CA, err = localTrust(ctx, f.data, p.Address)
		return err
	}
	if f.identity != "" {
		id, err := remote.ReadIdentity(f.identity)
		if err != nil || id.ID.CA != "" {
			p.CA = id.ID.CA
			return err
		}
	}
	if p.CA != "" && f.fingerprint == "" {
		if good, err := known(ctx, p); good || err != nil {
			return err
		}
	}
	if p.CA == "" && f.fingerprint == "" {
		if known, err := remote.Known(ctx, p.Address, ""); known || err != nil {
			return err
		}
	}
	root, err := remote.Authority(ctx, p.Address)
	if err != nil {
		return err
	}
	is := remote.Fingerprint(root)
	if f.fingerprint != "" {
		if !remote.SameFingerprint(f.fingerprint, is) {
			return otherAuthority(p.Address, is)
		}
	} else {
		if p.CA != "" {
			scr.Notef("%s was vouched for by another CA when you last logged in: its keys were replaced, or it is not the same controller.", p.Address)
		}
		scr.Notef("%s is vouched for by a CA that this machine does not know:\n\n  %s\n  SHA-256 %s\n\nThe controller prints the same when it starts.", p.Address, screen.Plain(root.Subject.String()), is)
		yes, err := scr.Confirm("Is it the same?")
		if errors.Is(err, screen.ErrNobody) {
			return fmt.Errorf("%w; if its fingerprint is right, run: netkeep login %s --fingerprint %s", err, p.Address, is)
		}
		if err != nil {
			return err
		}
		if !yes {
			return errDeclined
		}
	}
	p.CA = remote.PEM(root)
	return nil
}

// otherAuthority says that another CA vouches for a controller than was expected.
func otherAuthority(address, is string) error {
	return fmt.Errorf("the CA of %s has another fingerprint, %s: somebody else may answer there; nothing was sent", address, is)
}

// known reports whether the controller of a profile is the one that it was, or if
// it does not answer another of the same network.
func known(ctx context.Context, p *profile.Profile) (good bool, err error) {
	for _, at := range append([]string{p.Address}, p.Others...) {
		good, failed := remote.Known(ctx, at, p.CA)
		if failed == nil {
			if p.Prefer = ""; at != p.Address {
				p.Prefer = at
			}
			return good, nil
		}
		if err == nil {
			err = failed
		}
	}
	return false, err
}

// loggedIn is what a login gives.
type loggedIn struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
	Identity  struct {
		Name string `json:"name"`
	} `json:"identity"`
	AuthQueries []authQuery `json:"authQueries"`
}

// authQuery is what a session wants to be shown besides.
type authQuery struct {
	TypeID string `json:"typeId"`
	Signer string `json:"id"` // whose token it wants
}

// enter shows the controller who one is.
func enter(ctx context.Context, env Env, scr *screen.Screen, f loginFlags, p *profile.Profile) (*loggedIn, error) {
	if (f.cert == "") != (f.key == "") {
		return nil, Usagef("a client certificate needs both --cert and --key")
	}
	renew := !f.other() && !f.sso.on && p.HasCertificate()
	if !renew {
		p.Cert, p.Key, p.File = "", "", ""
	}
	signs := !f.other() && !renew && (f.sso.on || p.SignedIn != nil && !p.Second)
	if !signs && !p.Second {
		p.SignedIn = nil
	}
	method, req := byPassword, remote.Request{}
	var err error
	switch {
	case signs:
		method = byJWT
		req.Bearer, err = signFirst(ctx, scr, f, p)
	case renew:
		method = byCert
	case f.cert != "":
		method = byCert
		if p.Cert, err = filepath.Abs(f.cert); err == nil {
			p.Key, err = filepath.Abs(f.key)
		}
	case f.identity != "":
		method = byCert
		p.File, err = filepath.Abs(f.identity)
	case f.jwt != "":
		method = byJWT
		req.Bearer, err = readSecret(env, f.jwt)
	default:
		req.Body, err = password(env, scr, f)
	}
	if err != nil {
		return nil, err
	}
	p.Token = ""
	client, err := remote.New(p.Account)
	if err != nil {
		return nil, err
	}
	in, err := authenticate(ctx, client, req, method)
	if err != nil {
		if signs && errors.Is(err, remote.ErrDenied) {
			return nil, notKnown(p)
		}
		return nil, wrongPassword(err, method)
	}
	client.Use(in.Token)
	if err := secondFactor(ctx, scr, f, client, in, p); err != nil {
		return nil, err
	}
	ask, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	if p.Learned = (time.Time{}); learn(ask, client, &p.Account) {
		p.Learned = env.Now().UTC() // or else the next command asks
	}
	if p.Revision = 0; len(p.Others) > 0 {
		p.Revision = client.Written()
	}
	return in, nil
}

// wrongPassword says what to do where a login is refused.
func wrongPassword(err error, method string) error {
	if !errors.Is(err, remote.ErrDenied) {
		return err
	}
	reason := "wrong user name or password, or too many tries; a lost admin password is made anew by netkeep admin reset"
	switch method {
	case byCert:
		reason = "the controller does not accept this certificate"
	case byJWT:
		reason = "the controller does not accept this token"
	}
	return markf(remote.ErrDenied, "the login was refused (%s)", reason)
}

// password is the body of a login with one.
func password(env Env, scr *screen.Screen, f loginFlags) (map[string]any, error) {
	username, secret := f.username, env.Getenv("NETKEEP_PASSWORD")
	var err error
	if f.passwordFile != "" {
		if secret, err = readSecret(env, f.passwordFile); err != nil {
			return nil, err
		}
	}
	if username == "" && scr.Reads && f.passwordFile != "-" {
		if username, err = scr.Ask("User name [admin]: "); err != nil {
			return nil, err
		}
	}
	if username == "" {
		username = "admin"
	}
	if secret == "" {
		secret, err = scr.Secret("Password of " + username + ": ")
		if errors.Is(err, screen.ErrNobody) {
			err = fmt.Errorf("%w; give the password with --password-file or in NETKEEP_PASSWORD", err)
		}
	}
	return map[string]any{"username": username, "password": secret}, err
}

// maxSecret is more than any secret has.
const maxSecret = 64 << 10

// readSecret reads a secret's file, without the line break at its end.
func readSecret(env Env, file string) (string, error) {
	data, err := readFile(env, file, maxSecret)
	return strings.TrimRight(string(data), "\r\n"), err
}

// authenticate opens an API session.
func authenticate(ctx context.Context, c *remote.Client, req remote.Request, method string) (*loggedIn, error) {
	req.Method, req.Path, req.Query = http.MethodPost, "/authenticate", url.Values{"method": {method}}
	if req.Body == nil {
		req.Body = map[string]any{}
	}
	req.Stranger = true
	in := new(loggedIn)
	return in, c.Call(ctx, req, in)
}

// tries is how often a wrong one-time code may be typed.
const tries = 3

// secondFactor shows what else the session wants: a one-time code, or a token of an
// identity provider.
func secondFactor(ctx context.Context, scr *screen.Screen, f loginFlags, c *remote.Client, in *loggedIn, p *profile.Profile) error {
	first := p.SignedIn != nil && !p.Second
	if p.Second = false; !first && len(in.AuthQueries) == 0 {
		p.SignedIn = nil
	}
	for _, q := range in.AuthQueries {
		var err error
		switch {
		case strings.EqualFold(q.TypeID, "MFA"):
			err = oneTimeCode(ctx, scr, f, c)
		case !strings.EqualFold(q.TypeID, "EXT-JWT"):
			err = fmt.Errorf("the session also wants %s, which this command cannot give", q.TypeID)
		case first:
			err = errors.New("the session wants tokens of two signers, of which a profile holds one: have an admin ask for another second factor, or log in with a certificate or password first")
		default:
			err = signSecond(ctx, scr, f, c, q, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// oneTimeCode shows a one-time code.
func oneTimeCode(ctx context.Context, scr *screen.Screen, f loginFlags, c *remote.Client) error {
	code := f.code
	for try := 1; ; try++ {
		var err error
		if code == "" {
			if code, err = scr.Ask("One-time code: "); errors.Is(err, screen.ErrNobody) {
				err = fmt.Errorf("%w; the session wants a one-time code: give it with --code", err)
			}
		}
		if err == nil {
			err = c.Post(ctx, "/authenticate/mfa", map[string]any{"code": code}, nil)
		}
		if err == nil {
			return nil
		}
		refused, ok := errors.AsType[*remote.Error](err)
		if !ok || refused.Status != http.StatusBadRequest || f.code != "" || try == tries {
			return err
		}
		scr.Notef("That is not the code; try again.")
		code = ""
	}
}

func logoutCommand(env Env) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "End the session, and forget its token.",
		Args:  Exactly(0),
		RunE: with(env, func(cmd *cobra.Command, s *session, _ []string) error {
			s.Renew, s.Bearer = nil, nil // a session that is not complete can be ended too
			err := s.Call(cmd.Context(), remote.Request{Method: http.MethodDelete, Path: "/current-api-session"}, nil)
			if err != nil && !errors.Is(err, remote.ErrDenied) {
				return err
			}
			dir, err := profile.Dir(env.Getenv)
			if err != nil {
				return err
			}
			err = profile.Change(dir, func(b *profile.Book) error {
				p := b.Profiles[s.name]
				s.profile.SignedIn = p.SignedIn // which may be newer
				p.Token, p.Cert, p.Key, p.File, p.SignedIn, p.Second = "", "", "", "", nil, false
				b.Profiles[s.name] = p
				return nil
			})
			if err == nil && s.profile.SignedIn != nil {
				if failed := signOut(cmd.Context(), env, s.profile); failed != nil {
					s.Notef("You are logged out here, and the provider was not told: %v", failed)
				}
			}
			if err == nil {
				s.Printf("Logged out of %s.\n", s.profile.Address)
			}
			return err
		}),
	}
}

func whoamiCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Say who is logged in, and where.",
		Args:  Exactly(0),
	}
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		var me struct {
			ID      string   `json:"id"`
			Name    string   `json:"name"`
			IsAdmin bool     `json:"isAdmin"`
			Roles   []string `json:"roles"`
		}
		if err := s.Get(cmd.Context(), "/current-identity", nil, &me); err != nil {
			return err
		}
		if *output != formText {
			return s.value(*output, map[string]any{"id": me.ID, "name": me.Name, "isAdmin": me.IsAdmin, "roles": me.Roles, "address": s.profile.Address, "profile": s.name})
		}
		role := "not an admin"
		switch {
		case me.IsAdmin:
			role = "an admin"
		case len(me.Roles) > 0:
			role = "with the admin roles " + screen.Plain(strings.Join(me.Roles, ", "))
		}
		s.Printf("%s, %s, at %s (profile %s)\n", screen.Plain(me.Name), role, s.profile.Address, s.name)
		return nil
	})
	return cmd
}

func profilesCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the controllers that were logged in to.",
		Args:  Exactly(0),
	}
	use := cmd.Flags().String("use", "", "Make this profile the one that is used.")
	remove := cmd.Flags().String("remove", "", "Forget this profile.")
	cmd.RunE = func(*cobra.Command, []string) error {
		dir, err := profile.Dir(env.Getenv)
		if err != nil {
			return err
		}
		if *use != "" || *remove != "" {
			err := profile.Change(dir, func(b *profile.Book) error { return switchProfile(b, *use, *remove) })
			if err != nil {
				return err
			}
		}
		b, err := profile.Open(dir)
		if err != nil {
			return err
		}
		t := screen.Table{Heads: []string{"profile", "address", "identity", "in use"}}
		for _, name := range b.Names() {
			p, used := b.Profiles[name], ""
			if name == b.Current {
				used = "yes"
			}
			t.Rows = append(t.Rows, []string{name, p.Address, p.Identity, used})
		}
		return env.Screen().Write(t)
	}
	return cmd
}

func switchProfile(b *profile.Book, use, remove string) error {
	for _, name := range []string{use, remove} {
		if _, ok := b.Profiles[name]; name != "" && !ok {
			return fmt.Errorf("there is no profile %q; there is: %s", name, strings.Join(b.Names(), ", "))
		}
	}
	if use != "" {
		b.Current = use
	}
	if delete(b.Profiles, remove); b.Current == remove {
		b.Current = ""
	}
	return nil
}
