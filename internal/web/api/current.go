package api

import (
	"iter"
	"net/http"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

func mountCurrentIdentity(a *rest.API, s *Service) {
	links := rest.Links(func(kind.Record) []rest.Link {
		return []rest.Link{{Name: "self", Href: "current-identity"}, {Name: "mfa", Href: mfaPath}}
	})
	view := a.View("currentIdentity", model.Identities.Def, append(append(IdentityColumns(s), ownPower()...), links)...)
	rest.Show(a, rest.Op{
		Method: http.MethodGet, Path: "/current-identity", Name: "getCurrentIdentity", Tag: "current-identity",
		Doc: "Get the identity of the session that this request uses.", Auth: rest.Full,
	}, view, func(c *rest.Call, _ rest.None) (kind.Record, error) {
		// As it is now, which the caller's own copy may not be.
		i, _ := c.Snap.Lookup(model.Identities.Def, Caller(c).Identity().ID)
		return i, nil
	})
	mountOwnAuthenticators(a, s)
}

// ownPower tells somebody what they may do to the network, so that they need not find out
// by being refused.
func ownPower() []rest.Derived {
	return []rest.Derived{
		{
			Name: "roles", Doc: "Names of all admin roles that the identity has, by itself and by role bindings; admin for an admin.", Schema: kind.ListOf(Text),
			Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				return kind.AppendTexts(dst, power.Names(c.Snap, rec.(*model.Identity)))
			},
		},
		{
			Name: "powers", Doc: "What these allow, as what:verb; those that are about some records alone too.", Schema: kind.ListOf(Text),
			Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				return kind.AppendTexts(dst, power.Of(c.Snap, rec.(*model.Identity)).Words())
			},
		},
	}
}

// ownUpdate replaces one's own user name and password.
type ownUpdate struct {
	CurrentPassword string    `json:"currentPassword" kind:"required,secret,range=5..100" doc:"Present password, to show that it is you."`
	Username        string    `json:"username" kind:"required,range=4..100,format=visible" doc:"User name to log in with from now on; no two authenticators have the same."`
	Password        string    `json:"password" kind:"required,secret,range=5..100" doc:"Password to log in with from now on, as the authentication policy wants it."`
	Tags            kind.Tags `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null."`
}

// ownPatch changes what is given of one's own user name and password.
type ownPatch struct {
	CurrentPassword string    `json:"currentPassword" kind:"required,secret,range=5..100" doc:"Present password, to show that it is you."`
	Username        string    `json:"username" kind:"range=4..100,format=visible" doc:"User name to log in with from now on; it stays as it is if not given."`
	Password        string    `json:"password" kind:"secret,range=5..100" doc:"Password to log in with from now on, as the authentication policy wants it; it stays as it is if not given."`
	Tags            kind.Tags `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null."`
}

func mountOwnAuthenticators(a *rest.API, s *Service) {
	const path = "/current-identity/authenticators"
	op := func(method, path, name, doc string) rest.Op {
		return rest.Op{Method: method, Path: path, Name: name, Tag: "current-identity", Doc: doc, Auth: rest.Full}
	}
	view := a.View("ownAuthenticator", model.Authenticators.Def, IssuedColumn, rest.Links(func(rec kind.Record) []rest.Link {
		return []rest.Link{{Name: "self", Href: path[1:] + "/" + rec.Base().ID}, {Name: "identities", Href: "current-identity"}}
	}))
	view.Join(AuthenticatorJoins)
	rest.ShowList(a, op(http.MethodGet, path, "listCurrentIdentityAuthenticators", "List one's own authenticators."), view,
		func(c *rest.Call) (iter.Seq[kind.Record], error) {
			return c.Snap.Select(model.Authenticators.Def, "identityId", Caller(c).Identity().ID), nil
		})
	rest.Show(a, op(http.MethodGet, path+"/{id}", "detailCurrentIdentityAuthenticator", "Get one of one's own authenticators."), view,
		func(c *rest.Call, _ rest.None) (kind.Record, error) {
			return authn.Own(c.Snap, Caller(c), c.Param("id"))
		})
	secret := func(o rest.Op) rest.Op {
		o.Key = rest.KeyOrSecret // which is the present password
		return o
	}
	rest.Handle(a, secret(op(http.MethodPut, path+"/{id}", "updateCurrentIdentityAuthenticator", "Replace one's own user name and password.")),
		func(c *rest.Call, in ownUpdate) (rest.Empty, error) {
			if in.Tags == nil {
				in.Tags = kind.Tags{}
			}
			return rest.Empty{}, s.changeOwn(c, ownPatch(in))
		})
	rest.Handle(a, secret(op(http.MethodPatch, path+"/{id}", "patchCurrentIdentityAuthenticator", "Change one's own user name or password.")),
		func(c *rest.Call, in ownPatch) (rest.Empty, error) { return rest.Empty{}, s.changeOwn(c, in) })
}

// changeOwn changes an authenticator of the caller, who must know its present
// password.
func (s *Service) changeOwn(c *rest.Call, in ownPatch) error {
	a, err := authn.Own(c.Snap, Caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	if err := s.Passwords.Confirm(c.Context(), a, in.CurrentPassword); err != nil {
		return err
	}
	return s.ChangePassword(c, a, in.Username, in.Password, in.Tags, false)
}

// ErrChanged says that somebody else was quicker.
var ErrChanged = fault.New(fault.CodePlan, "somebody has changed the authenticator since it was read; look at it again")

// ChangePassword sets what is given of an authenticator's user name, password
// and tags, with same only if it is still as it was read. Sessions of the old password
// end, except for the caller's own.
func (s *Service) ChangePassword(c *rest.Call, a *model.Authenticator, username, password string, tags kind.Tags, same bool) error {
	hash := ""
	if password != "" {
		var err error
		if hash, err = s.Passwords.Set(c.Context(), c.Party(), c.Snap, a.IdentityID, password); err != nil {
			return err
		}
	}
	return c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
		rev := 0
		read := a.UpdatedAt
		err := model.Authenticators.Edit(tx, a.ID, func(a *model.Authenticator) error {
			if same && !a.UpdatedAt.Equal(read) {
				return ErrChanged
			}
			if username != "" {
				a.Username = username
			}
			if hash != "" {
				a.SetPassword(hash)
			}
			if tags != nil {
				a.Tags = tags
			}
			rev = a.PasswordRev
			return nil
		})
		if err != nil || hash == "" {
			return err
		}
		if who := Caller(c); who != nil { // a machine has no session
			return who.RestOn(tx, a.ID, rev)
		}
		return nil
	})
}
