package attack_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// addresses hands out loopback addresses, so that everybody has one that
// nobody else used before.
var addresses atomic.Uint32

func newAddress() net.IP {
	n := addresses.Add(1)
	return net.IPv4(127, 7, byte(n>>8), byte(n))
}

// from returns a dialer whose connections come from an address.
func from(address net.IP) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: address}, Timeout: 30 * time.Second}
}

// newHTTP returns a client at an address.
func newHTTP(t *testing.T, s *servertest.Server, address net.IP, change ...func(*http.Transport)) *http.Client {
	tr := &http.Transport{TLSClientConfig: s.TLS(), ForceAttemptHTTP2: true, DialContext: from(address).DialContext}
	for _, f := range change {
		f(tr)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// newConnection returns a client that has one connection, for all of its
// streams.
func newConnection(t *testing.T, s *servertest.Server, address net.IP, change ...func(*http.Transport)) *http.Client {
	t.Helper()
	c := newHTTP(t, s, address, change...)
	c.Timeout = 0
	if status, _, err := (request{"GET", "/version", "", ""}).send(t.Context(), s, c); status != 200 {
		t.Fatalf("status %d, %v", status, err)
	}
	return c
}

// oneShot has a client connect anew for every request.
func oneShot(tr *http.Transport) { tr.DisableKeepAlives = true }

// dialTLS opens a connection on which a test writes HTTP/1.1 itself.
func dialTLS(ctx context.Context, s *servertest.Server, address net.IP) (net.Conn, error) {
	return (&tls.Dialer{NetDialer: from(address), Config: s.TLS()}).DialContext(ctx, "tcp", s.Address())
}

// request is something that is asked.
type request struct {
	method, path, token, body string
}

// send sends a request and returns the status of the answer.
func (r request) send(ctx context.Context, s *servertest.Server, c *http.Client) (int, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, s.URL+r.path, strings.NewReader(r.body))
	if err != nil {
		return 0, nil, err
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("net-session", r.token)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header, err
}

// login is the body of somebody who shows a password.
func login(username, password string) string {
	return fmt.Sprintf(`{"username":%q,"password":%q}`, username, password)
}

const byPassword = "/edge/client/v1/authenticate?method=password"

// person asks the same again and again, and notes how it fares.
type person struct {
	name  string
	every time.Duration
	soon  time.Duration                   // that is soon enough
	tries int                             // to find out how long an answer usually takes
	ask   func(ctx context.Context) error // nil if it was answered well

	usual time.Duration // that an answer takes
	took  []time.Duration
	bad   []error
}

// asks is a person who expects a status.
func asks(t *testing.T, name string, s *servertest.Server, r request, want int, change ...func(*http.Transport)) *person {
	c := newHTTP(t, s, newAddress(), change...)
	return &person{name: name, every: 20 * time.Millisecond, soon: prompt, tries: 3, ask: func(ctx context.Context) error {
		got, _, err := r.send(ctx, s, c)
		if err == nil && got != want {
			err = fmt.Errorf("status %d", got)
		}
		return err
	}}
}

// others are people of every kind: strangers who ask and who log in, members,
// admins who read and who write.
func others(t *testing.T, s *servertest.Server) []*person {
	t.Helper()
	admin := s.Login(t, servertest.Username, servertest.Password).Token
	user := s.AddUser(t, false)
	member := s.Login(t, user.Username, user.Password).Token
	enters := asks(t, "logs in", s, request{"POST", byPassword, "", login(user.Username, user.Password)}, 200, oneShot)
	enters.every = 200 * time.Millisecond
	return []*person{
		enters,
		asks(t, "stranger", s, request{"GET", "/edge/client/v1/version", "", ""}, 200, oneShot),
		asks(t, "guest", s, request{"POST", "/edge/client/v1/authenticate?method=cert", "", "{}"}, 401),
		asks(t, "member", s, request{"GET", "/edge/client/v1/current-identity", member, ""}, 200),
		asks(t, "member who writes", s, request{"POST", "/edge/client/v1/posture-response", member, `{"typeId":"OS","id":"x","type":"Linux","version":"1"}`}, 201),
		asks(t, "admin", s, request{"GET", "/edge/management/v1/identities", admin, ""}, 200, oneShot),
		asks(t, "admin who writes", s, request{"PATCH", "/edge/management/v1/identities/" + user.ID, admin, `{"tags":{}}`}, 200),
	}
}

// control is somebody who asks another server in the same process, which nobody
// attacks: what that takes is the machine's doing.
func control(t *testing.T) *person {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	c := s.Client()
	oneShot(c.Transport.(*http.Transport))
	return &person{name: "control", every: 50 * time.Millisecond, ask: func(ctx context.Context) error {
		resp, err := c.Get(s.URL)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}}
}

// goAbout has a person ask until ctx ends.
func (p *person) goAbout(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		start := time.Now()
		// What has begun is finished: the end of the test is no failure.
		err := p.ask(context.WithoutCancel(ctx))
		p.took = append(p.took, time.Since(start))
		if err != nil {
			p.bad = append(p.bad, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// settle finds out how long an answer usually takes on this machine, with
// whatever else it has to do.
func (p *person) settle(t *testing.T) {
	t.Helper()
	var took []time.Duration
	for range max(1, p.tries) {
		start := time.Now()
		if err := p.ask(t.Context()); err != nil {
			t.Errorf("%s gets no good answer when all is quiet: %v", p.name, err)
			return
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	p.usual = took[len(took)/2]
}

// while has people go about their work during an attack. The attack says when
// it is under way, and ends with its context.
func while(t *testing.T, s *servertest.Server, attack func(ctx context.Context, ready func()), people []*person) {
	t.Helper()
	var settled sync.WaitGroup
	for _, p := range people {
		settled.Go(func() { p.settle(t) })
	}
	settled.Wait()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	ready := make(chan struct{})
	all.Go(func() { attack(ctx, sync.OnceFunc(func() { close(ready) })) })
	select {
	case <-ready:
	case <-time.After(4 * time.Minute): // an attacker may get what others leave of a machine
		t.Error("the attack does not get under way")
	}
	during, end := context.WithTimeout(ctx, time.Duration(*seconds*float64(time.Second)))
	defer end()
	var working sync.WaitGroup
	idle := control(t)
	for _, p := range append(people, idle) {
		working.Go(func() { p.goAbout(during) })
	}
	working.Wait()
	stop()
	all.Wait()
	judge(t, people, slices.Max(idle.took))
}

// judge looks at how people fared, on a machine that took so long for what
// nobody attacks.
func judge(t *testing.T, people []*person, machine time.Duration) {
	t.Helper()
	t.Logf("the machine takes up to %v for anything", machine.Round(time.Millisecond))
	asked, well := 0, 0
	for _, p := range people {
		// A machine that is busy with something else takes longer for everything.
		soon, late := p.soon+10*p.usual+5*machine, 0
		for _, took := range p.took {
			if took > soon {
				late++
			}
		}
		slices.Sort(p.took)
		good := max(0, len(p.took)-len(p.bad)-late)
		asked, well = asked+len(p.took), well+good
		t.Logf("%-18s asked %3d times: %5.1f %% answered well, p99 %v, usually %v", p.name, len(p.took),
			100*float64(good)/float64(len(p.took)), p.took[len(p.took)*99/100].Round(time.Millisecond), p.usual.Round(time.Millisecond))
		if len(p.bad) > 0 {
			t.Logf("%-18s the first of %d that failed: %v", p.name, len(p.bad), p.bad[0])
		}
	}
	share := float64(well) / float64(asked)
	t.Logf("%d of %d requests are answered well: %.1f %%", well, asked, 100*share)
	if share < enough {
		t.Errorf("%.1f %% of what others ask is answered well and soon, want %.0f %%", 100*share, 100*enough)
	}
}
