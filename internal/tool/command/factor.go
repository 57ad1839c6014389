package command

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/screen"
)

const ownFactor = "/current-identity/mfa"

func mfaCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "mfa", Short: "Look after second factors."})
	var code string
	withCode := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&code, "code", "", "One-time code; asked for if not given.")
		return c
	}
	cmd.AddCommand(
		&cobra.Command{Use: "status", Short: "Say whether you have a second factor.", Args: Exactly(0), RunE: with(env, mfaStatus)},
		withCode(&cobra.Command{Use: "enroll", Short: "Get a second factor: shows a QR code and asks for the first code.", Args: Exactly(0),
			RunE: with(env, func(cmd *cobra.Command, s *session, _ []string) error { return mfaEnroll(cmd, s, code) })}),
		withCode(&cobra.Command{Use: "recovery-codes", Short: "Print the codes for when the second factor is lost.", Args: Exactly(0),
			RunE: with(env, func(cmd *cobra.Command, s *session, _ []string) error { return mfaRecovery(cmd, s, code) })}),
		withCode(&cobra.Command{Use: "remove [IDENTITY]", Short: "Remove your second factor, or as an admin that of another.", Args: between(0, 1), ValidArgsFunction: completeNames(env, identities),
			RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error { return mfaRemove(cmd, s, code, args) })}))
	return cmd
}

func mfaStatus(cmd *cobra.Command, s *session, _ []string) error {
	var raw jsontext.Value
	err := s.Get(cmd.Context(), ownFactor, nil, &raw)
	if errors.Is(err, remote.ErrMissing) {
		s.Printf("You have no second factor.\n")
		return nil
	}
	if err != nil {
		return err
	}
	rec, err := readRecord(raw)
	switch {
	case err != nil:
		return err
	case rec.at("isVerified").Kind() == 't':
		s.Printf("You have a second factor.\n")
	default:
		s.Printf("You have begun to get a second factor; finish with: netkeep mfa enroll\n")
	}
	return nil
}

// oneTime is the code that was given, or else is asked for.
func (s *session) oneTime(code string) (string, error) {
	if code != "" {
		return code, nil
	}
	code, err := s.Ask("One-time code: ")
	if errors.Is(err, screen.ErrNobody) {
		err = fmt.Errorf("%w; give the code with --code", err)
	}
	return code, err
}

func mfaEnroll(cmd *cobra.Command, s *session, code string) error {
	err := s.Post(cmd.Context(), ownFactor, nil, nil)
	if err != nil && !errors.Is(err, remote.ErrConflict) {
		return err
	}
	var raw jsontext.Value
	if err := s.Get(cmd.Context(), ownFactor, nil, &raw); err != nil {
		return err
	}
	rec, err := readRecord(raw)
	if err != nil {
		return err
	}
	if rec.at("isVerified").Kind() == 't' {
		return errors.New("you have a second factor already; remove it first with: netkeep mfa remove")
	}
	address := rec.text("provisioningUrl")
	if s.Shows {
		if text, err := screen.QR(address); err == nil {
			s.Printf("%s\n", text)
		}
	}
	s.Printf("%s\n", address)
	if code, err = s.oneTime(code); err != nil {
		return err
	}
	if err := s.Post(cmd.Context(), ownFactor+"/verify", map[string]any{"code": code}, nil); err != nil {
		return err
	}
	s.Printf("You have a second factor. If you lose it, one of these codes lets you in once each:\n%s\n", strings.Join(rec.texts("recoveryCodes"), "\n"))
	return nil
}

func mfaRecovery(cmd *cobra.Command, s *session, code string) error {
	code, err := s.oneTime(code)
	if err != nil {
		return err
	}
	var raw jsontext.Value
	req := remote.Request{Method: http.MethodGet, Path: ownFactor + "/recovery-codes", Header: map[string]string{"mfa-validation-code": code}}
	if err := s.Call(cmd.Context(), req, &raw); err != nil {
		return err
	}
	rec, err := readRecord(raw)
	if err == nil {
		s.Printf("%s\n", strings.Join(rec.texts("recoveryCodes"), "\n"))
	}
	return err
}

