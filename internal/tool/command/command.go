// Package command is what people and scripts do with a controller from a
// terminal. Its nouns, flags, columns and help follow from the descriptors of
// kinds. It talks to controllers through remote alone and must never import
// what a controller is made of.
package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/profile"
	"netkeep.internal/internal/tool/screen"
)

// Env is what a command takes from the process that runs it.
type Env struct {
	Program string // as it was called
	Args    []string
	Environ []string // as "name=value"
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	// Columns is how wide the screen is that somebody else shows the output on;
	// 0 for no bound. A terminal knows itself.
	Columns int
}

// Getenv returns a variable.
func (e Env) Getenv(name string) string {
	for _, pair := range e.Environ {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// Screen is where the command talks.
func (e Env) Screen() *screen.Screen {
	s := screen.New(e.Stdin, e.Stdout, e.Stderr, e.Getenv)
	if !s.Shows {
		s.Width = e.Columns
	}
	return s
}

// The groups under which help lists commands.
const (
	GroupAccount = "account"
	GroupJoin    = "join"
	GroupNetwork = "network"
	GroupFiles   = "files"
	GroupServer  = "server"
)

// Add gives a root all commands of this package.
func Add(root *cobra.Command, env Env) {
	root.AddGroup(
		&cobra.Group{ID: GroupAccount, Title: "Log in:"},
		&cobra.Group{ID: GroupJoin, Title: "Join a network:"},
		&cobra.Group{ID: GroupNetwork, Title: "Look at a network and change it:"},
		&cobra.Group{ID: GroupFiles, Title: "Keep a network in files:"},
		&cobra.Group{ID: GroupServer, Title: "Run a controller:"},
	)
	root.PersistentFlags().String("profile", "", "Profile of the controller to talk to; the one that NETKEEP_PROFILE names, or else the last that was logged in to.")
	root.PersistentFlags().String(tokenFileFlag, "", "File with the token of a machine to use instead of a login, - for standard input; that in NETKEEP_TOKEN if not given.")
	group := func(id string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = id
			root.AddCommand(c)
		}
	}
	group(GroupJoin, enrollCommand(env))
	group(GroupAccount, loginCommand(env), logoutCommand(env), whoamiCommand(env), servicesCommand(env), requestCommand(env), requestsCommand(env), approveCommand(env), denyCommand(env), profilesCommand(env), passwordCommand(env), mfaCommand(env))
	group(GroupFiles, exportCommand(env), planCommand(env), applyCommand(env), checkCommand(env))
	group(GroupNetwork, listCommand(env), getCommand(env), createCommand(env), updateCommand(env), deleteCommand(env),
		grantCommand(env), explainCommand(env), whoCanCommand(env), whatCanCommand(env), lintCommand(env), signerCommand(env),
		enableCommand(env), disableCommand(env), inviteCommand(env), tokenCommand(env), refreshCommand(env), reenrollCommand(env), renewCommand(env),
		verifyCommand(env), traceCommand(env), postureCommand(env), rolesCommand(env), overrideCommand(env), integrityCommand(env), apiCommand(env), demoCommand(env),
		statusCommand(env), topCommand(env), eventsCommand(env), snapshotCommand(env), auditCommand(env), historyCommand(env), diffCommand(env), undoCommand(env), clusterCommand(env), alertsCommand(env), roleCommand(env),
		topologyCommand(env), linksCommand(env), circuitsCommand(env), tracePathCommand(env))
	root.AddCommand(manualCommand(env))
}

// session is a command that talks to a controller.
type session struct {
	*remote.Client
	*screen.Screen
	name    string // of the profile
	profile profile.Profile
	dir     string // of the profiles
	now     func() time.Time
	at      string // moment of the past that is asked for; empty for the present
	learns  bool   // whether it is learned now where all controllers are
	machine bool   // whether a token of a machine is shown

	override bool // whether changes are meant though they break assertions
}

// connect opens the profile that a command is to use.
func connect(cmd *cobra.Command, env Env) (*session, error) {
	secret, err := machineToken(cmd, env)
	if err != nil {
		return nil, err
	}
	if secret != "" {
		s, err := asMachine(cmd, env, secret)
		if err == nil {
			s.override = overrides(cmd)
		}
		return s, err
	}
	dir, name, p, err := inUse(cmd, env)
	if err != nil {
		return nil, err
	}
	client, err := remote.New(p.Account)
	if err != nil {
		return nil, err
	}
	s := &session{Client: client, Screen: env.Screen(), name: name, profile: p, dir: dir, now: env.Now}
	s.override = overrides(cmd)
	tokens := keeper{env, dir, name}
	if p.SignedIn != nil && p.Second {
		client.Bearer = func(ctx context.Context) (string, error) {
			token, _, err := tokens.Token(ctx)
			return token, err
		}
	}
	if p.HasCertificate() || p.SignedIn != nil && !p.Second {
		// Nobody has to type anything for that.
		client.Renew = func(ctx context.Context) (string, error) { return s.renew(ctx, tokens) }
	}
	return s, nil
}

// renew logs in again with the certificate of the profile, or as who signed in.
func (s *session) renew(ctx context.Context, tokens keeper) (token string, err error) {
	method, req := byCert, remote.Request{}
	if s.profile.SignedIn != nil {
		if req.Bearer, _, err = tokens.Token(ctx); err != nil {
			return "", err
		}
	}
	if !s.profile.HasCertificate() {
		method = byJWT
	}
	in, err := authenticate(ctx, s.Client, req, method)
	if err != nil {
		return "", err
	}
	return in.Token, profile.Change(s.dir, func(b *profile.Book) error {
		p := b.Profiles[s.name]
		p.Token, p.Expires = in.Token, in.ExpiresAt
		b.Profiles[s.name] = p
		return nil
	})
}

// talking is a command's work, given a session.
type talking func(cmd *cobra.Command, s *session, args []string) error

// with runs a command's work with a session.
func with(env Env, work talking) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := connect(cmd, env)
		if err != nil {
			return err
		}
		err = work(cmd, s, args)
		s.remember()
		if err == nil && s.name != "" {
			s.follow(cmd.Context())
		}
		return s.unlessAdmin(cmd.Context(), err)
	}
}

