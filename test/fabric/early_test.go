package fabric

import (
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// released makes a router say that it is one of OpenZiti of a release.
func released(version string) func(*scripted.Options) {
	return func(o *scripted.Options) { o.Version = version + "|abc|2025-05-20 19:41:33|linux|amd64" }
}

// TestModelToEarlyRouters has routers connect by what they are and by whether clients log in
// by OpenID Connect: those that take access tokens then are told that there is a data model,
// and hear the same each time.
func TestModelToEarlyRouters(t *testing.T) {
	const without, with = 0x6e, 0x7e
	for _, test := range []struct {
		name   string
		router func(*scripted.Options)
		bears  byte // what it is told where clients bear tokens
	}{
		{"1.5.4", released("v1.5.4"), without},
		{"1.6.0", released("v1.6.0"), with},
		{"1.6.20", released("v1.6.20"), with},
		{"1.6.0-pre1", released("v1.6.0-pre1"), without},
		{"1.7.0", released("v1.7.0"), without},
		{"built by hand", released("v0.0.0"), without},
		{"2.0.3", func(o *scripted.Options) { released("v2.0.3")(o); grouped(o) }, without},
		{"ours", func(o *scripted.Options) {
			o.Version, o.Digests = "v1.6.20|netkeep-v1.0.0/abc|2025-05-20 19:41:33|linux|amd64", true
		}, without},
	} {
		for offers, want := range map[config.Switch]byte{config.Off: without, config.On: test.bears, config.Auto: test.bears} {
			t.Run(test.name+" "+string(offers), func(t *testing.T) {
				s := servertest.Start(t, func(c *config.Config) { c.OIDC.Enabled = offers })
				r := addRouter(t, s)
				for range 2 {
					c := r.Connect(t, test.router)
					for _, h := range []int32{message.HeaderOldCapabilities, message.HeaderCapabilities} {
						if mask := c.Welcome[h]; len(mask) != 1 || mask[0] != want {
							t.Errorf("the controller can do % x, and not %x", mask, want)
						}
					}
					c.Close()
				}
			})
		}
	}
}

// TestBearersAtEarlyRouters has a router of the first generation learn of those who come with
// access tokens: keys and whom it may let in by the data model, and by the id of the session
// in place of a token that it is there, and when it is over.
func TestBearersAtEarlyRouters(t *testing.T) {
	s := servertest.Start(t, withOIDC)
	admin, record := s.Admin(t), addRouter(t, s)
	gone := make(chan *message.Removed, 100)
	c := record.Connect(t, released("v1.6.0"), func(o *scripted.Options) {
		o.Seen = func(f *wire.Frame) {
			if m, err := message.Unmarshal[message.Removed](f.Body); err == nil && f.Type == message.TypeAPISessionsRemoved {
				gone <- m
			}
		}
	})
	n := addNetwork(t, s)
	subscribe(t, c, message.SubscribeToDataModel{Seconds: 300})

	dialer := s.Bear(t, n.dialUser)
	dialer.Post(client+"current-api-session/certificates", M{"csr": csrOf(t, newKey(t))}).Want(201)
	access := strings.TrimPrefix(dialer.Header.Get("Authorization"), "Bearer ")
	session := dialer.Get(client + "current-api-session").Want(200).ID()
	await(t, c, "it is told of the session by its id", func(k scripted.Known) bool {
		told, there := k.Sessions[session]
		_, known := k.Model.Identities[n.dialUser.ID]
		return there && told.Token == session && told.IdentityID == n.dialUser.ID && known && len(k.Model.Keys) > 0
	})
	legacy := n.host.Token
	await(t, c, "those who log in as before are told as before", func(k scripted.Known) bool {
		for _, told := range k.Sessions {
			if told.Token == legacy && told.IdentityID == n.hostUser.ID {
				return true
			}
		}
		return false
	})

	// It says who is connected: what it was told of is there, and what nobody knows is not.
	beat := func(tokens ...string) {
		must(t, c.Send(&wire.Frame{Type: message.TypeAPISessionHeartbeat, Body: message.Marshal(&message.APISessionHeartbeat{Tokens: tokens})}))
	}
	beat(session, legacy, "stale-token")
	if m := <-gone; !slices.Equal(m.Tokens, []string{"stale-token"}) {
		t.Errorf("of %s, %s and another it is told that these are gone: %v", session, legacy, m.Tokens)
	}

	// The id is no token to anybody.
	if got := s.Nobody(t).With("zt-session", session).Get(client + "current-api-session"); got.Status != 401 {
		t.Errorf("with the id of the session in place of a token: %d", got.Status)
	}

	// Whoever dials and hosts is judged here.
	n.hostOn(t, c, servertest.Unique("t"))
	n.dialing, n.dialer = n.session(t, dialer, "Dial"), s.Nobody(t)
	if n.dialer.Token = access; strings.HasPrefix(n.dialing, "ey") {
		t.Error("the token of the session is one whose end the router does not listen for")
	}
	if _, _, err := n.dialOn(t, c); err != nil {
		t.Fatalf("dialling with an access token: %v", err)
	}
	n.dialer.Token = session
	if _, _, err := n.dialOn(t, c); !isRefused(err, message.CodeInvalidAPISession) {
		t.Errorf("dialling with the id of the session in place of a token: %v", err)
	}
	n.dialer.Token = access

	admin.Delete(management + "api-sessions/" + session).Want(200)
	if m := <-gone; !slices.Equal(m.Tokens, []string{session}) || !slices.Equal(m.IDs, []string{session}) {
		t.Errorf("it is told of the end of the session as %+v", m)
	}
	if _, _, err := n.dialOn(t, c); err == nil {
		t.Error("a dial works with the token of a session that is over")
	}
	beat(legacy, "stale-token")
	if m := <-gone; !slices.Equal(m.Tokens, []string{"stale-token"}) {
		t.Errorf("with that, these are gone: %v", m.Tokens)
	}

	// One that comes again is told everything in the same form.
	again := s.Bear(t, n.dialUser)
	again.Post(client+"current-api-session/certificates", M{"csr": csrOf(t, newKey(t))}).Want(201)
	session = again.Get(client + "current-api-session").Want(200).ID()
	c.Close()
	c = record.Connect(t, released("v1.6.0"))
	await(t, c, "it is told everything again", func(k scripted.Known) bool { return k.Sessions[session].Token == session })
	for _, p := range admin.Get(management + "edge-router-policies?limit=100").Want(200).List() {
		admin.Delete(management + "edge-router-policies/" + p["id"].(string)).Want(200)
	}
	await(t, c, "nobody may use the router", func(k scripted.Known) bool { return len(k.Sessions) == 0 })
}
