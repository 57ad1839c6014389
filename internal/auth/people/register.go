package people

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/limit"
)

// perMinute is how many may become identities by one signer in a minute, at one
// controller: a company on its first day, and no flood.
const perMinute = 120

// Register is where people become identities, and where their attributes are
// kept in step with what their tokens say.
type Register struct {
	state *state.State
	rate  limit.Rate[string] // by signer
}

// NewRegister returns the register of a network.
func NewRegister(st *state.State, now func() time.Time) *Register {
	return &Register{state: st, rate: limit.Rate[string]{PerMinute: perMinute, Now: now}}
}

// Refusal is why somebody with a good token does not become an identity, in words
// for admins.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Way is how somebody goes on who becomes an identity.
type Way int

// The ways.
const (
	ByToken Way = iota
	ByCertificate
)

// Wish is that a person become an identity.
type Wish struct {
	Signer *model.ExtJWTSigner
	Person Person
	Way    Way
	// ID is what a new identity has as its id.
	ID string
	// Then, if set, runs in the same write, on the identity that the person is
	// now; it is another's id than the wished if there was one.
	Then func(*state.Tx, *model.Identity) error
}

// by is a signer as the author of a write.
func by(signer *model.ExtJWTSigner, on state.Author) state.Author {
	return state.Author{Kind: model.ExtJWTSigners.Def.Name, ID: signer.ID, Name: signer.Name}.On(on)
}

// Welcome says why a wish is not granted, as far as that can be said without
// trying.
func (r *Register) Welcome(w Wish) error {
	return welcome(r.state.Snapshot(), w.Signer, w.Person, w.Way)
}

// Foresee says why somebody whom nobody knows would not become an identity.
func Foresee(r kind.Reader, w Wish) error {
	if err := welcome(r, w.Signer, w.Person, w.Way); err != nil {
		return err
	}
	return room(r, w.Signer)
}

// room says whether another may come by a signer.
func room(r kind.Reader, signer *model.ExtJWTSigner) error {
	came := 0
	for range model.Identities.Select(r, "enrolledBy", signer.ID) {
		came++
	}
	if came >= signer.EnrollLimit {
		return Refusal(fmt.Sprintf("%d identities came by the signer already; see its enrollLimit", came))
	}
	return nil
}

// Appear makes an identity of a person who has none, unless the signer does not
// want that. Of many who try at once for the same person, at whatever
// controllers, one makes the identity, and the others find it.
func (r *Register) Appear(ctx context.Context, on state.Author, w Wish) (who *model.Identity, err error) {
	signer, p := w.Signer, w.Person
	if err := r.Welcome(w); err != nil {
		return nil, err
	}
	if _, known := model.Identities.Find(r.state.Snapshot(), "externalId", p.ExternalID); !known {
		if wait := r.rate.Take(signer.ID); wait > 0 {
			return nil, fault.Later("too many people at once come by this signer; try again in a moment", wait)
		}
	}
	err = r.state.Update(ctx, by(signer, on), func(tx *state.Tx) error {
		now, there := model.ExtJWTSigners.Get(tx, signer.ID)
		if !there || !now.Enabled {
			return Refusal("the signer is gone or disabled")
		}
		if err := welcome(tx, now, p, w.Way); err != nil {
			return err
		}
		found, known := model.Identities.Find(tx, "externalId", p.ExternalID)
		if known {
			err = same(found, now, tx.Now())
		} else {
			found, err = enter(tx, now, p, w.ID)
		}
		if err != nil {
			return err
		}
		if who = found; w.Then == nil {
			return nil
		}
		return w.Then(tx, found)
	})
	return who, err
}

// welcome says why a person becomes no identity, as far as the signer and the
// policy go.
func welcome(r kind.Reader, signer *model.ExtJWTSigner, p Person, way Way) error {
	switch {
	case !signer.EnrollsPeople():
		return Refusal("the signer makes nobody an identity; see its enrollToTokenEnabled and enrollToCertEnabled")
	case way == ByCertificate && !signer.EnrollToCertEnabled:
		return Refusal("the signer gives nobody a certificate; see its enrollToCertEnabled")
	case way == ByToken && !signer.EnrollToTokenEnabled:
		return Refusal("the signer makes nobody an identity without a certificate; see its enrollToTokenEnabled")
	case p.Wrong+p.Unwelcome != "":
		return Refusal(cmp.Or(p.Wrong, p.Unwelcome))
	}
	policy, ok := signer.EnrollPolicy(r)
	switch {
	case !ok:
		return Refusal("there is no authentication policy " + signer.EnrollAuthPolicyID + "; see the signer's enrollAuthPolicyId")
	case way == ByCertificate && !policy.Primary.Cert.Allowed:
		return Refusal("the authentication policy " + policy.Name + " accepts no certificates; see the signer's enrollAuthPolicyId")
	case way == ByToken && !policy.Primary.ExtJWT.Accepts(signer.ID):
		return Refusal("the authentication policy " + policy.Name + " accepts no tokens of the signer; see its enrollAuthPolicyId")
	}
	return nil
}