// followEvery is how often a controller is asked who vouches for it, learnEvery how
// often where the others are, and followTime how long that may keep a command from
// its end.
const (
	followEvery = time.Hour
	learnEvery  = time.Minute
	followTime  = 5 * time.Second
)

// remember keeps which controller answers, and up to where this command has
// changed something, for the next: it may be answered by another controller.
func (s *session) remember() {
	if s.name == "" {
		return
	}
	prefer, written := s.Address(), s.Written()
	if prefer == s.profile.Address {
		prefer = ""
	}
	if len(s.Places()) == 1 || prefer == s.profile.Prefer && written <= s.profile.Revision {
		return
	}
	err := profile.Change(s.dir, func(b *profile.Book) error {
		if p, ok := b.Profiles[s.name]; ok {
			p.Prefer, p.Revision = prefer, max(written, p.Revision)
			b.Profiles[s.name] = p
		}
		return nil
	})
	if err != nil {
		s.Notef("Which controller answers could not be kept: %v", err)
	}
}

// learn asks where all controllers of the network are; it reports whether anybody
// said so.
func learn(ctx context.Context, c *remote.Client, a *remote.Account) bool {
	const api = "edge-management"
	err := c.Learn(ctx, api, remote.Request{Path: clientRoot + "/controllers", Stranger: true})
	if err != nil { // where the Management API is alone
		err = c.Learn(ctx, api, remote.Request{Path: "/controllers"})
	}
	if err != nil {
		return false
	}
	a.Others = slices.DeleteFunc(c.Places(), func(at string) bool { return at == a.Address })
	return true
}

// follow keeps the profile good when other CAs vouch for the controller, and when
// there are other controllers. The
// command has done its work: what goes wrong here is tried again by the next.
func (s *session) follow(ctx context.Context) {
	at, is := s.now(), s.profile
	due := func(last time.Time, every time.Duration) bool { return at.Before(last) || at.Sub(last) >= every }
	ctx, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	if (s.learns || due(is.Learned, learnEvery)) && learn(ctx, s.Client, &is.Account) {
		is.Learned = at.UTC()
	}
	if is.CA != "" && due(is.Asked, followEvery) {
		if ca, err := s.Follow(ctx, is.CA, at); err == nil {
			is.CA, is.Asked = ca, at.UTC()
		}
	}
	if is.Learned.Equal(s.profile.Learned) && is.Asked.Equal(s.profile.Asked) {
		return
	}
	err := profile.Change(s.dir, func(b *profile.Book) error {
		p, ok := b.Profiles[s.name]
		if ok && p.CA == s.profile.CA {
			p.CA, p.Asked, p.Others, p.Learned = is.CA, is.Asked, is.Others, is.Learned
			b.Profiles[s.name] = p
		}
		return nil
	})
	if err != nil {
		s.Notef("Who vouches for %s could not be kept: %v", s.profile.Address, err)
	}
}

// unlessAdmin says of a refusal that it is for those with power, to somebody who is
// logged in and has none, or not this one: another login would not help.
func (s *session) unlessAdmin(ctx context.Context, err error) error {
	no, ok := errors.AsType[*remote.Error](err)
	if !ok || no.Status != http.StatusUnauthorized {
		return err
	}
	if s.machine {
		return refused(no)
	}
	var me struct {
		Name    string   `json:"name"`
		IsAdmin bool     `json:"isAdmin"`
		Roles   []string `json:"roles"`
	}
	switch {
	case s.Get(ctx, "/current-identity", nil, &me) != nil || me.IsAdmin:
		return err
	case len(me.Roles) > 0:
		which := ""
		if about, ok := errors.AsType[*ofChange](err); ok {
			which = about.which + ": "
		}
		return markf(remote.ErrDenied, "%s may not do this: %s%s; your admin roles: %s", me.Name, which, cmp.Or(no.Reason, no.Message), strings.Join(me.Roles, ", "))
	}
	return markf(remote.ErrDenied, "this is for admins, and %s is none; what you may use yourself is listed by: netkeep services", me.Name)
}
