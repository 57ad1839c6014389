package command

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/screen"
)

// renewCommand asks the holders of certificates to have them renewed.
func renewCommand(env Env) *cobra.Command {
	identity := about(env, identities, "Ask an identity to have its certificates renewed now.", func(cmd *cobra.Command, s *session, id, name string) error {
		var certs []record
		list := remote.List{Path: "/authenticators", Filter: `method = "cert" and identity = ` + quoted(id)}
		if _, err := s.Each(cmd.Context(), list, func(raw jsontext.Value) error {
			rec, err := readRecord(raw)
			certs = append(certs, rec)
			return err
		}); err != nil {
			return err
		}
		if len(certs) == 0 {
			return fmt.Errorf("%s has no certificate to renew; netkeep invite makes an invitation to get one", screen.Plain(name))
		}
		for _, rec := range certs {
			if err := s.askRenewal(cmd, rec.text("id"), name); err != nil {
				return err
			}
		}
		return nil
	})
	authenticator := about(env, authenticators, "Ask the owner of a certificate to have it renewed now.", func(cmd *cobra.Command, s *session, id, name string) error {
		return s.askRenewal(cmd, id, name)
	})
	for _, cmd := range []*cobra.Command{identity, authenticator} {
		cmd.Flags().Bool("new-key", false, "Have a new key made for it too.")
	}
	return verb("renew", "Ask for renewed certificates.", identity, authenticator)
}

// askRenewal asks for one certificate, with a new key if the command says so.
func (s *session) askRenewal(cmd *cobra.Command, id, whose string) error {
	newKey, _ := cmd.Flags().GetBool("new-key")
	if err := s.Post(cmd.Context(), "/authenticators/"+id+"/request-extend", map[string]any{"rollKeys": newKey}, nil); err != nil {
		return err
	}
	s.Printf("%s is asked for a renewed certificate, which it gets when its program asks the controller next\n", screen.Plain(whose))
	return nil
}
