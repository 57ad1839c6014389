package command

import (
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/tool/screen"
)

func inviteCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Create an identity and print the token with which it enrolls.",
		Long: "Create an identity and print the token with which it enrolls: as text, into a file with\n" +
			"--save, and on a terminal as a QR code too. An identity that is there already and has no\n" +
			"invitation gets one.",
		Example: "  netkeep invite laptop --roles staff --save laptop.jwt\n  netkeep invite alice --type User --username alice",
		Args:    Exactly(1),
	}
	in := newBody(cmd, env, identities, kind.Create)
	username := cmd.Flags().StringP("username", "u", "", "Have it choose a password for this user name, instead of a certificate.")
	ca := cmd.Flags().String("with-ca", "", "Have it enroll with a certificate of this CA.")
	save := cmd.Flags().StringP("save", "s", "", "File to write the token to; the token is not printed then.")
	noQR := cmd.Flags().Bool("no-qr", false, "Print no QR code.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		members, err := in.read(cmd)
		if err != nil {
			return err
		}
		id, err := s.invite(cmd, args[0], members, *username, *ca)
		if err != nil {
			return err
		}
		token, err := s.token(cmd, identities, id)
		if err != nil {
			return err
		}
		return s.handOver(args[0], token, *save, !*noQR)
	})
	return cmd
}

// invite makes sure that there is an identity with an invitation.
func (s *session) invite(cmd *cobra.Command, name string, members map[string]any, username, ca string) (id string, err error) {
	enrollment := map[string]any{"ott": true}
	method := map[string]any{"method": "ott"}
	switch {
	case username != "":
		enrollment = map[string]any{"updb": username}
		method = map[string]any{"method": "updb", "username": username}
	case ca != "":
		caID, err := s.idOf(cmd.Context(), cas, ca)
		if err != nil {
			return "", err
		}
		enrollment = map[string]any{"ottca": caID}
		method = map[string]any{"method": "ottca", "caId": caID}
	}
	there, err := s.find(cmd.Context(), identities, name)
	switch {
	case err == nil && len(members) > 0:
		return "", fmt.Errorf("there is an identity %q already; change it with netkeep update, and invite it without flags", name)
	case err == nil:
		method["identityId"] = there.text("id")
		method["expiresAt"] = s.now().Add(enrollTime).UTC().Format("2006-01-02T15:04:05Z")
		err := s.Post(cmd.Context(), "/enrollments", method, nil)
		if errors.Is(err, remote.ErrConflict) {
			err = nil // it has such an invitation, which is as good
		}
		return there.text("id"), err
	case !errors.Is(err, remote.ErrMissing):
		return "", err
	}
	members["name"], members["enrollment"] = name, enrollment
	identities.Complete(members)
	p, err := s.change(cmd.Context(), []change{{Op: opCreate, Kind: identities.Name, Body: members}}, false, "")
	if err != nil {
		return "", s.nearby(cmd.Context(), err, []change{{Op: opCreate, Kind: identities.Name, Body: members}})
	}
	return p.Changes[0].ID, nil
}

// handOver gives somebody a token.
func (s *session) handOver(name, token, save string, code bool) error {
	if save != "" {
		f, err := os.OpenFile(save, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s is there already; the token of %s can be had with: netkeep token identity %s", save, name, name)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, token)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		s.Notef("The token of %s is in %s. Use it with: netkeep enroll %s", screen.Plain(name), save, save)
		return nil
	}
	if code && s.Shows {
		if text, err := screen.QR(token); err == nil {
			s.Printf("%s\n", text)
		}
	}
	s.Printf("%s\n", token)
	return nil
}

func tokenCommand(env Env) *cobra.Command {
	print := func(n noun) func(cmd *cobra.Command, s *session, id, name string) error {
		return func(cmd *cobra.Command, s *session, id, _ string) error { return s.printToken(cmd, n, id) }
	}
	cmd := verb("token", "Print the token with which something enrolls, and look after tokens of machines.",
		about(env, identities, "Print the token with which an identity enrolls.", print(identities)),
		about(env, edgeRouters, "Print the token with which an edge router enrolls.", print(edgeRouters)),
		about(env, routers, "Print the token with which a router enrolls.", print(routers)),
		about(env, cas, "Print the token with which everybody with a certificate of a CA enrolls.", print(cas)))
	cmd.Use = "token"
	addTokens(cmd, env)
	return cmd
}

func (s *session) printToken(cmd *cobra.Command, n noun, id string) error {
	token, err := s.token(cmd, n, id)
	if err == nil {
		s.Printf("%s\n", token)
	}
	return err
}

// token is that of a record's invitation.
func (s *session) token(cmd *cobra.Command, n noun, id string) (string, error) {
	if n == cas {
		var text []byte
		err := s.Call(cmd.Context(), remote.Request{Method: http.MethodGet, Path: "/cas/" + id + "/jwt"}, &text)
		return string(text), err
	}
	rec, err := s.find(cmd.Context(), n, id)
	if err != nil {
		return "", err
	}
	for _, path := range []string{"enrollmentJwt", "enrollment.ott.jwt", "enrollment.ottca.jwt", "enrollment.updb.jwt"} {
		if token := rec.text(path); token != "" {
			return token, nil
		}
	}
	return "", markf(remote.ErrMissing, "%s %s has no invitation that is open; it may have enrolled already", n.spoken(), rec.label())
}
