package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/client/sso"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/tool/profile"
	"netkeep.internal/internal/tool/screen"
)

// SignIn is how somebody wants to sign in with an identity provider.
type SignIn struct {
	Signer string
	Device bool
	Port   int
}

// Flags adds what a sign-in may be given.
func (f *SignIn) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.Signer, "signer", "", "Identity provider to sign in with, by the name or id of its external JWT signer; not needed if there is one alone.")
	flags.BoolVar(&f.Device, "sso-device", false, "Sign in on another device, by an address and a code, also if there is a browser here.")
	flags.IntVar(&f.Port, "sso-port", 0, "Port of this machine that the provider leads the browser back to, if it knows one alone; any if not given.")
}

// meet finds the provider to sign in with, of those that a controller names.
func (f SignIn) meet(ctx context.Context, env Env, c *remote.Client, id, again string) (*sso.Provider, error) {
	all, err := sso.Signers(ctx, c)
	if err != nil {
		return nil, err
	}
	name := f.Signer
	if id != "" {
		name = id
	}
	signer, err := sso.Choose(all, name, "--signer")
	if err != nil {
		return nil, err
	}
	return sso.Meet(ctx, signer, sso.Options{Now: env.Now, Port: f.Port, Again: again})
}

// sign has a person sign in: in a browser of this machine, or else on another device.
func (f SignIn) sign(ctx context.Context, env Env, scr *screen.Screen, p *sso.Provider) (*sso.Tokens, error) {
	browser := browserOf(env, runtime.GOOS)
	if f.Device || browser == nil && p.CanDevice() {
		return p.OnDevice(ctx, func(s sso.Prompt) {
			if whole := s.Whole; scr.Tells && whole != "" {
				if code, err := screen.QR(whole); err == nil {
					scr.Notef("%s", code)
				}
			}
			scr.Notef("To sign in with %s, open this address on any device:\n\n  %s\n\nand type this code, if it shows no other and asks for one:\n\n  %s\n",
				screen.Plain(p.Name()), screen.Plain(s.Address), screen.Plain(s.Code))
		})
	}
	return p.InBrowser(ctx, func(address string) error {
		if browser == nil || start(browser, address) != nil {
			scr.Notef("To sign in with %s, open this address in a browser of this machine:\n\n  %s\n", screen.Plain(p.Name()), screen.Plain(address))
			return nil
		}
		scr.Notef("Sign in with %s in your browser. If none opened, open this address there:\n\n  %s\n", screen.Plain(p.Name()), screen.Plain(address))
		return nil
	})
}

