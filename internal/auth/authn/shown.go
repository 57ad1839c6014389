package authn

import "strings"

// Shown is what the caller has shown to be who it is, with commas between.
func (c *Caller) Shown() string {
	shown := "password"
	switch s := c.session; {
	case s.AuthenticatorID == routerAuthenticator:
		shown = "router"
	case strings.HasPrefix(s.AuthenticatorID, signerPrefix):
		shown = "token"
	case s.Fingerprint != "":
		shown = "certificate"
	}
	if c.session.MFAPassedAt != nil {
		shown += ",code"
	}
	return shown
}
