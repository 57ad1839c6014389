package fabric

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// patience is how long anything may take while somebody attacks.
const patience = time.Minute

// heap is how many bytes are in use, in this process with the controller.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// count is how many lines of the controller's log have some words.
func count(s *servertest.Server, words string) (n int) {
	for _, line := range s.Log() {
		if strings.Contains(line, words) {
			n++
		}
	}
	return n
}

// flood sends frames one after the other, each when the one before was taken, and
// reports how many until the connection was over.
func flood(t *testing.T, c *scripted.Router, times int, frame func(i int) *wire.Frame) (sent int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for sent < times {
		if c.Send(frame(sent)) != nil {
			return sent
		}
		if _, err := c.Request(ctx, &wire.Frame{Type: message.TypePing}); err != nil {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			return sent
		}
		sent++
	}
	return sent
}

// TestRouterMemory has a router send as much as fits into frames: names of
// identities that there are not, and dials of what never answers. Little of it is
// kept, and others do not notice.
func TestRouterMemory(t *testing.T) {
	s := servertest.Start(t)
	good := addRouter(t, s).Connect(t)
	n := addNetwork(t, s)
	n.hostOn(t, good, servertest.Unique("t"))
	mute := make(chan struct{})
	defer close(mute)
	bad := addRouter(t, s).Connect(t, func(o *scripted.Options) {
		o.Aside = true
		o.Route = func(*message.Route) (wire.Headers, error) {
			<-mute
			return nil, nil
		}
	})
	silent := addNetwork(t, s)
	silent.hostOn(t, bad, servertest.Unique("t"))
	stop := undisturbed(t, n, good)
	before := heap()
	long := strings.Repeat("x", 7<<20)
	flood(t, bad, 30, func(i int) *wire.Frame {
		return &wire.Frame{Type: message.TypeConnectEvents, Body: message.Marshal(&message.ConnectEvents{
			Events: []message.ConnectEvent{{IdentityID: fmt.Sprint(i) + long, Connected: true}},
		})}
	})
	h := wire.Headers{}
	h.SetText(message.HeaderSessionToken, silent.dialing)
	h.SetText(message.HeaderAPISessionToken, silent.dialer.Token)
	body := []byte(long)
	flood(t, bad, 30, func(int) *wire.Frame {
		return &wire.Frame{Type: message.TypeCreateCircuit, Headers: h, Body: body}
	})
	small := []byte(long[:60<<10])
	flood(t, bad, 400, func(int) *wire.Frame {
		return &wire.Frame{Type: message.TypeCreateCircuit, Headers: h, Body: small}
	})
	after := heap()
	t.Logf("%d MiB before, %d MiB after", before>>20, after>>20)
	const most = 100 << 20
	if after > before+most {
		t.Errorf("one router takes %d MiB of memory", (after-before)>>20)
	}
	stop()
	if got := count(s, `"a router misbehaves"`); got != 1 {
		t.Errorf("the log names it %d times", got)
	}
}

// TestRouterOfTooManyWords has a router change itself again and again. It is cut
// off and not let in for a while, and the log and the store are spared.
func TestRouterOfTooManyWords(t *testing.T) {
	s := servertest.Start(t)
	good := addRouter(t, s).Connect(t)
	n := addNetwork(t, s)
	n.hostOn(t, good, servertest.Unique("t"))
	record := addRouter(t, s)
	bad := record.Connect(t)
	stop := undisturbed(t, n, good)
	sent := flood(t, bad, 3000, func(i int) *wire.Frame {
		return &wire.Frame{Type: []int32{message.TypeQuiesce, message.TypeDequiesce}[i%2]}
	})
	stop()
	if sent == 3000 {
		t.Error("it goes on for ever")
	}
	if got := count(s, `"a router changed itself"`); got > 200 {
		t.Errorf("it has made %d changes", got)
	}
	if got := count(s, `"a router misbehaves"`); got != 1 {
		t.Errorf("the log names it %d times", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := scripted.Connect(ctx, record.Options()); err == nil || !strings.Contains(err.Error(), "misbehaves") {
		t.Errorf("it connects again: %v", err)
	}
	said := audited(t, s, `event = "router-misbehaved"`)
	if e := said[0]; len(said) > 2 || e["actorId"] != record.ID || e["targetId"] != record.ID || e["outcome"] != "failed" || e["address"] != "127.0.0.1" || !strings.Contains(e["reason"].(string), "too-often: ") {
		t.Errorf("the audit log says %v", said)
	}
}

// TestShareOfDials has somebody dial what never answers, as often as a router may
// ask. Another dials through the same router.
func TestShareOfDials(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	hung, well := addNetwork(t, s), addNetwork(t, s)
	over := make(chan struct{})
	defer close(over)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Aside = true
		o.Route = func(m *message.Route) (wire.Headers, error) {
			if m.Tags["serviceId"] == hung.service {
				<-over
			}
			return nil, nil
		}
	})
	hung.hostOn(t, c, servertest.Unique("t"))
	well.hostOn(t, c, servertest.Unique("t"))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	refused := make(chan error, 600)
	for range 600 {
		all.Go(func() {
			_, _, err := c.Dial(ctx, hung.dialing, hung.dialer.Token, nil)
			refused <- err
		})
	}
	// Those that are too many are told at once: who has dialled before has half of the 512
	// places at most, and the others are free when all of these have been told.
	for range 600 - 512/2 {
		if err := <-refused; !isRefused(err, message.CodeInternal) {
			t.Fatalf("a dial too many: %v", err)
		}
	}
	for range 20 {
		if _, _, err := well.dialOn(t, c); err != nil {
			t.Fatalf("another's dial: %v", err)
		}
	}
	well.hostOn(t, c, servertest.Unique("t"))
}

