package auth_test

import (
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// from has a program come from another address of this machine.
func (p *program) from(address string) *program {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	p.http.Transport.(*http.Transport).DialContext = dialer.DialContext
	return p
}

// TestOIDCFlood has one address begin logins, and guess, as fast as it can. Somebody at
// another address logs in all the same.
func TestOIDCFlood(t *testing.T) {
	u := shared.AddUser(t, false)
	var over atomic.Bool
	var begun atomic.Int64
	var crowd sync.WaitGroup
	for range 8 {
		flood := connect(t, shared).from("127.0.0.9")
		crowd.Go(func() {
			for i := 0; !over.Load(); i++ {
				a := flood.send("GET", "/oidc/authorize?"+flood.asks().Encode(), nil)
				if a.status == http.StatusFound {
					begun.Add(1)
				}
				if at, err := url.Parse(a.header.Get("Location")); err == nil && i%8 == 0 {
					flood.send("POST", "/oidc/login/username", url.Values{"id": {at.Query().Get("authRequestID")}, "username": {"nobody"}, "password": {"wrong"}})
				}
			}
		})
	}
	defer crowd.Wait()
	defer over.Store(true)
	for range 3 {
		seen := begun.Load()
		servertest.Eventually(t, time.Minute, "the flood goes on", func() bool { return begun.Load() > seen+20 })
		access, refresh := connect(t, shared).enters(u.Username, u.Password)
		p := connect(t, shared)
		p.with(access, "current-api-session").want(t, http.StatusOK)
		p.refresh(refresh, "refresh_token").want(t, http.StatusOK)
	}
	if n := sessionsOf(u.ID); n != 3 {
		t.Errorf("there are %d sessions after three logins", n)
	}
}

// TestOIDCHalfWay stops before the second factor, and tries to get on by every way
// that there is but the code.
func TestOIDCHalfWay(t *testing.T) {
	u, p := shared.AddUser(t, false), connect(t, shared)
	f := enroll(t, u.ID)
	p.begin().password(u.Username, u.Password).want(t, http.StatusOK)
	p.send("GET", "/oidc/authorize/callback?id="+p.id, nil).want(t, http.StatusUnauthorized)
	p.trade(p.id).want(t, http.StatusBadRequest)
	p.password(u.Username, u.Password).want(t, http.StatusUnauthorized) // the login has its session
	p.send("POST", "/oidc/login/totp/enroll", url.Values{"id": {p.id}}).want(t, http.StatusConflict)
	p.send("POST", "/oidc/login/totp/enroll/verify", url.Values{"id": {p.id}, "code": {f.code(t)}}).want(t, http.StatusNotFound)
	for _, code := range []string{"", "000000", "0", "000000000000"} {
		if a := p.send("POST", "/oidc/login/totp", url.Values{"id": {p.id}, "code": {code}}); a.status != http.StatusBadRequest {
			t.Errorf("code %q is answered with %d: %s", code, a.status, a.text)
		}
	}
	// The code of somebody else, and a code for somebody else's login.
	other := shared.AddUser(t, false)
	theirs := enroll(t, other.ID)
	p.send("POST", "/oidc/login/totp", url.Values{"id": {p.id}, "code": {theirs.code(t)}}).want(t, http.StatusBadRequest)
	q := connect(t, shared).begin()
	q.send("POST", "/oidc/login/totp", url.Values{"id": {q.id}, "code": {f.code(t)}}).want(t, http.StatusUnauthorized)

	for _, session := range shared.Admin(t).Get("api-sessions?filter=" + url.QueryEscape(`identity="`+u.ID+`"`)).Want(http.StatusOK).List() {
		shared.Admin(t).Delete("api-sessions/" + session["id"].(string)).Want(http.StatusOK)
	}
	p.send("POST", "/oidc/login/totp", url.Values{"id": {p.id}, "code": {f.code(t)}}).want(t, http.StatusUnauthorized)
	if n := sessionsOf(u.ID); n != 0 {
		t.Errorf("%d sessions are left of a login that went half of the way", n)
	}
}

// TestOIDCRace has many come at once with the same login, code and refresh token: one
// gets something at most.
func TestOIDCRace(t *testing.T) {
	u, p := shared.AddUser(t, false), connect(t, shared)
	race := func(what string, try func() int, good int) {
		t.Helper()
		var won atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if try() == good {
					won.Add(1)
				}
			})
		}
		if all.Wait(); won.Load() > 1 {
			t.Errorf("%d got something for the same %s", won.Load(), what)
		}
	}
	p.begin()
	race("login", func() int { return p.password(u.Username, u.Password).status }, http.StatusFound)
	code := p.code(p.begin().password(u.Username, u.Password))
	race("code", func() int { return p.trade(code).status }, http.StatusOK)
	access, refresh := p.enters(u.Username, u.Password)
	race("refresh token", func() int { return p.refresh(refresh, "refresh_token").status }, http.StatusOK)
	p.with(access, "services").want(t, http.StatusUnauthorized)
}
