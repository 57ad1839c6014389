package fabric

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestRemovedTokens has sessions end in every way, while a router that serves
// nobody listens: it is not told their tokens, not even as those that are over.
func TestRemovedTokens(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	deaf := addRouter(t, s)
	n := addNetwork(t, s)
	for _, p := range admin.Get(management + "edge-router-policies").Want(200).List() {
		admin.Patch(management+"edge-router-policies/"+p["id"].(string), M{"edgeRouterRoles": []string{"#serving"}}).Want(200)
	}
	serving := addRouter(t, s)
	admin.Patch(management+"edge-routers/"+serving.ID, M{"roleAttributes": []string{"serving"}}).Want(200)
	var told tap
	bad := deaf.Connect(t, func(o *scripted.Options) { o.Seen = told.seen })
	await(t, bad, "it was told all", func(k scripted.Known) bool { return k.Synced >= 1 })
	good := serving.Connect(t)
	await(t, good, "the other knows them", func(k scripted.Known) bool { return len(k.Sessions) == 2 })

	second := login(t, s, n.dialUser) // ends by itself
	logout := second.Token
	second.Delete(client + "current-api-session").Want(200)
	session := n.dialing
	for _, one := range admin.Get(management + "sessions").Want(200).List() {
		if one["type"] == model.Dial {
			admin.Delete(management + "sessions/" + one["id"].(string)).Want(200)
		}
	}
	// These are there, and not complete any more.
	strict := admin.Post(management+"auth-policies", M{
		"name":      servertest.Unique("strict"),
		"primary":   M{"cert": M{"allowed": true, "allowExpiredCerts": true}, "updb": M{"allowed": true, "minPasswordLength": 5, "maxAttempts": 0, "lockoutDurationMinutes": 0, "requireMixedCase": false, "requireNumberChar": false, "requireSpecialChar": false}, "extJwt": M{"allowed": false, "allowedSigners": []string{}}},
		"secondary": M{"requireTotp": true},
	}).Want(201).ID()
	for _, u := range []servertest.User{n.dialUser, n.hostUser} {
		admin.Patch(management+"identities/"+u.ID, M{"authPolicyId": strict}).Want(200)
	}
	await(t, good, "the other hears that they are over", func(k scripted.Known) bool { return len(k.Sessions) == 0 })
	await(t, bad, "the new auth policy had it told all again", func(k scripted.Known) bool { return k.Synced >= 2 })
	must(t, bad.Send(&wire.Frame{Type: message.TypeResyncRequest, Body: message.Marshal(&message.ResyncRequest{Reason: "a test"})}))
	await(t, bad, "everything that was to be told is told", func(k scripted.Known) bool { return k.Synced >= 3 })
	for what, token := range map[string]string{"of a session that was closed": logout, "to dial": session, "of a dialer": n.dialer.Token, "of a host": n.host.Token} {
		if told.has(token) || told.has(message.Digest(token)) {
			t.Errorf("a router that serves nobody was told the token %s", what)
		}
	}
}

// TestWhereARouterIs has a router say where clients reach it, in ways that cannot
// be: nobody is shown that, and the log says so once.
func TestWhereARouterIs(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	c := r.Connect(t)
	type listener = message.EdgeListener
	at := func(protocol, host string, port int32) listener {
		return listener{Advertise: message.Address{Protocol: protocol, Hostname: host, Port: port}}
	}
	synced := 1
	says := func(m message.ClientHello) {
		t.Helper()
		must(t, c.Send(&wire.Frame{Type: message.TypeClientHello, Body: message.Marshal(&m)}))
		synced++
		await(t, c, "it was heard", func(k scripted.Known) bool { return k.Synced == synced })
	}
	shown := func() (hostname string, urls []string) {
		t.Helper()
		answer := n.dialer.For(t).Get(client + "current-identity/edge-routers").Want(200)
		for _, one := range answer.List() {
			if one["id"] == r.ID {
				hostname = one["hostname"].(string)
				for _, at := range one["supportedProtocols"].(M) {
					urls = append(urls, at.(string))
				}
			}
		}
		if len(answer.Raw) > 20_000 {
			t.Errorf("an answer has %d bytes", len(answer.Raw))
		}
		slices.Sort(urls)
		return hostname, urls
	}
	says(message.ClientHello{Hostname: "good.example", Listeners: []listener{at("tls", "good.example", 3022), at("wss", "127.0.0.1", 443)}})
	if host, urls := shown(); host != "good.example" || !slices.Equal(urls, []string{"tls://good.example:3022", "wss://127.0.0.1:443"}) {
		t.Errorf("what is right is shown as %q, %q", host, urls)
	}
	long := strings.Repeat("x.", 10_000) + "example"
	many := []listener{at("tls", long, 1), at(long[:17], "a.example", 1), at("TLS", "a.example", 1), at("tls", "a.example", 0), at("tls", "a.example", 70_000),
		at("tls", "*.example", 1), at("tls", "a b", 1), at("tls", "a/../b", 1), at("tls", "\x1b[2J", 1), at("javascript:", "a.example", 1)}
	for i := range 200 {
		many = append(many, at(fmt.Sprint("p", i), "a.example", 1))
	}
	says(message.ClientHello{Hostname: long, Listeners: many})
	if host, urls := shown(); host != "" || len(urls) != 16 || strings.Contains(strings.Join(urls, " "), "tls") {
		t.Errorf("what cannot be is shown as %.50q, %.200q", host, urls)
	}
	if got := count(s, "what cannot be; that is left out"); got != 1 {
		t.Errorf("the log says so %d times", got)
	}
	// What is larger than any such word is not even read.
	must(t, c.Send(&wire.Frame{Type: message.TypeClientHello, Body: message.Marshal(&message.ClientHello{Hostname: strings.Repeat("x", 3_800_000)})}))
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	_, err := c.Request(ctx, &wire.Frame{Type: message.TypePing})
	must(t, err)
	if host, _ := shown(); host != "" || !s.Logged(`"reason":"too-large"`) {
		t.Errorf("a name of millions of characters is shown as %.50q", host)
	}
}

