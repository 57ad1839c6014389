package auth_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"

	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// body tries to log in with what it is given.
func body(name string, body any) attempt {
	return attempt{name, func(t *testing.T) *servertest.Answer { return shared.Nobody(t).Post(byPassword, body) }}
}

func swapCase(text string) string {
	return strings.Map(func(r rune) rune {
		if upper := strings.ToUpper(string(r)); upper != string(r) {
			return []rune(upper)[0]
		}
		return []rune(strings.ToLower(string(r)))[0]
	}, text)
}

func forgedPasswords(t *testing.T) []attempt {
	// With a letter that has two forms, and one that has a wide form.
	password := "Pé" + rand.Text()
	username, authenticator := addPassword(t, add(t, nil), password)
	shared.Login(t, username, password)
	a, _ := model.Authenticators.Get(shared.State().Snapshot(), authenticator)
	parts := strings.Split(a.PasswordHash, "$")
	attempts := []attempt{
		body("missing", M{"username": username}),
		body("a number", M{"username": username, "password": 1234567}),
		body("null", M{"username": username, "password": nil}),
		body("a list", M{"username": username, "password": []any{password}}),
		body("an object", M{"username": username, "password": M{"ne": ""}}),
		body("true", M{"username": username, "password": true}),
		body("twice", servertest.Raw(`{"username":"`+username+`","password":"wrong one","password":"`+password+`"}`)),
		body("two spellings", M{"username": username, "password": "wrong one", "Password": password}),
		body("other name", M{"username": username, "passwords": password}),
		body("hash instead", M{"username": username, "passwordHash": a.PasswordHash}),
		body("cut short", servertest.Raw(`{"username":"`+username+`","password":"`+password)),
	}
	for name, wrong := range map[string]string{
		"empty": "", "too short": "abcd", "wrong": rand.Text(), "prefix": password[:len(password)-1], "suffix": password[1:],
		"longer": password + "x", "case": swapCase(password), "trailing space": password + " ", "leading space": " " + password,
		"trailing newline": password + "\n", "trailing NUL": password + "\x00", "NUL and more": password + "\x00x",
		"NUL inside": password[:8] + "\x00" + password[8:], "NULs": strings.Repeat("\x00", 8),
		"decomposed": strings.Replace(password, "é", "e\u0301", 1), "without accent": strings.Replace(password, "é", "e", 1),
		"compatible form": strings.Replace(password, "P", "Ｐ", 1), "ligature": "ﬀﬁﬂ" + password, "replacement character": strings.Replace(password, "é", "\ufffd", 1),
		"the longest": strings.Repeat("x", 100), "too long": strings.Repeat("x", 101), "much too long": strings.Repeat("x", 20<<10),
		"stored hash": a.PasswordHash, "stored key": parts[5], "stored salt": parts[4], "user name": username,
		"somebody else's": servertest.Password, "twice over": password + password, "wildcard": "%%%%%%", "filter": `" or true or "" = "`,
	} {
		attempts = append(attempts, body(name, M{"username": username, "password": wrong}))
	}
	return attempts
}

// forgedAccounts are right passwords of the wrong account, or of one that may
// not use it.
func forgedAccounts(t *testing.T) []attempt {
	admin := shared.Admin(t)
	password := rand.Text()
	username, _ := addPassword(t, add(t, nil), password)
	account := func(name string, change func(id, authenticator string)) attempt {
		id := add(t, nil)
		username, authenticator := addPassword(t, id, password)
		change(id, authenticator)
		return body(name, M{"username": username, "password": password})
	}
	noPassword := addPolicy(t, func(primary, _ M) { primary["updb"].(M)["allowed"] = false })
	_, leaf := certified(t, nil)
	attempts := []attempt{
		account("disabled", func(id, _ string) {
			admin.Post("identities/"+id+"/disable", M{"durationMinutes": 10}).Want(http.StatusOK)
		}),
		account("disabled for good", func(id, _ string) {
			admin.Post("identities/"+id+"/disable", M{"durationMinutes": -1}).Want(http.StatusOK)
		}),
		account("deleted", func(id, _ string) { admin.Delete("identities/" + id).Want(http.StatusOK) }),
		account("without authenticator", func(_, a string) { admin.Delete("authenticators/" + a).Want(http.StatusOK) }),
		account("renamed", func(_, a string) {
			admin.Patch("authenticators/"+a, M{"username": servertest.Unique("user")}).Want(http.StatusOK)
		}),
		account("old password", func(_, a string) { admin.Patch("authenticators/"+a, M{"password": rand.Text()}).Want(http.StatusOK) }),
		account("not allowed", func(id, _ string) { admin.Patch("identities/"+id, M{"authPolicyId": noPassword}).Want(http.StatusOK) }),
		{"certificate beside", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).Presenting(leaf.with()).Post(byPassword, M{"username": username, "password": "wrong one"})
		}},
		{"JWT beside", func(t *testing.T) *servertest.Answer {
			c := shared.Nobody(t).With("Authorization", "Bearer "+house(t).token(t, M{"sub": add(t, nil)}))
			return c.Post(byPassword, M{"username": username, "password": "wrong one"})
		}},
		{"session beside", func(t *testing.T) *servertest.Answer {
			return shared.Admin(t).Post(byPassword, M{"username": username, "password": "wrong one"})
		}},
	}
	for _, method := range []string{"", "?method=", "?method=Password", "?method=updb", "?method=none", "?method=password%00", "?method=cert,password", "?Method=password"} {
		attempts = append(attempts, attempt{"method " + method, func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).Post("authenticate"+method, M{"username": username, "password": password})
		}})
	}
	for name, wrong := range map[string]string{
		"unknown": servertest.Unique("nobody"), "upper case": strings.ToUpper(username), "trailing space": username + " ",
		"leading space": " " + username, "trailing NUL": username + "\x00", "cut": username[:len(username)-1], "wildcard": "%%%%%", "star": "*****",
		"too short": "abc", "too long": strings.Repeat("y", 101), "filter": `" or true or "" = "`, "wide": strings.Replace(username, "u", "ｕ", 1),
	} {
		attempts = append(attempts, body("user name "+name, M{"username": wrong, "password": password}))
	}
	return append(attempts,
		body("user name a list", M{"username": []any{username}, "password": password}),
		body("user name an object", M{"username": M{"ne": ""}, "password": password}),
		body("user name missing", M{"password": password}))
}
