package command

import (
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/screen"
)

// signers are those whose tokens people bring.
var signers = noun{model.ExtJWTSigners.Def}

// preview is what a login with a token would do.
type preview struct {
	Accepted   bool     `json:"accepted"`
	Reason     string   `json:"reason"`
	IsNew      bool     `json:"isNew"`
	Name       string   `json:"name"`
	ExternalID string   `json:"externalId"`
	Attributes []string `json:"attributes"`
	Gained     []string `json:"gained"`
	Lost       []string `json:"lost"`
	Left       []struct {
		Group string `json:"group"`
		Why   string `json:"why"`
	} `json:"left"`
}

func signerCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "signer preview SIGNER TOKEN", Short: "See what tokens of an identity provider do."})
	cmd.AddCommand(previewCommand(env))
	return cmd
}

func previewCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "preview SIGNER TOKEN",
		Short: "Say what a login with a token would do: who it would be, and which role attributes come and go.",
		Long: "Say what a login with a token of an external JWT signer would do, and change nothing. The\n" +
			"token is a file with it, or - for standard input, which no other program sees, or the JWT itself.\n" +
			"The exit code is 9 if the login would be refused.",
		Example: "  netkeep signer preview company token.jwt",
		Args:    Exactly(2), ValidArgsFunction: completeNames(env, signers),
	}
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		token, err := bearer(env, args[1])
		if err != nil {
			return err
		}
		id, err := s.idOf(cmd.Context(), signers, args[0])
		if err != nil {
			return err
		}
		var raw jsontext.Value
		if err := s.Post(cmd.Context(), "/external-jwt-signers/"+id+"/preview", map[string]any{"token": token}, &raw); err != nil {
			return err
		}
		var p preview
		if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		if err := told(s, *output, raw, s.foretell); err != nil || p.Accepted {
			return err
		}
		return markf(errCannot, "a login with the token would be refused")
	})
	return cmd
}

// bearer reads a token: the text itself, a file or standard input.
func bearer(env Env, arg string) (string, error) {
	if _, err := os.Stat(arg); arg == "-" || err == nil {
		data, err := readFile(env, arg, maxToken)
		return strings.TrimSpace(string(data)), err
	}
	if strings.Count(arg, ".") != 2 {
		return "", fmt.Errorf("%s is neither a file nor a JWT", screen.Plain(arg))
	}
	return arg, nil
}

// foretell says what would happen.
func (s *session) foretell(p preview) error {
	switch {
	case !p.Accepted:
		s.Printf("%s: %s.\n", s.Bad("A login with it would be refused"), screen.Plain(p.Reason))
	case p.IsNew:
		s.Printf("A login with it would make the identity %s.\n", s.Good(screen.Plain(p.Name)))
	default:
		s.Printf("A login with it would be that of %s.\n", s.Good(screen.Plain(p.Name)))
	}
	for _, line := range []struct {
		word string
		list []string
	}{{"external id", []string{p.ExternalID}}, {"attributes", p.Attributes}, {"gained", p.Gained}, {"lost", p.Lost}} {
		if text := strings.Join(line.list, ", "); text != "" {
			s.Printf("%-12s %s\n", line.word, s.Flow(screen.Plain(text), 13))
		}
	}
	for _, l := range p.Left {
		s.Printf("%-12s %s\n", "left out", s.Flow(screen.Plain(l.Group)+": "+screen.Plain(l.Why), 13))
	}
	return nil
}
