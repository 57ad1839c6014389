package enroll

import (
	"context"
	"crypto/x509"
	"errors"

	"netkeep.internal/internal/auth/people"
	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

var (
	errProvider  = fault.New(fault.CodeEnrollToken, "the token is none of a signer that is known here, or is not good; sign in at the provider again")
	errHas       = fault.New(fault.CodeEnrolled, "there is an identity for the token already: authenticate with it")
	errCertified = fault.New(fault.CodeEnrolled, "the identity of the token has enrolled already: use what was written then, or have an admin delete its authenticator")
	errMoved     = errors.New("enroll: somebody else has become the identity meanwhile")
)

// Person enrolls whoever brings a token of a signer that lets people become
// identities: with a certificate for the key of the CSR, or without one if there
// is no CSR. signer, if not empty, is the id of the one that it must be of.
func (d *Desk) Person(ctx context.Context, by state.Author, r kind.Reader, token, signer string, csr []byte) (*model.Identity, []*x509.Certificate, error) {
	wish, err := d.Tokens.Newcomer(ctx, r, token)
	if err != nil || signer != "" && signer != wish.Signer.ID {
		return nil, nil, errProvider
	}
	if len(csr) == 0 {
		who, err := d.withoutCertificate(ctx, by, wish)
		return who, nil, allowed(err)
	}
	const turns = 3 // each lost to somebody who was first
	for range turns {
		who, chain, err := d.withCertificate(ctx, by, wish, csr)
		if !errors.Is(err, errMoved) {
			return who, chain, allowed(err)
		}
	}
	return nil, nil, errCertified
}

func (d *Desk) withoutCertificate(ctx context.Context, by state.Author, w people.Wish) (*model.Identity, error) {
	w.Way = people.ByToken
	w.Then = func(_ *state.Tx, i *model.Identity) error {
		if i.ID != w.ID {
			return errHas
		}
		return nil
	}
	return d.Tokens.People.Appear(ctx, by, w)
}

// withCertificate gives somebody one certificate, whether they have just become
// an identity or did so by a login. Whoever loses it asks an admin: what was
// shown to get it may be in other hands by then.
func (d *Desk) withCertificate(ctx context.Context, by state.Author, w people.Wish, csr []byte) (*model.Identity, []*x509.Certificate, error) {
	w.Way = people.ByCertificate
	if err := d.Tokens.People.Welcome(w); err != nil {
		return nil, nil, err
	}
	if known, ok := model.Identities.Find(d.State.Snapshot(), "externalId", w.Person.ExternalID); ok {
		w.ID = known.ID
	}
	chain, err := d.issue(w.ID, csr, d.Lifetimes.Identity)
	if err != nil {
		return nil, nil, err
	}
	w.Then = func(tx *state.Tx, i *model.Identity) error {
		_, has := model.Authenticators.Find(tx, "identityId", i.ID)
		_, invited := model.Enrollments.Find(tx, "identityId", i.ID)
		switch {
		case i.ID != w.ID:
			return errMoved
		case has || invited:
			return errCertified
		case power.Holds(tx, i):
			return people.Refusal("the identity has an admin role, and is invited by somebody who has it too")
		}
		return model.Authenticators.Create(tx, certificateAuthenticator(i.ID, "", chain[0]))
	}
	who, err := d.Tokens.People.Appear(ctx, by, w)
	if err != nil {
		return nil, nil, err
	}
	d.issued(by, d.State.Snapshot(), model.Identities.Def, who.ID, chain[0])
	return who, chain, nil
}

// allowed says a refusal of the signer in the words of the API.
func allowed(err error) error {
	if why, ok := errors.AsType[people.Refusal](err); ok {
		return fault.New(fault.CodeEnrollDenied, string(why))
	}
	return err
}
