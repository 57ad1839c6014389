package authn

import (
	"strings"

	"netkeep.internal/internal/model"
)

// Shown is what the caller has shown to be who it is, with commas between.
func (c *Caller) Shown() string { return strings.Join(shown(c.session), ",") }

// shown is what was shown for a session.
func shown(s *model.APISession) []string {
	shown := "password"
	switch {
	case s.AuthenticatorID == routerAuthenticator:
		shown = "router"
	case strings.HasPrefix(s.AuthenticatorID, signerPrefix):
		shown = "token"
	case s.Fingerprint != "":
		shown = "certificate"
	}
	if s.MFAPassedAt != nil {
		return []string{shown, "code"}
	}
	return []string{shown}
}

// SignerOf is the id of the signer whose token a session was opened with.
func SignerOf(s *model.APISession) (id string, ok bool) {
	return strings.CutPrefix(s.AuthenticatorID, signerPrefix)
}
