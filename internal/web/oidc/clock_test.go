package oidc

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// A moment before and after a time is over.
const moment = time.Second

// TestTimes has each thing that a client carries be good until its time is over, and
// not longer, by a clock that the test sets.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, late := range []bool{false, true} {
			wait := func(d time.Duration) {
				if late {
					d += 2 * moment
				}
				time.Sleep(d - moment)
			}
			good := func(what string, ok bool) {
				t.Helper()
				if ok == late {
					t.Errorf("%s is good: %v; its time is over: %v", what, ok, late)
				}
			}
			login := w.begin()
			wait(loginTime)
			good("a login", w.show(login).Code == 302)

			landing := w.lead(w.show(w.begin())).String()
			wait(codeTime)
			good("where a login lands", w.send("GET", landing, nil).Code == 302)

			code := w.lead(w.send("GET", w.lead(w.show(w.begin())).String(), nil)).Query().Get("code")
			wait(codeTime)
			_, ok := w.trade(code)
			good("a code", ok)

			got := w.enter()
			wait(accessTime)
			good("an access token", w.lets(got.Access))
			good("an ID token", w.send("GET", Root+"/end_session?id_token_hint="+got.ID, nil).Code == 200)

			got = w.enter()
			wait(idle)
			_, ok = w.refresh(got.Refresh)
			good("a refresh token that was left alone", ok)
		}
	})
}

// TestFormerToken has the first access token of a session still name it after its time, for
// who says what it was told once: it opens nothing any more, and names nothing once the
// session is over, and no other sort of token does the same.
func TestFormerToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.enter()
		time.Sleep(accessTime - moment)
		next, ok := w.refresh(first.Refresh)
		if !ok {
			t.Fatal("there are no next tokens")
		}
		time.Sleep(2 * moment)
		names := func(text string) string {
			session, ok := w.Sessions.RecallFormer(w.State.Snapshot(), text)
			if !ok {
				return ""
			}
			return session.ID
		}
		id, current := w.Sessions.Named(next.Access)
		if _, good := w.Sessions.Named(first.Access); good || !current || w.lets(first.Access) {
			t.Error("the first access token is still good, or the next is not")
		}
		if names(first.Access) != id || names(next.Access) != id {
			t.Errorf("of session %s, the tokens name %q and %q", id, names(first.Access), names(next.Access))
		}
		for what, text := range map[string]string{
			"a refresh token": next.Refresh, "an ID token": next.ID, "nothing": "", "what is no token": "e30.e30.e30", "the id of the session": id,
			"one with another signature": first.Access[:strings.LastIndex(first.Access, ".")] + next.Access[strings.LastIndex(next.Access, "."):],
		} {
			if named := names(text); named != "" {
				t.Errorf("%s names session %s", what, named)
			}
		}
		if err := w.State.Delete(t.Context(), state.Program("test"), model.APISessions.Def, id); err != nil {
			t.Fatal(err)
		}
		if named := names(first.Access); named != "" {
			t.Errorf("a session that is over is named: %s", named)
		}
	})
}

// TestLifetime refreshes a session as long as that is possible: it ends however much it
// is used, and its tokens with it.
func TestLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began, got := time.Now(), w.enter()
		for {
			time.Sleep(accessTime - moment)
			if !w.lets(got.Access) {
				break
			}
			next, ok := w.refresh(got.Refresh)
			if !ok {
				break
			}
			if w.lets(got.Refresh) || w.lets(got.ID) {
				t.Error("something else than an access token lets somebody in")
			}
			got = next
		}
		if took := time.Since(began); took < lifetime || took > lifetime+accessTime {
			t.Errorf("the session was good for %s, not %s", took, lifetime)
		}
		if w.stolen != 0 {
			t.Errorf("%d tokens are said to be stolen", w.stolen)
		}
	})
}

// TestForged shows what the network's own keys have signed and is no access token, and
// what is one but for one thing that it says.
func TestForged(t *testing.T) {
	w := newWorld(t)
	session, _, ok := w.Sessions.ReadRefresh(w.enter().Refresh)
	if !ok {
		t.Fatal("the refresh token cannot be read")
	}
	others, now := newKeys(t, "ours", 2), time.Now().Unix()
	for name, one := range map[string]struct {
		by     authn.Signers
		change map[string]any
		good   bool
	}{
		"nothing changed":            {good: true},
		"keys of another network":    {by: others},
		"another audience":           {change: map[string]any{"aud": []string{"somebody"}}},
		"no audience":                {change: map[string]any{"aud": nil}},
		"an audience like ours":      {change: map[string]any{"aud": "openziti.example"}},
		"an issuer without TLS":      {change: map[string]any{"iss": "http://controller.example/oidc"}},
		"another kind of issuer":     {change: map[string]any{"iss": "https://controller.example"}},
		"no issuer":                  {change: map[string]any{"iss": nil}},
		"an ID token's type":         {change: map[string]any{"z_t": "i"}},
		"a session token's type":     {change: map[string]any{"z_t": "s"}},
		"a refresh token's type":     {change: map[string]any{"z_t": "r"}},
		"no type":                    {change: map[string]any{"z_t": nil}},
		"a type that is a list":      {change: map[string]any{"z_t": []string{"a"}}},
		"a session that is not":      {change: map[string]any{"z_asid": "nobody"}},
		"no session":                 {change: map[string]any{"z_asid": nil}},
		"no end":                     {change: map[string]any{"exp": nil}},
		"an end that is over":        {change: map[string]any{"exp": now - 1}},
		"an end that is a text":      {change: map[string]any{"exp": "9999999999"}},
		"an end out of this world":   {change: map[string]any{"exp": 1e300}},
		"a beginning that is to be":  {change: map[string]any{"nbf": now + 3600}},
		"a beginning out of sight":   {change: map[string]any{"nbf": 1e300}},
		"a subject that is not read": {change: map[string]any{"sub": "nobody"}, good: true}, // the record says whose the session is
	} {
		said := map[string]any{
			"iss": "https://controller.example/oidc", "aud": []string{"openziti"}, "sub": "somebody", "exp": now + 600, "iat": now, "nbf": now, "z_t": "a", "z_asid": session,
		}
		for claim, value := range one.change {
			if said[claim] = value; value == nil {
				delete(said, claim)
			}
		}
		by := one.by
		if by == nil {
			by = w.Sessions.Signers
		}
		text, err := by.Sign(said)
		if err != nil {
			t.Fatal(err)
		}
		if w.lets(text) != one.good {
			t.Errorf("a token with %s is let in: %v", name, !one.good)
		}
	}
}
