package attack_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// patient is how long an admin waits to be let in while others guess.
const patient = 3 * time.Second

// enters is somebody who logs in again and again.
func enters(t *testing.T, name, username, password string, c *http.Client) *person {
	r := request{"POST", byPassword, "", login(username, password)}
	return &person{name: name, every: 50 * time.Millisecond, soon: patient, tries: 3, ask: func(ctx context.Context) error {
		status, _, err := r.send(ctx, shared, c)
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d", status)
		}
		return err
	}}
}

// guesses counts what becomes of wrong passwords.
type guesses struct{ judged, refused, failed atomic.Int64 }

// note sees an answer.
func (g *guesses) note(t *testing.T, status int, h http.Header) {
	switch status {
	case http.StatusUnauthorized:
		g.judged.Add(1)
	case http.StatusTooManyRequests:
		g.refused.Add(1)
		if wait, err := strconv.Atoi(h.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			t.Errorf("whoever guesses too often may go on after %q", h.Get("Retry-After"))
		}
	case http.StatusServiceUnavailable:
		g.failed.Add(1)
	case 0: // the attack is over
	default:
		t.Errorf("a guess is answered %d", status)
	}
}

// TestPasswordFlood has strangers at a few addresses guess without a pause, at
// names that exist and at names that do not. An admin logs in from elsewhere,
// and another from where they are.
func TestPasswordFlood(t *testing.T) {
	victim, other := shared.AddUser(t, true), shared.AddUser(t, true)
	var clients []*http.Client
	address := newAddress()
	for range 4 {
		clients = append(clients, newHTTP(t, shared, address))
		address = newAddress()
	}
	people := []*person{
		enters(t, "admin", servertest.Username, servertest.Password, newHTTP(t, shared, newAddress(), oneShot)),
		enters(t, "admin under attack", victim.Username, victim.Password, newHTTP(t, shared, newAddress(), oneShot)),
		enters(t, "admin among them", other.Username, other.Password, clients[0]),
	}
	var g guesses
	while(t, shared, func(ctx context.Context, ready func()) {
		persist(ctx, scaled(160), ready, func(ctx context.Context, i int, placed func()) {
			placed()
			name := []string{victim.Username, servertest.Unique("nobody")}[i/4%2]
			status, header, _ := request{"POST", byPassword, "", login(name, "wrong one")}.send(ctx, shared, clients[i%4])
			g.note(t, status, header)
		})
	}, people)
	t.Logf("of the guesses %d were judged, %d refused, %d failed", g.judged.Load(), g.refused.Load(), g.failed.Load())
}

// TestOwnPasswordFlood has an ordinary identity try what its own password is.
func TestOwnPasswordFlood(t *testing.T) {
	user := shared.AddUser(t, false)
	me := shared.Login(t, user.Username, user.Password)
	own := me.Get("/edge/client/v1/current-identity/authenticators").Want(200).List()[0]["id"].(string)
	c := newHTTP(t, shared, newAddress())
	r := request{"PATCH", "/edge/client/v1/current-identity/authenticators/" + own, me.Token, `{"currentPassword":"wrong one"}`}
	var g guesses
	while(t, shared, func(ctx context.Context, ready func()) {
		persist(ctx, scaled(40), ready, func(ctx context.Context, _ int, placed func()) {
			placed()
			status, header, _ := r.send(ctx, shared, c)
			g.note(t, status, header)
		})
	}, []*person{enters(t, "admin", servertest.Username, servertest.Password, newHTTP(t, shared, newAddress(), oneShot))})
	t.Logf("of the guesses %d were judged, %d refused, %d failed", g.judged.Load(), g.refused.Load(), g.failed.Load())
	if judged := g.judged.Load(); judged > 30 {
		t.Errorf("%d guesses at one's own password were judged", judged)
	}
}

// TestLockoutByStrangers has strangers everywhere be wrong about an admin whose
// policy shuts out for ever.
func TestLockoutByStrangers(t *testing.T) {
	user, admin := shared.AddUser(t, true), shared.Login(t, servertest.Username, servertest.Password)
	policy := admin.Post("auth-policies", M{"name": servertest.Unique("policy"), "primary": M{
		"cert": M{"allowed": true, "allowExpiredCerts": false}, "extJwt": M{"allowed": true, "allowedSigners": []any{}},
		"updb": M{
			"allowed": true, "minPasswordLength": 5, "requireSpecialChar": false, "requireNumberChar": false,
			"requireMixedCase": false, "maxAttempts": 2, "lockoutDurationMinutes": 0,
		},
	}, "secondary": M{"requireTotp": false}}).Want(201).ID()
	admin.Patch("identities/"+user.ID, M{"authPolicyId": policy}).Want(200)
	try := func(c *http.Client, password string, want int) {
		t.Helper()
		status, _, err := request{"POST", byPassword, "", login(user.Username, password)}.send(t.Context(), shared, c)
		if err != nil || status != want {
			t.Errorf("status %d, want %d: %v", status, want, err)
		}
	}
	home := newHTTP(t, shared, newAddress())
	try(home, user.Password, 200)
	owner := shared.Login(t, user.Username, user.Password)
	for range 10 {
		stranger := newHTTP(t, shared, newAddress())
		try(stranger, "wrong one", 401)
		try(stranger, "wrong one", 401)
		try(stranger, user.Password, 401)
	}
	try(newHTTP(t, shared, newAddress()), user.Password, 401)
	try(home, user.Password, 200)
	owner.Get("identities").Want(200)
	admin.Post("identities/"+user.ID+"/enable", nil).Want(200)
	try(newHTTP(t, shared, newAddress()), user.Password, 200)
}
