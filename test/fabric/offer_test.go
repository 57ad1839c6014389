package fabric

import (
	"net/http"
	"slices"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// offers waits until clients are told, or not, that they may log in by OpenID Connect.
func offers(t *testing.T, s *servertest.Server, what string, want bool) {
	t.Helper()
	servertest.Eventually(t, soon, what, func() bool { return offered(t, s) == want })
}

// offered reports whether they are, in both of the ways in which clients look for that.
func offered(t *testing.T, s *servertest.Server) bool {
	t.Helper()
	said := s.Nobody(t).Get(client + "version").Want(200).Data()
	_, named := said["apiVersions"].(M)["edge-oidc"]
	capable := slices.Contains(said["capabilities"].([]any), any("OIDC_AUTH"))
	if named != capable {
		t.Errorf("the version says %v", said)
	}
	return capable
}

// TestOffer has routers of every sort come and go: clients are told that they may log in by
// OpenID Connect while all of them have shown that they take such clients, and may in any
// case.
func TestOffer(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.OIDC.Enabled = config.Auto })
	admin := s.Admin(t)
	goes := func() {
		t.Helper()
		s.Bear(t, s.AddUser(t, false)).Get(client + "current-api-session").Want(200)
	}
	model := func(r *router, how ...func(*scripted.Options)) *scripted.Router {
		t.Helper()
		c := r.Connect(t, how...)
		subscribe(t, c, message.SubscribeToDataModel{Seconds: 300})
		return c
	}
	offers(t, s, "there is no router", false)
	goes()
	admin.Post(management+"edge-routers", M{"name": servertest.Unique("later")}).Want(201)
	addRouter(t, s, M{"takesDigests": true})
	offers(t, s, "one is of ours, and another has yet to enroll", true)

	second := addRouter(t, s)
	offers(t, s, "nobody knows what the second is", false)
	c := second.Connect(t, released("v2.0.3"), grouped)
	await(t, c, "it is connected", func(k scripted.Known) bool { return k.Synced > 0 })
	offers(t, s, "it has not asked for the model", false)
	subscribe(t, c, message.SubscribeToDataModel{Seconds: 300})
	offers(t, s, "it is of OpenZiti 2.0", true)
	c.Close()
	servertest.Eventually(t, soon, "it is gone", func() bool {
		return admin.Get(management + "edge-routers/" + second.ID).Want(200).Data()["isOnline"] == false
	})
	offers(t, s, "it is away, and comes back as what it was", true)

	system := admin.Post(management+"posture-checks", M{"name": servertest.Unique("system"), "typeId": "OS", "operatingSystems": []M{{"type": "Linux", "versions": []string{}}}}).Want(201).ID()
	offers(t, s, "it cannot read every system", false)
	admin.Delete(management + "posture-checks/" + system).Want(200)
	domain := admin.Post(management+"posture-checks", M{"name": servertest.Unique("domain"), "typeId": "DOMAIN", "domains": []string{"example"}}).Want(201).ID()
	offers(t, s, "it judges other devices as the controller does", true)
	admin.Delete(management + "posture-checks/" + domain).Want(200)

	first := addRouter(t, s)
	model(first, released("v1.6.0"))
	offers(t, s, "one is of 1.6, and goes by the model", true)
	check := admin.Post(management+"posture-checks", M{"name": servertest.Unique("check"), "typeId": "DOMAIN", "domains": []string{"example"}}).Want(201).ID()
	offers(t, s, "it takes no reports of devices", false)
	admin.Patch(management+"edge-routers/"+first.ID, M{"disabled": true}).Want(200)
	offers(t, s, "nobody comes to it", true)
	admin.Patch(management+"edge-routers/"+first.ID, M{"disabled": false}).Want(200)
	offers(t, s, "it may be there again", false)
	admin.Delete(management + "posture-checks/" + check).Want(200)
	offers(t, s, "there are no reports", true)
	goes()

	model(first, released("v1.5.4"))
	offers(t, s, "it is of 1.5 now", false)
	goes()
	model(first, released("v1.6.0"))
	offers(t, s, "it is of 1.6 again", true)
	admin.Patch(management+"edge-routers/"+first.ID, M{"cost": 7}).Want(200)
	offers(t, s, "an edit changes nothing of that", true)
	admin.Post(management+"edge-routers/"+first.ID+"/re-enroll", nil).Want(200)
	offers(t, s, "it is to enroll again", true)
	admin.Delete(management + "edge-routers/" + first.ID).Want(200)
	offers(t, s, "it is gone for good", true)
}

// TestOfferByWord has the setting say whether the offer is made, whatever routers are there.
func TestOfferByWord(t *testing.T) {
	for word, want := range map[config.Switch]bool{config.On: true, config.Off: false} {
		s := servertest.Start(t, func(c *config.Config) { c.OIDC.Enabled = word })
		if offered(t, s) != want {
			t.Errorf("with %s, the offer is made: %v", word, !want)
		}
		addRouter(t, s).Connect(t, released("v1.5.4"))
		addRouter(t, s, M{"takesDigests": true})
		if offered(t, s) != want {
			t.Errorf("with %s, and routers of all sorts, the offer is made: %v", word, !want)
		}
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS(), DisableKeepAlives: true}}
		resp, err := web.Get(s.URL + "/oidc/.well-known/openid-configuration")
		must(t, err)
		must(t, resp.Body.Close())
		if found := resp.StatusCode == 200; found != want {
			t.Errorf("with %s, there are logins: %v", word, found)
		}
	}
}