// same says why an identity that is there already is not taken for the person.
func same(i *model.Identity, signer *model.ExtJWTSigner, now time.Time) error {
	switch {
	case i.EnrolledBy != signer.ID || !i.NamedBy(signer.ID):
		return Refusal("an identity has this external id that did not come by the signer, or that it may not name any more")
	case i.Disabled(now):
		return Refusal("the identity is disabled")
	}
	return nil
}

// enter writes the identity of a person.
func enter(tx *state.Tx, signer *model.ExtJWTSigner, p Person, id string) (*model.Identity, error) {
	if err := room(tx, signer); err != nil {
		return nil, err
	}
	i := model.Identities.New()
	i.ID, i.Type, i.Name = id, "User", FreeName(tx, p.Name)
	i.ExternalID, i.EnrolledBy = p.ExternalID, signer.ID
	i.ExternalIDIssuers = []string{signer.ID}      // no other can claim to be them
	if policy, ok := signer.EnrollPolicy(tx); ok { // which welcome has seen
		i.AuthPolicyID = policy.ID
	}
	i.Provide(p.provided(signer, tx.Now()))
	return i, model.Identities.Create(tx, i)
}

// FreeName returns the name, or the name with the first number that makes it one
// that nobody has.
func FreeName(r kind.Reader, name string) string {
	free := name
	for n := 1; ; n++ {
		if _, taken := model.Identities.Find(r, "name", free); !taken {
			return free
		}
		free = fmt.Sprintf("%s%06d", name, n)
	}
}

// Follow has the attributes that a signer provides to an identity be those that
// a token says, unless a newer one was shown.
func (r *Register) Follow(ctx context.Context, on state.Author, signer *model.ExtJWTSigner, id string, p Person) error {
	snap, said := r.state.Snapshot(), p.provided(signer, r.rate.Now())
	i, ok := model.Identities.Get(snap, id)
	switch {
	case !ok || outdated(snap, id, said):
		return nil
	case follows(i, said):
		return r.note(ctx, by(signer, on), id, said)
	}
	return r.state.Update(ctx, by(signer, on), func(tx *state.Tx) error {
		if _, there := model.ExtJWTSigners.Get(tx, signer.ID); !there {
			return Refusal("the signer is gone or disabled")
		}
		i, there := model.Identities.Get(tx, id)
		if !there {
			return Refusal("the identity is gone")
		}
		said := p.provided(signer, tx.Now())
		if outdated(tx, id, said) {
			return nil
		}
		// Of two tokens at two controllers at once, one is written after the other.
		if err := noteIn(tx, id, said); err != nil || follows(i, said) {
			return err
		}
		return model.Identities.Edit(tx, id, func(i *model.Identity) error {
			i.Provide(said)
			return nil
		})
	})
}

// note keeps that a token was shown which changes nothing: one that is older must
// not count after it. That is no change of the identity.
func (r *Register) note(ctx context.Context, by state.Author, id string, said model.Provided) error {
	if said.TokenAt == nil || !said.TokenAt.After(model.NewestToken(r.state.Snapshot(), id, said.SignerID)) {
		return nil
	}
	return r.state.UpdateSessions(ctx, by, func(tx *state.Tx) error {
		if _, there := model.Identities.Get(tx, id); !there {
			return nil
		}
		return noteIn(tx, id, said)
	})
}

func noteIn(tx *state.Tx, id string, said model.Provided) error {
	if said.TokenAt == nil {
		return nil
	}
	return model.NoteToken(tx, id, said.SignerID, *said.TokenAt)
}

// outdated reports whether a newer token of the signer was shown.
func outdated(r kind.Reader, id string, said model.Provided) bool {
	return said.TokenAt != nil && said.TokenAt.Before(model.NewestToken(r, id, said.SignerID))
}

// follows reports whether an identity has the attributes that a token says, or
// said so by a later one. That the same is said again is not worth a write.
func follows(i *model.Identity, said model.Provided) bool {
	next := model.Identities.Clone(i).(*model.Identity)
	next.Provide(said)
	return slices.EqualFunc(next.ProviderAttributes, i.ProviderAttributes, func(a, b model.Provided) bool {
		return a.SignerID == b.SignerID && slices.Equal(a.Attributes, b.Attributes)
	})
}

// Attributes are the role attributes that an identity would have after a login.
func Attributes(r kind.Reader, i *model.Identity, signer *model.ExtJWTSigner, p Person, now time.Time) []string {
	next := model.Identities.Clone(i).(*model.Identity)
	if said := p.provided(signer, now); !outdated(r, i.ID, said) {
		next.Provide(said)
	}
	all := slices.Concat(i.Own(), next.Provided())
	slices.Sort(all)
	return slices.Compact(all)
}
