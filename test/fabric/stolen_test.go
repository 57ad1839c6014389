package fabric

import (
	"crypto/tls"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// certAdmin is an admin who logs in with a certificate.
type certAdmin struct {
	id   string
	cert tls.Certificate
}

func addCertAdmin(t *testing.T, s *servertest.Server) certAdmin {
	t.Helper()
	admin := s.Admin(t)
	a := certAdmin{id: admin.Post(management+"identities", M{
		"name": servertest.Unique("admin"), "type": "User", "isAdmin": true, "enrollment": M{"ott": true},
	}).Want(201).ID()}
	token := admin.Get(management + "identities/" + a.id).Want(200).At("data.enrollment.ott.token").(string)
	key := newKey(t)
	answer := s.Nobody(t).With("Accept", "application/json").Post(client+"enroll?token="+url.QueryEscape(token), M{"clientCsr": csrOf(t, key)}).Want(200)
	a.cert = servertest.Pair(key, answer.Data()["cert"].(string))
	return a
}

// login opens a session at an API.
func (a certAdmin) login(t *testing.T, s *servertest.Server, api string) *servertest.Client {
	t.Helper()
	c := s.Nobody(t).Presenting(&a.cert)
	c.Token = c.Post(api+"authenticate?method=cert", M{}).Want(200).Header.Get("net-session")
	return c
}

// TestStolenToken has a router of others take the token of an admin who logged
// in with a certificate, and try what an admin can.
func TestStolenToken(t *testing.T) {
	s := servertest.Start(t)
	admin := addCertAdmin(t, s)
	allow(t, s, "#all", "#all")
	password := s.Admin(t)
	var told tap
	c := addRouter(t, s).Connect(t, func(o *scripted.Options) { o.Seen = told.seen })
	victim := admin.login(t, s, client)
	id := victim.Get(client + "current-api-session").Want(200).ID()
	await(t, c, "the router of others knows the admin's session", func(k scripted.Known) bool { return k.Sessions[id].Token == victim.Token })
	if told.has(password.Token) {
		t.Error("a router was told of a session without a certificate")
	}

	thief := s.Nobody(t)
	thief.Token = victim.Token
	thief.Get(client + "services").Want(200) // what a router sees anyway
	csr := csrOf(t, newKey(t))
	body := M{"name": "mine", "type": "User", "isAdmin": true}
	refused := func(what string, a *servertest.Answer) {
		t.Helper()
		a.Want(401)
		if code := a.At("error.code"); code != "UNAUTHORIZED" {
			t.Errorf("%s: %v", what, code)
		}
		if cause, _ := a.At("error.cause.message").(string); !strings.Contains(cause, "must present a certificate of the session") {
			t.Errorf("%s: the answer does not say what to do: %s", what, a.Raw)
		}
	}
	own := victim.Get(client + "current-identity/authenticators").Want(200).At("data.0.id").(string)
	tries := func(who *servertest.Client) {
		t.Helper()
		refused("an admin made by a thief", who.Post(management+"identities", body))
		refused("who it is", who.Get(management+"current-identity"))
		refused("links", who.Get("/fabric/v1/links"))
		refused("a certificate of the session", who.Post(client+"current-api-session/certificates", M{"csr": csr}))
		refused("a second factor", who.Post(client+"current-identity/mfa", M{}))
		refused("recovery codes", who.Post(client+"current-identity/mfa/recovery-codes", M{"code": "123456"}))
		refused("no second factor", who.Delete(client+"current-identity/mfa"))
		refused("a new certificate", who.Post(client+"current-identity/authenticators/"+own+"/extend", M{"clientCertCsr": csr}))
		refused("that it arrived", who.Post(client+"current-identity/authenticators/"+own+"/extend-verify", M{"clientCert": csr}))
		refused("another password", who.Put(client+"current-identity/authenticators/"+own, M{"currentPassword": "guess", "username": "name", "password": "other"}))
	}
	tries(thief)
	stranger := addCertAdmin(t, s)
	tries(thief.Presenting(&stranger.cert)) // nor is any certificate enough

	// Who has the key does not notice.
	victim.Get(management + "current-identity").Want(200)
	victim.Get("/fabric/v1/links").Want(200)
	key := newKey(t)
	issued := victim.Post(client+"current-api-session/certificates", M{"csr": csrOf(t, key)}).Want(201).Data()["certificate"].(string)
	other := servertest.Pair(key, issued)
	thief.Presenting(&other).Get(management + "current-identity").Want(200)
	victim.Post(client+"current-identity/mfa", M{}).Want(201)
	if shown := thief.Get(client + "current-identity/mfa").Want(200).Data(); shown["provisioningUrl"] != nil || len(shown["recoveryCodes"].([]any)) > 0 {
		t.Error("a thief is shown the secret of a second factor")
	}

	// Tools log in at the Management API and show no certificate later.
	tool := admin.login(t, s, management)
	plain := s.Nobody(t)
	plain.Token = tool.Token
	plain.Get(management + "current-identity").Want(200)
	marker := login(t, s, s.AddUser(t, false))
	servertest.Eventually(t, soon, "what came after is told", func() bool { return told.has(marker.Token) })
	if told.has(tool.Token) {
		t.Error("a router was told of a session of the Management API")
	}
}

// TestDigestsForEver has routers that enrolled as ours, or said once that they
// take digests, come again and not say so.
func TestDigestsForEver(t *testing.T) {
	s := servertest.Start(t)
	allow(t, s, "#all", "#all")
	user := login(t, s, s.AddUser(t, false))
	id := user.Get(client + "current-api-session").Want(200).ID()
	digest := func(what string, r *router, change ...func(*scripted.Options)) {
		t.Helper()
		var told tap
		c := r.Connect(t, append(change, func(o *scripted.Options) { o.Seen = told.seen })...)
		synced := 0
		await(t, c, what, func(k scripted.Known) bool {
			synced = k.Synced
			return k.Sessions[id].Token == message.Digest(user.Token)
		})
		must(t, c.Send(&wire.Frame{Type: message.TypeResyncRequest, Body: message.Marshal(&message.ResyncRequest{Reason: "a test"})}))
		await(t, c, "everything is told again", func(k scripted.Known) bool { return k.Synced > synced })
		if told.has(user.Token) {
			t.Errorf("%s: it was told a token", what)
		}
		c.Close()
	}
	ours := addRouter(t, s, M{"takesDigests": true})
	digest("one that enrolled as ours", ours)
	digest("one that asks before it says hello", ours, func(o *scripted.Options) {
		o.Then = func(c *scripted.Router) {
			_ = c.Send(&wire.Frame{Type: message.TypeResyncRequest, Body: message.Marshal(&message.ResyncRequest{Reason: "early"})})
		}
	})
	early := addRouter(t, s)
	digest("one that says so now", early, func(o *scripted.Options) { o.Digests = true })
	servertest.Eventually(t, soon, "that is written down", func() bool {
		record, _ := model.EdgeRouters.Get(s.State().Snapshot(), early.ID)
		return record.TakesDigests
	})
	digest("one that said so before", early)
	// Only a new enrollment makes it another router.
	s.Admin(t).Post(management+"edge-routers/"+early.ID+"/re-enroll", M{}).Want(200)
	early.Enroll(t)
	c := early.Connect(t)
	await(t, c, "one of others is told tokens", func(k scripted.Known) bool { return k.Sessions[id].Token == user.Token })
}
