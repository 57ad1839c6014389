package authn

import (
	"context"
	"errors"
	"strings"

	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
)

// Unwelcome is why somebody with a good token is not let in. Whoever
// authenticates is not told.
type Unwelcome struct{ Reason string }

func (u *Unwelcome) Error() string { return u.Reason }
func (u *Unwelcome) Unwrap() error { return errDenied }

// SignIn is Check for somebody who logs in: if the signer wants it, who is not
// known becomes an identity, and its attributes are what the token says.
func (t *Tokens) SignIn(ctx context.Context, by state.Author, snap func() *state.Snapshot, text string) (Proof, error) {
	return t.signIn(ctx, by, snap, text, func(Claims, error) error { return nil })
}

// Again is SignIn for somebody in a session that rests on a token. One of anybody
// else is refused before it changes anything: nobody appears, and nobody's
// attributes follow what it says.
func (t *Tokens) Again(ctx context.Context, by state.Author, snap func() *state.Snapshot, who *Caller, text string) (Proof, error) {
	session := who.session
	if !strings.HasPrefix(session.AuthenticatorID, signerPrefix) {
		return Proof{}, errNoToken
	}
	return t.signIn(ctx, by, snap, text, func(c Claims, err error) error {
		if err != nil || c.identity != session.IdentityID || signerPrefix+c.signer.ID != session.AuthenticatorID || c.external != session.ExternalID {
			return errOtherToken
		}
		return nil
	})
}

// signIn is SignIn if may, which is told whom the token names, has nothing
// against it.
func (t *Tokens) signIn(ctx context.Context, by state.Author, snap func() *state.Snapshot, text string, may func(Claims, error) error) (Proof, error) {
	r := snap()
	signer, said, err := t.read(ctx, r, text)
	if err != nil {
		return Proof{}, errDenied
	}
	person := people.Read(signer, said)
	claims, err := named(r, signer, said)
	if no := may(claims, err); no != nil {
		return Proof{}, no
	}
	switch {
	case err != nil && t.People == nil:
		return Proof{}, errDenied
	case err != nil:
		_, err = t.People.Appear(ctx, by, people.Wish{Signer: signer, Person: person, Way: people.ByToken, ID: state.NewID()})
	default:
		if proof, err := t.accept(r, claims); err != nil || t.People == nil {
			return proof, err
		}
		if err = person.Fault(); err == nil {
			err = t.People.Follow(ctx, by, signer, claims.identity, person)
		}
	}
	if err != nil {
		return Proof{}, unwelcome(err)
	}
	r = snap()
	if claims, err = named(r, signer, said); err != nil {
		return Proof{}, errDenied
	}
	return t.accept(r, claims)
}

// unwelcome keeps a refusal from whoever it is of.
func unwelcome(err error) error {
	if why, ok := errors.AsType[people.Refusal](err); ok {
		return &Unwelcome{string(why)}
	}
	return err
}

// Newcomer checks the token of somebody who wants to become an identity.
func (t *Tokens) Newcomer(ctx context.Context, r kind.Reader, text string) (people.Wish, error) {
	signer, said, err := t.read(ctx, r, text)
	if err != nil || t.People == nil {
		return people.Wish{}, errDenied
	}
	return people.Wish{Signer: signer, Person: people.Read(signer, said), ID: state.NewID()}, nil
}
