// Package authn finds out who somebody is: it checks credentials, opens API
// sessions for those who pass, and recognises the sessions' tokens. What it
// has shown travels as Proof and Caller, which nobody else can make. It must
// not import rest or api.
package authn

import (
	"context"
	"crypto/x509"
	"slices"
	"time"
	"unicode/utf8"

	"netkeep/internal/data/state"
	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
)

// By is an identity as the author of a write.
func By(i *model.Identity) state.Author {
	return state.Author{Kind: model.Identities.Def.Name, ID: i.ID, Name: i.Name}
}

// Proof is an identity that has shown a primary credential.
type Proof struct {
	identity *model.Identity
	policy   *model.AuthPolicy
	// session is the one that rests on it, of which only that counts here which
	// says what was shown.
	session *model.APISession
}

// What a session names instead of an authenticator, where there is none.
const (
	internalAuthenticator = "internal"
	signerPrefix          = "extJwtId:"
)

// prove returns the proof of an identity that may authenticate at all. What
// its policy says of the method is the caller's to check.
func prove(r kind.Reader, identityID, authenticator string, now time.Time) (Proof, error) {
	identity, ok := model.Identities.Get(r, identityID)
	if !ok || identity.Disabled(now) {
		return Proof{}, errDenied
	}
	policy, ok := model.AuthPolicies.Get(r, identity.AuthPolicyID)
	if !ok {
		return Proof{}, errDenied
	}
	session := &model.APISession{IdentityID: identityID, AuthenticatorID: authenticator}
	return Proof{identity: identity, policy: policy, session: session}, nil
}

// Passwords checks user names and passwords.
type Passwords struct {
	Hasher   *Hasher
	Sessions *Sessions
	Now      func() time.Time

	failures failures
}

// errDenied is the one answer to every credential that is not good enough, so
// that it tells nothing about what was wrong.
var errDenied = fault.New(fault.CodeAuth, "")

// Check returns the identity with this user name and password. Unknown names
// take as long as wrong passwords.
func (p *Passwords) Check(ctx context.Context, by state.Author, r kind.Reader, username, password string) (Proof, error) {
	a, known := model.Authenticators.Find(r, "username", username)
	hash := ""
	if known {
		hash = a.PasswordHash
	}
	right, err := p.Hasher.Verify(ctx, hash, password)
	if err != nil {
		return Proof{}, err
	}
	if !known {
		return Proof{}, errDenied
	}
	// As it is now: while this one waited for its turn to be hashed, others
	// may have failed and got the identity locked.
	proof, err := prove(p.Sessions.State.Snapshot(), a.IdentityID, a.ID, p.Now())
	if err != nil {
		return Proof{}, err
	}
	rules := proof.policy.Primary.UPDB
	if !rules.Allowed {
		return Proof{}, errDenied // nor does it count: nothing was there to guess
	}
	good, err := p.judge(ctx, by, a, rules, right)
	if err != nil {
		return Proof{}, err
	}
	if !good {
		return Proof{}, errDenied
	}
	proof.session.PasswordRev = a.PasswordRev
	if p.Hasher.Outdated(hash) {
		p.upgrade(ctx, by, a.ID, hash, password)
	}
	return proof, nil
}

// upgrade stores the password at today's strength. That it may fail is no
// reason to refuse the login.
func (p *Passwords) upgrade(ctx context.Context, by state.Author, id, old, password string) {
	hash, err := p.Hasher.Hash(ctx, password)
	if err != nil {
		return
	}
	_ = p.Sessions.State.Update(ctx, state.Program("password upgrade").On(by), func(tx *state.Tx) error {
		return model.Authenticators.Edit(tx, id, func(a *model.Authenticator) error {
			if a.PasswordHash == old {
				a.PasswordHash = hash
			}
			return nil
		})
	})
}

// Set returns the hash of a new password for an identity, if its policy
// accepts the password.
func (p *Passwords) Set(ctx context.Context, r kind.Reader, identityID, password string) (string, error) {
	identity, ok := model.Identities.Get(r, identityID)
	if !ok {
		return "", fault.On(fault.CodeNotFound, "identityId", "no identity with this id", identityID)
	}
	if policy, ok := model.AuthPolicies.Get(r, identity.AuthPolicyID); ok {
		if reason := policy.Primary.UPDB.Refuses(password); reason != "" {
			return "", fault.Invalid("password", reason, nil)
		}
	}
	return p.Hasher.Hash(ctx, password)
}

// Anchors returns the certificates that client certificates may chain to: our
// own bundle and the verified CAs of others, with the CA of each of those by
// fingerprint.
func Anchors(r kind.Reader, bundle []*x509.Certificate) (anchors []*x509.Certificate, owners map[string]string) {
	anchors, owners = slices.Clone(bundle), map[string]string{}
	for ca := range model.CAs.All(r) {
		if !ca.IsVerified {
			continue
		}
		if cert, err := ca.Certificate(); err == nil {
			anchors = append(anchors, cert)
			owners[ca.Fingerprint] = ca.ID
		}
	}
	return anchors, owners
}

// FirstAdmin is who a new network belongs to.
type FirstAdmin struct {
	Username string
	Password string
}

// CheckLengths says what is wrong with a user name or password, before
// anything is made of it.
func (f FirstAdmin) CheckLengths() error {
	if n := utf8.RuneCountInString(f.Username); n < 4 || n > 100 {
		return fault.Invalid("username", "must be 4 to 100 characters long", f.Username)
	}
	if n := utf8.RuneCountInString(f.Password); n < model.MinPassword || n > model.MaxPassword {
		return fault.Invalid("password", "must be 5 to 100 characters long", nil)
	}
	return nil
}

// HasAdmin reports whether the network has its default admin.
func HasAdmin(r kind.Reader) bool {
	for i := range model.Identities.All(r) {
		if i.IsDefaultAdmin {
			return true
		}
	}
	return false
}

// CreateAdmin adds the default admin, unless there is one.
func CreateAdmin(ctx context.Context, st *state.State, h *Hasher, f FirstAdmin) error {
	if err := f.CheckLengths(); err != nil {
		return err
	}
	hash, err := h.Hash(ctx, f.Password)
	if err != nil {
		return err
	}
	return st.Update(ctx, state.Program("first start"), func(tx *state.Tx) error {
		if HasAdmin(tx) {
			return nil
		}
		admin := model.Identities.New()
		admin.Name, admin.Type, admin.IsAdmin, admin.IsDefaultAdmin = "Default Admin", "User", true, true
		if err := model.Identities.Create(tx, admin); err != nil {
			return err
		}
		return model.Authenticators.Create(tx, &model.Authenticator{
			IdentityID: admin.ID, Method: model.MethodUPDB, Username: f.Username, PasswordHash: hash,
		})
	})
}
