// Package authn finds out who somebody is: it checks credentials, opens API
// sessions for those who pass, and recognises the sessions' tokens. What it
// has shown travels as Proof and Caller, which nobody else can make. It must
// not import rest or api.
package authn

import (
	"context"
	"crypto/x509"
	"net/netip"
	"slices"
	"time"
	"unicode/utf8"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
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
	routerAuthenticator   = "router"
	signerPrefix          = "extJwtId:"
)

// prove returns the proof of an identity that may authenticate at all. What
// its policy says of the method is the caller's to check.
func prove(r kind.Reader, identityID, authenticator string, now time.Time) (Proof, error) {
	p, flaw := admit(r, identityID, now)
	if flaw == "" {
		p.session = &model.APISession{IdentityID: identityID, AuthenticatorID: authenticator}
	}
	return p, flaw.denied()
}

// admit returns an identity that may authenticate at all, with its policy.
func admit(r kind.Reader, identityID string, now time.Time) (Proof, Flaw) {
	identity, ok := model.Identities.Get(r, identityID)
	switch {
	case !ok:
		return Proof{}, "the identity is gone"
	case identity.Disabled(now):
		return Proof{}, Disabled
	}
	policy, ok := model.AuthPolicies.Get(r, identity.AuthPolicyID)
	if !ok {
		return Proof{}, "the identity's authentication policy is gone"
	}
	return Proof{identity: identity, policy: policy}, ""
}

// Passwords checks user names and passwords.
type Passwords struct {
	hasher   *Hasher
	sessions *APISessions
	now      func() time.Time
	guard    *guard
	lockouts lockouts
	// LockedOut, if set, is told whose password was wrong too often, and from where.
	LockedOut func(who *model.Identity, from string)
}

// NewPasswords returns what checks passwords. Somebody may be wrong as often as
// guesses says in a minute, and so may all together about one name, before they
// have to wait; any number of times if it is 0.
func NewPasswords(h *Hasher, s *APISessions, now func() time.Time, guesses int) *Passwords {
	return &Passwords{hasher: h, sessions: s, now: now, guard: newGuard(guesses, now)}
}

// Login is a user name and password, and the address that they come from.
type Login struct {
	Username, Password string
	From               netip.Addr
}

// errDenied is the one answer to every credential that is not good enough, so
// that it tells nothing about what was wrong.
var errDenied = fault.New(fault.CodeAuth, "")

// Check returns the identity with this user name and password. Unknown names
// take as long as wrong passwords.
func (p *Passwords) Check(ctx context.Context, by state.Author, r kind.Reader, in Login) (Proof, error) {
	a, known := model.Authenticators.Find(r, "username", in.Username)
	if !known {
		a = model.Authenticators.New()
	}
	try := attempt{in.Username, limit.At(in.From)}
	right, err := p.verify(ctx, try, a.PasswordHash, in.Password)
	if err != nil {
		return Proof{}, err
	}
	proof, err := p.admit(a, try, right)
	if err != nil {
		p.guard.wrong(try)
		return Proof{}, err
	}
	p.guard.familiar.note(try)
	if p.hasher.Outdated(a.PasswordHash) {
		p.upgrade(ctx, by, a, in.Password)
	}
	return proof, nil
}

// verify reports whether a password is the hashed one, if whoever shows it need
// not wait, also when its turn has come.
func (p *Passwords) verify(ctx context.Context, try attempt, hash, password string) (right bool, err error) {
	still := func() error { return p.guard.allow(try) }
	if err := still(); err != nil {
		return false, err
	}
	who := try.from
	if p.guard.familiar.has(try) { // and need not queue behind others there
		who = limit.Party{Rank: limit.Member, ID: try.name}
	}
	return p.hasher.Verify(ctx, Claim{who, still}, hash, password)
}

// admit decides on a password that is right or wrong. The authenticator of an
// unknown name is empty.
func (p *Passwords) admit(a *model.Authenticator, try attempt, right bool) (Proof, error) {
	// As it is now: while this one waited for its turn to be hashed, the
	// identity may have been disabled.
	proof, err := prove(p.sessions.State.Snapshot(), a.IdentityID, a.ID, p.now())
	if err != nil {
		return Proof{}, err
	}
	if !proof.policy.Primary.UPDB.Allowed {
		return Proof{}, errDenied // nor does it count: nothing was there to guess
	}
	if !p.judge(proof, try, right) {
		return Proof{}, errDenied
	}
	proof.session.PasswordRev = a.PasswordRev
	return proof, nil
}

// upgrade stores the password at today's strength. That it may fail is no
// reason to refuse the login.
func (p *Passwords) upgrade(ctx context.Context, by state.Author, old *model.Authenticator, password string) {
	hash, err := p.hasher.Hash(ctx, Claim{Party: owner(old)}, password)
	if err != nil {
		return
	}
	_ = p.sessions.State.Update(ctx, state.Program("password upgrade").On(by), func(tx *state.Tx) error {
		return model.Authenticators.Edit(tx, old.ID, func(a *model.Authenticator) error {
			if a.PasswordHash == old.PasswordHash {
				a.PasswordHash = hash
			}
			return nil
		})
	})
}

// Set returns the hash of a new password for an identity, if its policy
// accepts the password. Who asks for it waits its turn.
func (p *Passwords) Set(ctx context.Context, who limit.Party, r kind.Reader, identityID, password string) (string, error) {
	identity, ok := model.Identities.Get(r, identityID)
	if !ok {
		return "", fault.On(fault.CodeNotFound, "identityId", "names no identity with this id", identityID)
	}
	if policy, ok := model.AuthPolicies.Get(r, identity.AuthPolicyID); ok {
		if reason := policy.Primary.UPDB.Refuses(password); reason != "" {
			return "", fault.Invalid("password", reason, nil)
		}
	}
	return p.hasher.Hash(ctx, Claim{Party: who}, password)
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
	_, has := defaultAdmin(r)
	return has
}

// IsAdminPassword reports whether the default admin logs in with a password.
func IsAdminPassword(ctx context.Context, r kind.Reader, h *Hasher, password string) (bool, error) {
	admin, _ := defaultAdmin(r)
	if admin == nil {
		return false, nil
	}
	for a := range model.Authenticators.Select(r, "identityId", admin.ID) {
		if a.Method == model.MethodUPDB {
			return h.Verify(ctx, Claim{}, a.PasswordHash, password)
		}
	}
	return false, nil
}

// CreateAdmin adds the default admin, unless there is one.
func CreateAdmin(ctx context.Context, st *state.State, h *Hasher, f FirstAdmin) error {
	if err := f.CheckLengths(); err != nil {
		return err
	}
	hash, err := h.Hash(ctx, Claim{}, f.Password)
	if err != nil {
		return err
	}
	return st.Update(ctx, state.Program("first start"), func(tx *state.Tx) error {
		if HasAdmin(tx) {
			return nil
		}
		admin, err := createAdmin(tx)
		if err != nil {
			return err
		}
		_, err = setPassword(tx, admin.ID, f.Username, hash)
		return err
	})
}
