package fabric

import (
	"bytes"
	"sync"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// tap is everything that a router has been told, as bytes.
type tap struct {
	mu   sync.Mutex
	told []byte
}

func (t *tap) seen(f *wire.Frame) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = f.Append(t.told)
}

func (t *tap) has(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Contains(t.told, []byte(text))
}

// TestDigests has a router that needs no tokens be told of sessions in every
// way that there is: it never hears a token, and others do.
func TestDigests(t *testing.T) {
	s := servertest.Start(t)
	var ours, theirs tap
	r, r2 := addRouter(t, s), addRouter(t, s)
	n := addNetwork(t, s)
	own := r.Connect(t, func(o *scripted.Options) { o.Digests, o.Seen = true, ours.seen })
	other := r2.Connect(t, func(o *scripted.Options) { o.Seen = theirs.seen })

	late := s.Login(t, n.dialUser.Username, n.dialUser.Password)
	_, csr := r.Request(t)
	late.Post(client+"current-api-session/certificates", M{"csr": csr}).Want(201)
	id := late.Get(client + "current-api-session").Want(200).ID()
	for _, c := range []*scripted.Router{own, other} {
		await(t, c, "it knows the certificate", func(k scripted.Known) bool { return len(k.Sessions[id].Fingerprints) == 1 })
	}
	await(t, own, "the session has the digest of its token", func(k scripted.Known) bool {
		return k.Sessions[id].Token == message.Digest(late.Token)
	})
	late.Delete(client + "current-api-session").Want(200)
	// A digest in what is removed is enough to know which.
	await(t, own, "the session is over", func(k scripted.Known) bool { _, ok := k.Sessions[id]; return !ok })
	s.Admin(t).Delete(management + "service-policies/" + n.dialPolicy).Want(200)
	for _, c := range []*scripted.Router{own, other} {
		must(t, c.Send(&wire.Frame{Type: message.TypeAPISessionHeartbeat, Body: message.Marshal(&message.APISessionHeartbeat{Tokens: []string{"stale-token", n.host.Token}})}))
		must(t, c.Send(&wire.Frame{Type: message.TypeValidateSessions, Body: message.Marshal(&message.ValidateSessions{Sessions: []string{"stale-session"}})}))
		must(t, c.Send(&wire.Frame{Type: message.TypeResyncRequest, Body: message.Marshal(&message.ResyncRequest{Reason: "a test"})}))
		await(t, c, "everything is told again", func(k scripted.Known) bool { return k.Synced == 2 })
	}
	for name, token := range map[string]string{
		"the host's": n.host.Token, "the dialer's": n.dialer.Token, "of a session that came and went": late.Token,
		"to dial": n.dialing, "that is stale": "stale-token", "of a session that is stale": "stale-session",
	} {
		for what, tapped := range map[string]struct {
			tap  *tap
			text string
		}{"a router of ours": {&ours, message.Digest(token)}, "another": {&theirs, token}} {
			servertest.Eventually(t, soon, what+" knows the token "+name, func() bool { return tapped.tap.has(tapped.text) })
		}
		if ours.has(token) {
			t.Errorf("a router of ours was told the token %s", name)
		}
	}
	if ours.has(n.hosting) {
		t.Error("a router of ours was told the token of a session to host")
	}
}