// browserOf is how a browser is started that the person sees; nil if there is none.
func browserOf(env Env, system string) []string {
	if words := strings.Fields(env.Getenv("BROWSER")); len(words) > 0 {
		return words
	}
	switch system {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	if env.Getenv("DISPLAY") == "" && env.Getenv("WAYLAND_DISPLAY") == "" {
		return nil
	}
	if path, err := exec.LookPath("xdg-open"); err == nil {
		return []string{path}
	}
	return nil
}

// start opens an address, which begins with https, in a browser. Nobody waits for it.
func start(browser []string, address string) error {
	cmd := exec.Command(browser[0], append(browser[1:len(browser):len(browser)], address)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// againWith is how somebody signs in anew.
func againWith(address string) string { return "netkeep login " + address + " --sso" }

// signedIn returns tokens that can be shown: those that are kept, newer ones in their
// place, or those of a person who signs in now.
func (f SignIn) signedIn(ctx context.Context, scr *screen.Screen, c *remote.Client, p *profile.Profile, id string, k keeper) (*sso.Tokens, error) {
	wanted := f.Signer
	if id != "" {
		wanted = id
	}
	if kept := p.SignedIn; kept != nil && (wanted == "" || wanted == kept.Signer.ID || strings.EqualFold(wanted, kept.Signer.Name)) {
		t, err := k.tokens(ctx)
		if err == nil || errors.Is(err, sso.ErrAway) || ctx.Err() != nil {
			return t, err
		}
	}
	provider, err := f.meet(ctx, k.env, c, id, againWith(p.Address))
	if err != nil {
		return nil, err
	}
	return f.sign(ctx, k.env, scr, provider)
}

// keeper gives out tokens of a profile, and keeps the newer ones there.
type keeper struct {
	env  Env
	dir  string
	name string // of the profile
}

// turn is how often it is tried to be the only one who gets newer tokens, and turnTime how
// long.
const (
	turn     = 50 * time.Millisecond
	turnTime = time.Minute
)

// Token returns a token that can be shown, and its end. Only one process asks the provider
// for newer ones at a time: what they are had for is often good for once, and a provider
// that sees it twice takes it for stolen.
func (k keeper) Token(ctx context.Context) (string, time.Time, error) {
	t, err := k.tokens(ctx)
	if errors.Is(err, sso.ErrAway) {
		err = markf(remote.ErrUnreachable, "%v", err) // it may be back soon
	}
	if err != nil {
		return "", time.Time{}, err
	}
	return t.Show, t.Ends, nil
}

func (k keeper) tokens(ctx context.Context) (*sso.Tokens, error) {
	if t, _, err := k.kept(); err != nil || t.Good(k.env.Now()) {
		return t, err
	}
	release, err := k.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = release() }()
	t, p, err := k.kept() // as another may have left it
	if err != nil || t.Good(k.env.Now()) {
		return t, err
	}
	provider, err := sso.Meet(ctx, t.Signer, sso.Options{Now: k.env.Now, Again: againWith(p.Address)})
	if err != nil {
		return nil, err
	}
	if t, err = provider.Renew(ctx, t); err != nil {
		return nil, err
	}
	return t, k.keep(t)
}

// left is an error if nobody is signed in any more. A file that cannot be read says nothing
// of that.
func (k keeper) left() error {
	if _, _, err := k.kept(); errors.Is(err, remote.ErrDenied) {
		return err
	}
	return nil
}

func (k keeper) kept() (*sso.Tokens, profile.Profile, error) {
	book, err := profile.Open(k.dir)
	if err != nil {
		return nil, profile.Profile{}, err
	}
	_, p, err := book.Named(k.name)
	if err == nil && p.SignedIn == nil {
		err = markf(remote.ErrDenied, "you are not signed in; run: %s", againWith(p.Address))
	}
	return p.SignedIn, p, err
}

func (k keeper) keep(t *sso.Tokens) error {
	return profile.Change(k.dir, func(b *profile.Book) error {
		if p, ok := b.Profiles[k.name]; ok {
			p.SignedIn = t
			b.Profiles[k.name] = p
		}
		return nil
	})
}

func (k keeper) hold(ctx context.Context) (release func() error, err error) {
	late := time.After(turnTime)
	for {
		if release, err = disk.Hold(k.dir); !errors.Is(err, disk.ErrHeld) {
			return release, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-late:
			return nil, fmt.Errorf("another netkeep signs in with %s and does not end: %w", k.dir, err)
		case <-time.After(turn):
		}
	}
}

// signFirst is the token that somebody logs in with.
func signFirst(ctx context.Context, scr *screen.Screen, f loginFlags, p *profile.Profile) (string, error) {
	if p.Second {
		p.SignedIn = nil
	}
	p.Second, p.Token = false, ""
	client, err := remote.New(p.Account)
	if err != nil {
		return "", err
	}
	defer client.Close()
	t, err := f.sign.signedIn(ctx, scr, client, p, "", f.kept)
	if err != nil {
		return "", err
	}
	p.SignedIn = t
	return t.Show, nil
}

// notKnown says that the provider knows somebody, and the network does not.
func notKnown(p *profile.Profile) error {
	return markf(remote.ErrDenied, "%q knows you, and this network does not let you in with it: have an admin give you an identity for that account, or if the signer lets people enroll, run: netkeep enroll --sso %s",
		p.SignedIn.Signer.Name, p.Address)
}

// signSecond shows a token of a signer besides, from now on with every request.
func signSecond(ctx context.Context, scr *screen.Screen, f loginFlags, c *remote.Client, q authQuery, p *profile.Profile) error {
	t, err := f.sign.signedIn(ctx, scr, c, p, q.Signer, f.kept)
	if err != nil {
		return err
	}
	p.SignedIn, p.Second = t, true
	c.Bearer = func(context.Context) (string, error) { return t.Show, nil }
	var now loggedIn
	if err := c.Get(ctx, "/current-api-session", nil, &now); err != nil {
		return err
	}
	for _, left := range now.AuthQueries {
		if left.Signer == q.Signer {
			return markf(remote.ErrDenied, "%q knows you, and not as the identity that logged in: sign in there with the account that belongs to it", t.Signer.Name)
		}
	}
	return nil
}

// signOut has the provider of a profile forget the sign-in.
func signOut(ctx context.Context, env Env, p profile.Profile) error {
	provider, err := sso.Meet(ctx, p.SignedIn.Signer, sso.Options{Now: env.Now, Again: againWith(p.Address)})
	if err != nil {
		return err
	}
	return provider.SignOut(ctx, p.SignedIn)
}
