package fabric

import (
	"context"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestFindAPISession has routers ask for the API session of a token that they
// were shown. A router of ours is told of one whose holder may use it, by digest;
// nobody is told of others.
func TestFindAPISession(t *testing.T) {
	s := servertest.Start(t)
	ours, theirs := addRouter(t, s), addRouter(t, s)
	n := addNetwork(t, s)
	greets := func(o *scripted.Options) {
		o.Digests = true
		o.Headers = wire.Headers{}
		o.Headers.SetBool(message.HeaderAuthorities, true)
	}
	own, other := ours.Connect(t, greets), theirs.Connect(t)
	if !own.Welcome.Bool(message.HeaderFinds) || other.Welcome.Bool(message.HeaderFinds) {
		t.Error("one of ours is not told that it may ask, or another is")
	}
	for _, c := range []*scripted.Router{own, other} {
		await(t, c, "it was told everything", func(k scripted.Known) bool { return k.Synced > 0 })
	}
	ask := func(c *scripted.Router, token string) (*message.APISession, bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		f := &wire.Frame{Type: message.TypeFindAPISession, Headers: wire.Headers{}}
		f.Headers.SetText(message.HeaderAPISessionToken, token)
		reply, err := c.Request(ctx, f)
		must(t, err)
		if reply.Type == message.TypeResult {
			if reply.Headers.Bool(message.HeaderSuccess) {
				t.Error("it says yes without saying whose it is")
			}
			return nil, false
		}
		m, err := message.Unmarshal[message.APISessionsAdded](reply.Body)
		must(t, err)
		if reply.Type != message.TypeAPISessionsAdded || m.Full || len(m.Sessions) != 1 || !reply.Headers.Bool(message.HeaderDigests) {
			t.Fatalf("it is told %+v in a frame of type %d", m, reply.Type)
		}
		return &m.Sessions[0], true
	}
	late := s.Login(t, n.dialUser.Username, n.dialUser.Password)
	if _, ok := ask(own, late.Token); ok {
		t.Error("it is told of one that no router is told of: it has no certificate")
	}
	_, csr := ours.Request(t)
	late.Post(client+"current-api-session/certificates", M{"csr": csr}).Want(201)
	id := late.Get(client + "current-api-session").Want(200).ID()
	if found, ok := ask(own, late.Token); !ok || found.ID != id || found.IdentityID != n.dialUser.ID || found.Token != message.Digest(late.Token) {
		t.Errorf("of a session it is told %+v", found)
	}
	if _, ok := ask(other, late.Token); ok {
		t.Error("one of others is told, which has no digests")
	}
	for what, token := range map[string]string{"nothing": "", "no token": "x", "a token of a session to dial": n.dialing, "of one who may not use it": s.Admin(t).Token} {
		if found, ok := ask(own, token); ok {
			t.Errorf("for %s it is told %+v", what, found)
		}
	}
	late.Delete(client + "current-api-session").Want(200)
	if _, ok := ask(own, late.Token); ok {
		t.Error("it is told of one that is over")
	}
}