// TestQuotaOfOthers has a router tell of as many links to another as it may. That
// one goes on making its own.
func TestQuotaOfOthers(t *testing.T) {
	s := servertest.Start(t)
	bad, victim := addRouter(t, s), addRouter(t, s)
	attacker, honest := bad.Connect(t), victim.Connect(t)
	third := addRouter(t, s)
	third.Connect(t)
	var made message.Links
	const many = 10_010
	for i := range many {
		made.Links = append(made.Links, message.Link{ID: fmt.Sprintf("invented-%d", i), Destination: victim.ID, Protocol: "tls", DialAddress: "tls:127.0.0.1:1", Iteration: 1})
	}
	flood(t, attacker, 1, func(int) *wire.Frame {
		return &wire.Frame{Type: message.TypeRouterLinks, Body: message.Marshal(&made)}
	})
	must(t, honest.Link(message.Link{ID: "own", Destination: third.ID, Protocol: "tls", DialAddress: "tls:127.0.0.1:1", Iteration: 1}))
	servertest.Eventually(t, patience, "the victim's own link is known", func() bool {
		return s.Admin(t).Get(fabricAPI+"links/own").Status == 200
	})
	if got := count(s, `"a router misbehaves"`); got != 1 || !s.Logged(`"detail":"it tells of more than 10000 links`) {
		t.Errorf("the log names somebody %d times", got)
	}
	for _, line := range s.Log() {
		if strings.Contains(line, "misbehaves") && !strings.Contains(line, bad.ID) {
			t.Errorf("the log blames another: %s", line)
		}
	}
	if got := count(s, `"link up"`); got > 700 {
		t.Errorf("%d lines tell of links", got)
	}
}

// TestRefusedDialers has hosts refuse dials. That is no fault of theirs, unlike a
// host that cannot be reached.
func TestRefusedDialers(t *testing.T) {
	s := servertest.Start(t)
	r, n := addRouter(t, s), addNetwork(t, s)
	codes := make(chan message.RouteError, 1)
	c := r.Connect(t, func(o *scripted.Options) {
		o.Route = func(*message.Route) (wire.Headers, error) {
			return wire.Headers{message.HeaderRouteErrorCode: {byte(<-codes)}}, errors.New("no")
		}
	})
	id := servertest.Unique("t")
	n.hostOn(t, c, id)
	costs := func(code message.RouteError) float64 {
		t.Helper()
		codes <- code
		if _, _, err := n.dialOn(t, c); err == nil {
			t.Fatal("it is connected")
		}
		return s.Admin(t).Get(management + "terminators/" + id).Want(200).Data()["dynamicCost"].(float64)
	}
	if got := costs(message.RouteRejected); got != 0 {
		t.Errorf("a host that refuses a dialer costs %v more", got)
	}
	if got := costs(message.RouteRefused); got == 0 {
		t.Error("a host that cannot be reached costs no more")
	}
}

// stranger is a certificate that nobody has issued.
func stranger(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestStrangersInTheLog has somebody whom nobody knows connect as routers do,
// again and again.
func TestStrangersInTheLog(t *testing.T) {
	s := servertest.Start(t)
	cfg := s.TLS()
	cfg.Certificates = []tls.Certificate{stranger(t)}
	cfg.NextProtos = []string{message.ALPN}
	address := strings.TrimPrefix(s.URL, "https://")
	const times = 150
	for range times {
		conn, err := tls.Dial("tcp", address, cfg)
		must(t, err)
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = conn.Read(make([]byte, 1000)) // until it is turned away
		_ = conn.Close()
	}
	if got := count(s, `"a router was not let in"`); got == 0 || got > times/2 {
		t.Errorf("%d lines tell of %d strangers", got, times)
	}
}
