package model

import (
	"net/netip"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Token lets a machine do what an admin role allows, in the name of whoever answers
// for it. It shows a secret instead of logging in.
type Token struct {
	kind.Meta

	Name      string    `json:"name" kind:"required,unique,range=1..256,format=visible" doc:"What people call the token; no two tokens have the same name."`
	RoleID    string    `json:"roleId" kind:"required,ref=admin-role:restrict,as=role" doc:"Id of the admin role that says what the token allows, as far as its owner may do that too."`
	OwnerID   string    `json:"ownerId" kind:"required=replace,ref=identity:cascade,as=owner,alias=owner" doc:"Id of the identity that answers for the token, which is gone with it; whoever creates it if not given."`
	ExpiresAt time.Time `json:"expiresAt" kind:"required" doc:"When the token ends; within a year."`
	From      []string  `json:"from" kind:"range=0..50,nofilter" doc:"Addresses that the token may be used from, each an address or a range such as 10.0.0.0/8; any if empty."`
	Digest    string    `json:"digest" kind:"server,secret,unique" doc:"SHA-256 of the secret, by which it is recognised."`
	CreatedBy string    `json:"createdBy" kind:"server,nofilter" doc:"Name of who created the token, as it was then."`
}

// Tokens is the kind. It is in no files, and no list of changes creates one: its
// secret is told once, in the answer of an operation of its own.
var Tokens = kind.Define(kind.Spec[Token]{
	Name:    "token",
	Path:    "tokens",
	Doc:     "Create a token: what a machine shows instead of a login, to do what an admin role allows.",
	Verbs:   kind.CRUD &^ kind.Creates,
	Columns: []string{"name", "role.name as role", "owner.name as owner", "expiresAt", "from", "lastUsedAt", "lastUsedFrom"},
})

// TokenUse is when a token was last used, and from where. It has the id of the
// token and goes with it. It is a record of its own since use changes nothing of
// the token, and is written down now and then.
type TokenUse struct {
	kind.Meta

	TokenID string    `json:"tokenId" kind:"server,ref=token:cascade" doc:"Id of the token."`
	At      time.Time `json:"at" kind:"server" doc:"When it was last used."`
	From    string    `json:"from" kind:"server" doc:"Address that it was last used from."`
}

// TokenUses is the kind.
var TokenUses = kind.Define(kind.Spec[TokenUse]{
	Name: "token-use",
	Path: "token-uses",
	Doc:  "When tokens were last used, and from where.",
	Lane: kind.Session,
})

const (
	// MaxTokenLife is how long a token lasts at most.
	MaxTokenLife = 366 * 24 * time.Hour
	// MaxTokens is how many tokens one identity may answer for.
	MaxTokens = 100
	// TokenWarning is how long before its end people are told of it.
	TokenWarning = 14 * 24 * time.Hour
)

// Check wants a token to end in time, and to be usable from somewhere.
func (t *Token) Check(r kind.Reader, old *Token) error {
	if err := t.checkEnd(old); err != nil {
		return err
	}
	for _, from := range t.From {
		prefix, err := ParseFrom(from)
		if err != nil {
			return fault.Invalid("from", "must be addresses or ranges of them, such as 10.0.0.0/8", from)
		}
		if whole := prefix.Masked(); whole != prefix {
			return fault.Invalid("from", "must be whole ranges; the nearest is "+whole.String(), from)
		}
	}
	if t.OwnerID == "" {
		return fault.Invalid("ownerId", "must name the identity that answers for the token", t.OwnerID)
	}
	if old != nil && old.OwnerID == t.OwnerID {
		return nil
	}
	owner, there := Identities.Get(r, t.OwnerID)
	if !there {
		return nil // which its reference says
	}
	if policy, ok := AuthPolicies.Get(r, owner.AuthPolicyID); ok && !policy.AllowsTokens() {
		return fault.Invalid("ownerId", "has an authentication policy that forbids tokens: "+policy.Name+"; see its machineTokens", owner.Name)
	}
	others := 0
	for other := range Tokens.Select(r, "ownerId", t.OwnerID) {
		if other.ID != t.ID {
			others++
		}
	}
	if others >= MaxTokens {
		return fault.Invalid("ownerId", "has as many tokens as anybody may; revoke one first", owner.Name)
	}
	return nil
}

// checkEnd goes by when the token was written, so that what was right stays right.
func (t *Token) checkEnd(old *Token) error {
	said := t.ExpiresAt.UTC().Format(time.RFC3339)
	switch changed := old != nil && !old.ExpiresAt.Equal(t.ExpiresAt); {
	case !t.ExpiresAt.After(t.CreatedAt.Time()), changed && !t.ExpiresAt.After(t.UpdatedAt.Time()):
		return fault.Invalid("expiresAt", "must be in the future", said)
	case t.ExpiresAt.Sub(t.UpdatedAt.Time()) > MaxTokenLife:
		return fault.Invalid("expiresAt", "must be within a year", said)
	}
	return nil
}

// ParseFrom reads an address, or a range of them.
func ParseFrom(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	return netip.ParsePrefix(text)
}

// Ended reports whether the token's time is over.
func (t *Token) Ended(now time.Time) bool { return !now.Before(t.ExpiresAt) }

// Ending reports whether people should know that the token will end soon.
func (t *Token) Ending(now time.Time) bool {
	return !t.Ended(now) && t.ExpiresAt.Sub(now) <= TokenWarning
}

// UsableFrom reports whether the token may be used from an address.
func (t *Token) UsableFrom(addr netip.Addr) bool {
	if len(t.From) == 0 {
		return true
	}
	addr = addr.Unmap().WithZone("")
	for _, from := range t.From {
		if prefix, err := ParseFrom(from); err == nil && prefix.Contains(addr) {
			return true
		}
	}
	return false
}
