package authn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// SecretPrefix is what the secrets of tokens begin with, so that whoever looks for
// secrets that got lost finds them.
const SecretPrefix = "nkt_"

// plain writes bytes as letters and digits, which a double click selects as a whole.
var plain = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewSecret makes the secret of a token, and what is stored of it. It ends with a
// checksum, by which a text that only looks like one is told from one.
func NewSecret() (secret, stored string) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	said := SecretPrefix + plain.EncodeToString(b[:])
	secret = said + checksum(said)
	return secret, digest(secret)
}

func checksum(said string) string {
	return plain.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(said))))
}

// IsSecret reports whether a text can be the secret of a token.
func IsSecret(text string) bool {
	rest, is := strings.CutPrefix(text, SecretPrefix)
	end := len(text) - len(checksum(""))
	return is && len(rest) == plain.EncodedLen(sha256.Size)+len(checksum("")) && checksum(text[:end]) == text[end:]
}

// Machine is a program that has shown the secret of a token, or a token of an issuer
// that a role is bound to. It has no session and is no identity.
type Machine struct {
	by   state.Author
	ends time.Time
}

// Author is the machine as the author of a write.
func (m *Machine) Author() state.Author { return m.by }

// Expires is when what it has shown ends.
func (m *Machine) Expires() time.Time { return m.ends }

// Power is what it may do.
func (m *Machine) Power(r kind.Reader) power.Set { return power.OfAuthor(r, m.by) }

// Machines recognises machines by what they show with each request.
type Machines struct {
	State  *state.State
	Tokens *Tokens
	Now    func() time.Time
	Log    *slog.Logger

	used sync.Map // id of the token to *use
}

// use is when a token was last used, and from where.
type use struct {
	mu   sync.Mutex
	at   time.Time
	from string
}

// errSecret is for a secret that no token has, as if it had been revoked.
var errSecret = fault.New(fault.CodeUnauthorized, "there is no token with this secret: it was revoked, or never was one")

// Known reports whether a secret is of any token, good or not.
func Known(r kind.Reader, secret string) bool {
	_, known := bySecret(r, secret)
	return known
}

// bySecret finds a token by the digest of its secret, so that how long it takes tells
// nothing of any secret.
func bySecret(r kind.Reader, secret string) (*model.Token, bool) {
	want := digest(secret)
	t, known := model.Tokens.Find(r, "digest", want)
	if !known || subtle.ConstantTimeCompare([]byte(t.Digest), []byte(want)) != 1 {
		return nil, false
	}
	return t, true
}

// BySecret returns the machine that shows a secret, and the token that it is of, also
// where that is refused; nil if there is none.
func (m *Machines) BySecret(r kind.Reader, secret string, from netip.Addr) (*Machine, *model.Token, error) {
	t, known := bySecret(r, secret)
	if !known {
		return nil, nil, errSecret
	}
	now := m.Now()
	owner, flaw := m.stands(r, t, from, now)
	if flaw != "" {
		return nil, t, fault.New(fault.CodeUnauthorized, string(flaw))
	}
	m.note(t.ID, now, from)
	by := state.Author{Kind: model.Tokens.Name, ID: t.ID, Name: t.Name + " of " + owner.Name, Factors: "secret"}
	return &Machine{by, t.ExpiresAt}, t, nil
}

// stands says what is wrong with a token now, to who has its secret.
func (m *Machines) stands(r kind.Reader, t *model.Token, from netip.Addr, now time.Time) (*model.Identity, Flaw) {
	p, flaw := admit(r, t.OwnerID, now)
	switch {
	case flaw != "":
		return nil, "the token's owner may not authenticate: " + flaw
	case t.Ended(now):
		return nil, "the token has ended; create another"
	case !t.UsableFrom(from):
		return nil, "the token may not be used from this address"
	case !p.policy.AllowsTokens():
		return nil, "the authentication policy of the token's owner forbids tokens"
	}
	return p.identity, ""
}

