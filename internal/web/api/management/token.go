package management

import (
	"net/http"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// tokenIn is what a token is made of.
type tokenIn struct {
	Name      string    `json:"name" kind:"required,range=1..256,format=visible" doc:"What people call the token; no two tokens have the same name."`
	RoleID    string    `json:"roleId" kind:"required" doc:"Id or name of the admin role that says what the token allows; nothing in it may be beyond whoever creates the token."`
	OwnerID   string    `json:"ownerId" kind:"nullable,among=identity" doc:"Id of the identity that answers for the token; whoever creates it if null."`
	ExpiresAt time.Time `json:"expiresAt" kind:"required" doc:"When the token ends; within a year."`
	From      []string  `json:"from" kind:"range=0..50" doc:"Addresses that the token may be used from, each an address or a range such as 10.0.0.0/8; any if empty."`
	Tags      kind.Tags `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null; the controller gives them no meaning."`
}

// tokenOut is a token with its secret.
type tokenOut struct {
	ID        string    `json:"id" doc:"Id of the token."`
	Token     string    `json:"token" doc:"The secret that the machine shows, as a bearer token. It is told this once."`
	ExpiresAt time.Time `json:"expiresAt" doc:"When the token ends."`
}

func mountTokens(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/tokens", Name: "createToken", Tag: "tokens", Status: http.StatusCreated,
		Doc: model.Tokens.Doc, Auth: rest.Admin, Need: "token:create",
	}, createToken)
}

func createToken(c *rest.Call, in tokenIn) (tokenOut, error) {
	role, err := roleCalled(c, in.RoleID)
	if err != nil {
		return tokenOut{}, err
	}
	owner := in.OwnerID
	if who := api.Caller(c); owner == "" && who != nil {
		owner = who.Identity().ID
	}
	by := c.Author()
	secret, digest := authn.NewSecret()
	t := model.Token{
		Meta: kind.Meta{ID: state.NewID(), Tags: in.Tags},
		Name: in.Name, RoleID: role, OwnerID: owner, ExpiresAt: in.ExpiresAt.UTC().Truncate(time.Millisecond), From: in.From,
		Digest: digest, CreatedBy: by.Name,
	}
	err = c.State.Update(c.Context(), by, func(tx *state.Tx) error {
		fresh := t
		if err := c.Confine(tx, model.Tokens.Def, &model.Token{}, &fresh); err != nil {
			return err
		}
		return model.Tokens.Create(tx, &fresh)
	})
	return tokenOut{t.ID, secret, t.ExpiresAt}, err
}

// roleCalled returns the id of the admin role with an id or name, of those that the caller
// may know of.
func roleCalled(c *rest.Call, word string) (string, error) {
	var names []string
	for role := range model.AdminRoles.All(c.Snap) {
		switch {
		case !c.Knows(model.AdminRoles.Def, role):
			continue
		case role.ID == word || role.Name == word:
			return role.ID, nil
		}
		names = append(names, role.Name)
	}
	return "", fault.On(fault.CodeReference, "roleId", "names no admin role with this id or name; the nearest is "+spell.Nearest(word, names), word)
}

// tokenColumns show when a token was last used, which this controller may know better
// than the store.
func tokenColumns(s *api.Service) []rest.Derived {
	lastUse := func(c *rest.Call, rec kind.Record) (time.Time, string) {
		if c.Past() {
			return time.Time{}, ""
		}
		return s.Machines.LastUse(c.Snap, rec.Base().ID)
	}
	return []rest.Derived{
		{
			Name: "lastUsedAt", Doc: "When the token was last used, as far as the controller that answers knows: others tell it within minutes; null if it never was.",
			Schema: kind.Nullable(api.Moment), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				at, _ := lastUse(c, rec)
				if at.IsZero() {
					return append(dst, "null"...)
				}
				return kind.AppendTime(dst, at)
			},
		},
		{
			Name: "lastUsedFrom", Doc: "Address that it was last used from; null if it never was.",
			Schema: kind.Nullable(api.Text), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				at, from := lastUse(c, rec)
				if at.IsZero() {
					return append(dst, "null"...)
				}
				return kind.AppendText(dst, from)
			},
		},
	}
}
