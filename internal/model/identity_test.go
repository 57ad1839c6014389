package model

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDisableHolds disables for every number of minutes that there is.
func TestDisableHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		minutes := rapid.Int().Draw(rt, "minutes")
		now := time.Unix(rapid.Int64Range(0, 1<<33).Draw(rt, "now"), 0)
		i := Identities.New()
		i.Disable(now, minutes)
		later := now
		if minutes > 0 {
			later = now.Add(time.Duration(min(minutes, 1_000_000)) * time.Minute)
		}
		if !i.Disabled(now) || !i.Disabled(later.Add(-time.Nanosecond)) && minutes > 0 {
			rt.Errorf("disabled at %s for %d minutes, it is enabled at once: until %v", now, minutes, i.DisabledUntil)
		}
		if i.DisabledUntil != nil && i.DisabledUntil.Sub(now) != time.Duration(minutes)*time.Minute {
			rt.Errorf("disabled at %s for %d minutes, it is until %s", now, minutes, i.DisabledUntil)
		}
	})
}

// TestSeldom shows that new identities and authenticators share what they say nothing in.
func TestSeldom(t *testing.T) {
	one, other := Identities.Kept(Identities.New()).(*Identity), Identities.New()
	other.Name, other.RoleAttributes = "other", []string{"a"}
	if kept := Identities.Kept(other).(*Identity); kept.SeldomIdentity != one.SeldomIdentity || kept.Name != "other" {
		t.Error("two identities do not share what they say nothing in")
	}
	other.Permissions = []string{"service.read"}
	if kept := Identities.Kept(other).(*Identity); kept.SeldomIdentity == one.SeldomIdentity || len(one.Permissions) > 0 {
		t.Error("an identity shares its permissions")
	}
	cert := Authenticators.New()
	cert.Method, cert.Fingerprint = MethodCert, "f"
	if Authenticators.Kept(cert).(*Authenticator).SeldomAuthenticator != Authenticators.Kept(Authenticators.New()).(*Authenticator).SeldomAuthenticator {
		t.Error("two authenticators do not share what they say nothing in")
	}
}
