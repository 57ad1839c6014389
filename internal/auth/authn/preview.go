package authn

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Preview is what a login with a token would do.
type Preview struct {
	// Refused is why there would be none, in words for admins; empty if it opened a
	// session.
	Refused string
	// Identity is who it would be; nil if the identity is not there yet.
	Identity *model.Identity
	Person   people.Person
	// Name is what the identity is or would be called.
	Name string
	// Before and After are its role attributes.
	Before, After []string
}

// Preview says what a login with a token of a signer would do. Nothing is written.
func (t *Tokens) Preview(ctx context.Context, snap *state.Snapshot, signer *model.ExtJWTSigner, text string) Preview {
	found, said, err := t.read(ctx, snap, text)
	if err != nil || found.ID != signer.ID {
		return Preview{Refused: t.mistrust(signer, text)}
	}
	out := Preview{Person: people.Read(found, said)}
	claims, err := named(snap, found, said)
	if err != nil {
		return out.newcomer(snap, found)
	}
	out.Identity, _ = model.Identities.Get(snap, claims.identity)
	out.Name, out.Before, out.After = out.Identity.Name, out.Identity.RoleAttributes, out.Identity.RoleAttributes
	proof, err := prove(snap, claims.identity, signerPrefix+found.ID, t.now())
	if err != nil {
		_, flaw := admit(snap, claims.identity, t.now())
		out.Refused = string(flaw)
		return out
	}
	proof.session.ExternalID, proof.session.NotAfter = claims.external, kind.MomentOf(claims.end)
	if flaw := proof.flaw(snap, t.now()); flaw != "" {
		out.Refused = string(flaw)
		return out
	}
	if out.Refused = out.Person.Wrong; out.Refused == "" {
		out.After = people.Attributes(snap, out.Identity, found, out.Person, t.now())
	}
	return out
}

// newcomer is the preview of somebody who has no identity.
func (p Preview) newcomer(snap *state.Snapshot, signer *model.ExtJWTSigner) Preview {
	if err := people.Foresee(snap, people.Wish{Signer: signer, Person: p.Person, Way: people.ByToken}); err != nil {
		p.Refused = err.Error()
		return p
	}
	p.Name, p.After = people.FreeName(snap, p.Person.Name), slices.Clone(p.Person.Attributes)
	return p
}

// mistrust says what is wrong with a token, as far as can be seen. Whoever asks
// is an admin and holds it; nothing of it is believed.
func (t *Tokens) mistrust(signer *model.ExtJWTSigner, text string) string {
	parts := strings.Split(text, ".")
	var head struct {
		KID string `json:"kid"`
	}
	var said map[string]any
	if len(parts) != 3 || !decodes(parts[0], &head) || !decodes(parts[1], &said) {
		return "the text is no JWT; some providers give access tokens that are none: see the signer's targetToken"
	}
	end, _ := said["exp"].(float64)
	begin, _ := said["nbf"].(float64)
	switch {
	case !signer.Enabled:
		return "the signer is disabled"
	case said["iss"] != signer.Issuer:
		return "the claim iss is not the issuer of the signer"
	case head.KID == "":
		return "the token has no header kid, so that nobody knows its key"
	case end == 0:
		return "the token has no claim exp, so that it would be good for ever"
	case !t.now().Before(time.Unix(int64(min(end, 1<<40)), 0)):
		return "the token has come to its end; get another, and look whether the clocks of the provider and of the controller are right"
	case begin > float64(t.now().Unix()):
		return "the token begins later: the clock of the controller is behind that of the provider; set it"
	case signer.Audience != "" && !mentions(said["aud"], signer.Audience):
		return "the claim aud does not have the audience of the signer"
	case claimText(said, signer.ClaimsProperty) == "":
		return "the claim that says whose token it is, claimsProperty of the signer, is missing or no text"
	}
	return "the signature is not by a key of the signer; see its certPem or jwksEndpoint"
}

func decodes(part string, into any) bool {
	text, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(text, into) == nil
}

func claimText(said map[string]any, name string) string {
	if name == "" {
		name = "sub"
	}
	text, _ := said[name].(string)
	return text
}

// mentions reports whether a claim is a text, or a list that has it.
func mentions(claim any, text string) bool {
	list, _ := claim.([]any)
	return claim == text || slices.Contains(list, any(text))
}
