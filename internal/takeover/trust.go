package takeover

import (
	"cmp"
	"crypto/x509"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/takeover/zitidb"
)

// authority is a CA of others.
type authority struct {
	rec  *model.CA
	cert *x509.Certificate
}

func (r *reading) readCAs() error {
	return each(r, zitidb.CAs, func(c *zitidb.CA) {
		ca := &model.CA{
			Meta: r.meta("cas", c.Common), Name: c.Name, CertPEM: c.CertPEM, Fingerprint: c.Fingerprint, IsVerified: c.IsVerified, VerificationToken: c.VerificationToken,
			IsAuthEnabled: c.IsAuthEnabled, IsAutoCAEnrollmentEnabled: c.IsAutoCAEnrollmentEnabled, IsOTTCAEnrollmentEnabled: c.IsOTTCAEnrollmentEnabled,
			IdentityRoles: c.IdentityRoles, IdentityNameFormat: c.IdentityNameFormat,
		}
		if x := c.ExternalIDClaim; x != nil && x.Location != "" { // one of empty texts is kept where none was set
			ca.ExternalIDClaim = &model.ExternalIDClaim{Location: x.Location, Matcher: x.Matcher, MatcherCriteria: x.MatcherCriteria, Parser: x.Parser, ParserCriteria: x.ParserCriteria, Index: int(x.Index)}
		}
		if cert := leaf(c.CertPEM); cert != nil {
			r.cas = append(r.cas, authority{ca, cert})
		}
		add(r, model.CAs, ca, c.Name)
	})
}

func (r *reading) readSigners() error {
	return each(r, zitidb.ExtJWTSigners, func(s *zitidb.ExtJWTSigner) {
		at := "external-jwt-signers/" + s.ID + " " + s.Name
		rec := model.ExtJWTSigners.New()
		rec.Meta, rec.Name, rec.Enabled, rec.Issuer, rec.Audience = r.meta("external-jwt-signers", s.Common), s.Name, s.Enabled, s.Issuer, s.Audience
		rec.CertPEM, rec.KID, rec.JWKSEndpoint, rec.UseExternalID, rec.ExternalAuthURL = s.CertPEM, s.KeyID, s.JWKSEndpoint, s.UseExternalID, s.ExternalAuthURL
		rec.ClientID, rec.Scopes, rec.TargetToken = s.ClientID, said(s.Scopes), cmp.Or(s.TargetToken, rec.TargetToken)
		rec.ClaimsProperty = cmp.Or(claim(s.ClaimsProperty), rec.ClaimsProperty)
		if strings.HasPrefix(rec.ClaimsProperty, "/") {
			r.note(Pointer, at+" "+s.ClaimsProperty)
		}
		rec.EnrollNameClaimsSelector, rec.EnrollAttributeClaimsSelector, rec.EnrollAuthPolicyID = s.EnrollNameClaim, s.EnrollAttributeClaim, s.EnrollAuthPolicyID
		if s.EnrollToCert || s.EnrollToToken {
			r.note(Enrolling, at)
		}
		add(r, model.ExtJWTSigners, rec, s.Name)
	})
}

// claim is the name of a claim that a pointer leads to, or the pointer if it leads deeper.
func claim(pointer string) string {
	name, is := strings.CutPrefix(pointer, "/")
	if !is || strings.Contains(name, "/") {
		return pointer
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}

func (r *reading) readAuthPolicies() error {
	return each(r, zitidb.AuthPolicies, func(p *zitidb.AuthPolicy) {
		rec := model.AuthPolicies.New()
		rec.Meta, rec.Name = r.meta("auth-policies", p.Common), p.Name
		rec.System = false
		rec.Primary = model.AuthPrimary{
			Cert: model.AuthCert{Allowed: unless(p.CertAllowed), AllowExpiredCerts: p.AllowExpiredCerts},
			UPDB: model.AuthUPDB{
				Allowed: unless(p.UpdbAllowed), MinPasswordLength: int(p.MinPasswordLength), RequireSpecialChar: p.RequireSpecial, RequireNumberChar: p.RequireNumber,
				RequireMixedCase: p.RequireMixedCase, MaxAttempts: int(p.MaxAttempts), LockoutDurationMinutes: int(p.LockoutMinutes),
			},
			ExtJWT: model.AuthExtJWT{Allowed: unless(p.ExtJWTAllowed), AllowedSigners: list(p.AllowedSigners)},
		}
		rec.Secondary = model.AuthSecondary{RequireTOTP: p.RequireTOTP}
		if p.RequireExtJWT != nil {
			rec.Secondary.RequireExtJWTSigner = *p.RequireExtJWT
		}
		add(r, model.AuthPolicies, rec, p.Name)
	})
}

// unless is true if nothing else is said.
func unless(said *bool) bool { return said == nil || *said }

// text is what a pointer leads to, nothing for none.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// list is one that is empty rather than none.
func list(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

// said is one that the old controller answered as null when it was empty, and so do we.
func said(all []string) []string {
	if len(all) == 0 {
		return nil
	}
	return all
}

// jsonOf is a value as JSON, the same each time.
func jsonOf(v any) jsontext.Value {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil // of what the file can hold all is JSON
	}
	return text
}
