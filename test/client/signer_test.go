package client_test

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

// TestSignersForStrangers looks at what somebody who has yet to log in is told
// of those who could vouch for it: where to go, and nothing else.
func TestSignersForStrangers(t *testing.T) {
	s := newScene(t)
	signer := func(more M) (id, name string) {
		body := M{
			"name": servertest.Unique("signer"), "enabled": true, "issuer": servertest.Unique("https://issuer"), "audience": "a",
			"jwksEndpoint": "https://127.0.0.1:1/keys", "kid": servertest.Unique("kid"), "tags": M{"tier": "gold"},
		}
		for k, v := range more {
			body[k] = v
		}
		return s.add("ext-jwt-signers", body), body["name"].(string)
	}
	const login = "https://login.example.com/"
	id, name := signer(M{"externalAuthUrl": login})
	disabled, _ := signer(M{"externalAuthUrl": login, "enabled": false})
	silent, _ := signer(M{"externalAuthUrl": ""})
	nobody := shared.Nobody(t)
	list := func(filter string) *servertest.Answer {
		return nobody.Get(root + "external-jwt-signers?limit=-1&filter=" + url.QueryEscape(filter))
	}
	a := list(`name = "` + name + `"`).Want(200)
	want := []any{M{
		"id": id, "name": name, "externalAuthUrl": login, "scopes": []any{}, "enrollToCertEnabled": false, "enrollToTokenEnabled": false,
		"_links": M{"self": M{"href": "./external-jwt-signers/" + id}},
	}}
	if diff := cmp.Diff(any(want), a.At("data")); diff != "" {
		t.Errorf("the signer differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any([]any{"enrollToCertEnabled", "enrollToTokenEnabled", "externalAuthUrl", "id", "name"}), a.At("meta.filterableFields")); diff != "" {
		t.Errorf("what filters may name differs (-want +got):\n%s", diff)
	}
	for _, hidden := range []string{disabled, silent} {
		if n := list(`id = "` + hidden + `"`).Want(200).Total(); n != 0 {
			t.Errorf("there are %d signers that nobody can log in with", n)
		}
	}
	if n := list(`externalAuthUrl = "` + login + `" and id = "` + id + `"`).Want(200).Total(); n != 1 {
		t.Errorf("%d signers have the address", n)
	}
	// What is not shown cannot be guessed at either.
	for _, filter := range []string{
		`tags.tier = "gold"`, `issuer contains "a"`, `kid = "a"`, `audience = "a"`, `enabled = true`, `isSystem = false`,
		`createdAt > datetime(2001-01-01T00:00:00Z)`, `true sort by createdAt`,
	} {
		list(filter).Fails(400, "INVALID_FILTER", "")
	}
	nobody.Get(root+"external-jwt-signers?sort=updatedAt").Fails(400, "INVALID_SORT_IDENTIFIER", "")
}

// TestSignerOfApplication shows what a client needs that logs in as a certain
// application, where the signer names one.
func TestSignerOfApplication(t *testing.T) {
	s := newScene(t)
	name := servertest.Unique("signer")
	id := s.add("ext-jwt-signers", M{
		"name": name, "enabled": true, "issuer": servertest.Unique("https://issuer"), "audience": "netkeep", "jwksEndpoint": "https://127.0.0.1:1/keys",
		"externalAuthUrl": "https://login.example.com/", "clientId": "desktop", "scopes": []string{"email"},
	})
	a := shared.Nobody(t).Get(root + "external-jwt-signers?filter=" + url.QueryEscape(`id = "`+id+`"`)).Want(200)
	want := []any{M{
		"id": id, "name": name, "externalAuthUrl": "https://login.example.com/", "clientId": "desktop", "scopes": []any{"email"},
		"audience": "netkeep", "targetToken": "ACCESS", "enrollToCertEnabled": false, "enrollToTokenEnabled": false, "_links": M{"self": M{"href": "./external-jwt-signers/" + id}},
	}}
	if diff := cmp.Diff(any(want), a.At("data")); diff != "" {
		t.Errorf("the signer differs (-want +got):\n%s", diff)
	}
}