// ByJWT returns the machine that shows a JWT of a signer that roles are bound to; nil
// if it is none of those, or none at all. Of several bindings the first by name counts.
func (m *Machines) ByJWT(ctx context.Context, r kind.Reader, text string) *Machine {
	signer, said, err := m.Tokens.read(ctx, r, text)
	if err != nil || signer.Audience == "" {
		return nil
	}
	var first *model.RoleBinding
	for binding := range model.RoleBindings.Select(r, "signerId", signer.ID) {
		if meets(binding, said) && (first == nil || binding.Name < first.Name) {
			first = binding
		}
	}
	if first == nil {
		return nil
	}
	by := state.Author{Kind: model.RoleBindings.Name, ID: first.ID, Name: shortened(claimed(signer, said)) + " by " + signer.Name, Factors: "token"}
	return &Machine{by, said.Ends()}
}

// Bound reports whether tokens of any signer have a role by themselves.
func Bound(r kind.Reader) bool {
	for binding := range model.RoleBindings.All(r) {
		if binding.SignerID != "" {
			return true
		}
	}
	return false
}

// meets reports whether a token says all that a binding asks for.
func meets(b *model.RoleBinding, said token.Claims) bool {
	for selector, want := range b.Claims {
		if claim, ok := said.At(selector); !ok || !people.Says(claim, want) {
			return false
		}
	}
	return len(b.Claims) > 0
}

// shortened keeps what others say of themselves from filling the log.
func shortened(subject string) string {
	if len(subject) > 256 {
		subject = strings.ToValidUTF8(subject[:256], "")
	}
	return subject
}

// note remembers a use of a token.
func (m *Machines) note(id string, at time.Time, from netip.Addr) {
	v, ok := m.used.Load(id)
	if !ok {
		v, _ = m.used.LoadOrStore(id, new(use))
	}
	u := v.(*use)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.at, u.from = at, from.Unmap().String()
}

// LastUse is when a token was last used, as far as this controller knows, and from
// where; the zero time if it never was.
func (m *Machines) LastUse(r kind.Reader, id string) (at time.Time, from string) {
	if stored, ok := model.TokenUses.Get(r, id); ok {
		at, from = stored.At, stored.From
	}
	if v, ok := m.used.Load(id); ok {
		u := v.(*use)
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.at.After(at) {
			at, from = u.at.UTC().Truncate(time.Millisecond), u.from
		}
	}
	return at, from
}

// Flush writes down when tokens were last used, at every interval and once more when
// ctx ends.
func (m *Machines) Flush(ctx context.Context, every time.Duration) {
	flushing(ctx, every, m.flush)
}

// flush writes down what is later than what is written by more than some time.
func (m *Machines) flush(ctx context.Context, than time.Duration) {
	var ids []string
	snap := m.State.Snapshot()
	m.used.Range(func(id, _ any) bool {
		if _, still := model.Tokens.Get(snap, id.(string)); !still {
			m.used.Delete(id)
			return true
		}
		stored, _ := model.TokenUses.Get(snap, id.(string))
		if at, _ := m.LastUse(snap, id.(string)); stored == nil || at.Sub(stored.At) > than {
			ids = append(ids, id.(string))
		}
		return true
	})
	slices.Sort(ids)
	for batch := range slices.Chunk(ids, flushBatch) {
		if err := m.write(ctx, batch); err != nil {
			if ctx.Err() == nil {
				m.Log.Error("writing down the use of tokens failed", "error", err)
			}
			return
		}
	}
}

func (m *Machines) write(ctx context.Context, ids []string) error {
	return m.State.UpdateSessions(ctx, state.Program("token use"), func(tx *state.Tx) error {
		for _, id := range ids {
			if _, still := model.Tokens.Get(tx, id); !still {
				continue
			}
			at, from := m.LastUse(tx, id)
			err := model.TokenUses.Upsert(tx, id, func(u *model.TokenUse) { u.TokenID, u.At, u.From = id, at, from })
			if err != nil {
				return err
			}
		}
		return nil
	})
}