// TestAsksForEverything has a router ask for everything again and again, with long
// reasons: it is told so often as there may be reasons, the log is spared, and who
// goes on is cut off.
func TestAsksForEverything(t *testing.T) {
	s := servertest.Start(t)
	good := addRouter(t, s).Connect(t)
	n := addNetwork(t, s)
	n.hostOn(t, good, servertest.Unique("t"))
	bad := addRouter(t, s).Connect(t)
	stop := undisturbed(t, n, good)
	reason := strings.Repeat("\x01", 60_000)
	const times = 3000
	sent := flood(t, bad, times, func(int) *wire.Frame {
		return &wire.Frame{Type: message.TypeResyncRequest, Body: message.Marshal(&message.ResyncRequest{Reason: reason})}
	})
	stop()
	if sent == times {
		t.Error("it goes on for ever")
	}
	size := 0
	for _, line := range s.Log() {
		if strings.Contains(line, "asks for all API sessions") {
			size += len(line)
		}
	}
	if size == 0 || size > 200_000 {
		t.Errorf("the log has %d bytes of it", size)
	}
}

// TestRestlessRouter has a router connect again and again. The log is not filled
// by it, and others do not notice.
func TestRestlessRouter(t *testing.T) {
	s := servertest.Start(t)
	good := addRouter(t, s).Connect(t)
	n := addNetwork(t, s)
	n.hostOn(t, good, servertest.Unique("t"))
	opt := addRouter(t, s).Options()
	stop := undisturbed(t, n, good)
	const times = 180
	began, refused := time.Now(), 0
	for range times {
		c, err := scripted.Connect(t.Context(), opt)
		if err != nil {
			if refused++; !strings.Contains(err.Error(), "connects again and again") {
				t.Fatal(err)
			}
			continue
		}
		c.Close()
	}
	stop()
	// So many at once, and one more every half second.
	most := 122 + int(2*time.Since(began).Seconds())
	if lines := count(s, "router connected"); lines > most || times-refused > most {
		t.Errorf("of %d connections %d were refused, and %d lines tell of it", times, refused, lines)
	}
}

// TestValidation has a router name sessions without end, which each take a
// signature to look at: it is heard on meanwhile.
func TestValidation(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	var answers atomic.Int64
	c := r.Connect(t, func(o *scripted.Options) {
		o.Seen = func(f *wire.Frame) {
			if f.Type == message.TypeSessionsRemoved {
				gone, err := message.Unmarshal[message.Removed](f.Body)
				if err == nil {
					answers.Add(int64(len(gone.IDs)))
				}
			}
		}
	})
	// They lead to a session, and are not its token.
	forged := n.dialing[:strings.LastIndexByte(n.dialing, '.')+1] + strings.Repeat("A", 86)
	var m message.ValidateSessions
	for range 1500 {
		m.Sessions = append(m.Sessions, forged)
	}
	body := message.Marshal(&m)
	const times = 3
	for range times {
		must(t, c.Send(&wire.Frame{Type: message.TypeValidateSessions, Body: body}))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := c.Request(ctx, &wire.Frame{Type: message.TypePing})
	must(t, err)
	if got := answers.Load(); got >= times*int64(len(m.Sessions)) {
		t.Errorf("all %d questions were answered before what came next was heard", got)
	}
	servertest.Eventually(t, patience, "all are answered", func() bool { return answers.Load() == times*int64(len(m.Sessions)) })
}

// TestFiltersByToken looks for sessions by their tokens: one finds one's own, and
// nobody finds those of others, however it is asked.
func TestFiltersByToken(t *testing.T) {
	s := servertest.Start(t)
	addRouter(t, s).Connect(t)
	n := addNetwork(t, s)
	admin := s.Admin(t)
	for _, path := range []string{"sessions", "api-sessions"} {
		all := admin.Get(management + path).Want(200).Total()
		for _, token := range []string{n.dialing, n.hosting, n.dialer.Token, n.host.Token} {
			for filter, want := range map[string]int{
				`token="` + token + `"`: 0, `token in ["` + token + `"]`: 0, `token contains "` + token[3:9] + `"`: 0, `token != "` + token + `"`: all,
			} {
				got := admin.Get(management + path + "?filter=" + url.QueryEscape(filter)).Want(200).Total()
				if got != want {
					t.Errorf("%s?filter=%.20s… has %d, want %d", path, filter, got, want)
				}
			}
		}
	}
	if got := admin.Get(management + "api-sessions?filter=" + url.QueryEscape(`token="`+admin.Token+`"`)).Want(200).Total(); got != 1 {
		t.Errorf("one finds %d of one's own", got)
	}
	own := n.dialer.For(t).Get(client + "sessions?filter=" + url.QueryEscape(`token="`+n.dialing+`"`)).Want(200).Total()
	if own != 1 {
		t.Errorf("one finds %d of one's own sessions to dial", own)
	}
	if got := n.dialer.For(t).Get(client + "sessions?filter=" + url.QueryEscape(`token="`+n.hosting+`"`)).Want(200).Total(); got != 0 {
		t.Errorf("one finds %d sessions of another", got)
	}
}
