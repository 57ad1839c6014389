package sso

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/client/remote"
)

// Signer is an identity provider as a controller tells of it.
type Signer struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	URL      string   `json:"externalAuthUrl"`
	ClientID string   `json:"clientId,omitempty"`
	Audience string   `json:"audience,omitempty"` // to ask a token for
	Scopes   []string `json:"scopes,omitempty"`
	UseID    bool     `json:"useId,omitempty"` // whether the ID token is shown, and not the access token
}

// mostSigners is more than anybody chooses from.
const mostSigners = "500"

// Signers asks a controller whom people can sign in with.
func Signers(ctx context.Context, c *remote.Client) (all []Signer, err error) {
	var list []jsontext.Value
	err = c.Call(ctx, remote.Request{
		Method: http.MethodGet, Path: "//edge/client/v1/external-jwt-signers", Query: url.Values{"sort": {"name"}, "limit": {mostSigners}}, Stranger: true,
	}, &list)
	if err != nil {
		return nil, err
	}
	for _, rec := range list {
		s, err := readSigner(rec)
		if err != nil {
			return nil, fmt.Errorf("the controller's list of signers cannot be read: %w", err)
		}
		all = append(all, s)
	}
	return all, nil
}

func readSigner(rec jsontext.Value) (Signer, error) {
	var s struct {
		Signer
		Target string         `json:"targetToken"`
		Other  jsontext.Value `json:",embed"`
	}
	err := json.Unmarshal(rec, &s)
	s.UseID = s.Target == "ID"
	return s.Signer, err
}

// Choose picks the signer that somebody names by its name or id, or the only one that
// people can sign in with. flag is how a signer is named.
func Choose(all []Signer, name, flag string) (Signer, error) {
	usable := slices.DeleteFunc(slices.Clone(all), func(s Signer) bool { return s.ClientID == "" })
	for _, exact := range []func(Signer) bool{
		func(s Signer) bool { return s.ID == name },
		func(s Signer) bool { return s.Name == name },
		func(s Signer) bool { return strings.EqualFold(s.Name, name) },
	} {
		if i := slices.IndexFunc(all, exact); name != "" && i >= 0 {
			return all[i], nil
		}
	}
	switch {
	case len(usable) == 0:
		return Signer{}, say(ErrSigner, "nobody can sign in at this controller: have an admin give an external JWT signer an externalAuthUrl and a clientId")
	case name != "":
		return Signer{}, say(ErrSigner, "there is no signer %q; there is: %s", name, names(usable))
	case len(usable) > 1:
		return Signer{}, say(ErrSigner, "there are several to sign in with; name one with %s: %s", flag, names(usable))
	}
	return usable[0], nil
}

func names(all []Signer) string {
	var list []string
	for _, s := range all {
		list = append(list, fmt.Sprintf("%q", s.Name))
	}
	return strings.Join(list, ", ")
}