func mfaRemove(cmd *cobra.Command, s *session, code string, args []string) error {
	if len(args) > 0 {
		id, err := s.idOf(cmd.Context(), identities, args[0])
		if err != nil {
			return err
		}
		if err := s.do(cmd.Context(), http.MethodDelete, "/identities/"+id+"/mfa", nil, nil); err != nil {
			return err
		}
		s.Printf("The second factor of %s was removed.\n", screen.Plain(args[0]))
		return nil
	}
	code, err := s.oneTime(code)
	if err != nil {
		return err
	}
	req := remote.Request{Method: http.MethodDelete, Path: ownFactor, Header: map[string]string{"mfa-validation-code": code}}
	if err := s.Call(cmd.Context(), req, nil); err != nil {
		return err
	}
	s.Printf("Your second factor was removed.\n")
	return nil
}

func passwordCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "password [IDENTITY]",
		Short: "Change your password, or as an admin give another one.",
		Args:  between(0, 1), ValidArgsFunction: completeNames(env, identities),
	}
	file := cmd.Flags().String("password-file", "", "File with the new password, - for standard input; asked for if not given.")
	current := cmd.Flags().String("current-password-file", "", "File with the password as it is; asked for if not given.")
	username := cmd.Flags().StringP("username", "u", "", "User name for an identity that has no password yet.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		if len(args) > 0 {
			return s.givePassword(cmd, env, args[0], *username, *file)
		}
		return s.ownPassword(cmd, env, *file, *current)
	})
	return cmd
}

// newSecret is a password from a file, or one that somebody types twice.
func (s *session) newSecret(env Env, file, question string, twice bool) (string, error) {
	if file != "" {
		return readSecret(env, file)
	}
	first, err := s.Secret(question)
	if errors.Is(err, screen.ErrNobody) {
		err = fmt.Errorf("%w; give the password with --password-file", err)
	}
	if err != nil || !twice {
		return first, err
	}
	again, err := s.Secret("The same again: ")
	if err == nil && first != again {
		err = errors.New("that was not the same; nothing was changed")
	}
	return first, err
}

func (s *session) ownPassword(cmd *cobra.Command, env Env, file, current string) error {
	var mine []struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Method   string `json:"method"`
	}
	if err := s.Get(cmd.Context(), "/current-identity/authenticators", nil, &mine); err != nil {
		return err
	}
	for _, a := range mine {
		if a.Method != "updb" {
			continue
		}
		old, err := s.newSecret(env, current, "Password as it is: ", false)
		if err != nil {
			return err
		}
		fresh, err := s.newSecret(env, file, "New password: ", true)
		if err != nil {
			return err
		}
		in := map[string]any{"password": fresh, "currentPassword": old}
		if err := s.do(cmd.Context(), http.MethodPatch, "/current-identity/authenticators/"+a.ID, in, nil); err != nil {
			return err
		}
		s.Printf("The password of %s was changed.\n", screen.Plain(a.Username))
		return nil
	}
	return errors.New("you do not log in with a password")
}

// givePassword changes the password of an identity, or gives it its first.
func (s *session) givePassword(cmd *cobra.Command, env Env, name, username, file string) error {
	id, err := s.idOf(cmd.Context(), identities, name)
	if err != nil {
		return err
	}
	var have []struct {
		ID     string `json:"id"`
		Method string `json:"method"`
	}
	if err := s.Get(cmd.Context(), "/identities/"+id+"/authenticators", nil, &have); err != nil {
		return err
	}
	fresh, err := s.newSecret(env, file, "New password of "+name+": ", true)
	if err != nil {
		return err
	}
	for _, a := range have {
		if a.Method == "updb" {
			err := s.do(cmd.Context(), http.MethodPatch, "/authenticators/"+a.ID, map[string]any{"password": fresh}, nil)
			if err == nil {
				s.Printf("The password of %s was changed, and its sessions ended.\n", screen.Plain(name))
			}
			return err
		}
	}
	if username == "" {
		username = name
	}
	in := map[string]any{"identityId": id, "method": "updb", "username": username, "password": fresh}
	if err := s.Post(cmd.Context(), "/authenticators", in, nil); err != nil {
		return err
	}
	s.Printf("%s can log in as %s.\n", screen.Plain(name), screen.Plain(username))
	return nil
}
