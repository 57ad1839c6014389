package cluster_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/run/cli"
	"netkeep.internal/overlay"
	"netkeep.internal/test/journal"
	"netkeep.internal/test/machine"
)

// cutWithin is how long after the moment a connection may last.
const cutWithin = 2 * time.Second

// TestConnectionsOfThreeEnd has connections run through a router of three controllers
// when the grant ends that they rest on. The controller that leads, which has made them,
// is killed right before, and another sleeps, so that nobody can write that it is over:
// they are soon after the moment, and not before it.
func TestConnectionsOfThreeEnd(t *testing.T) {
	atOnce(t)
	c := newTeam(t)
	leader := c.leader(t)
	admin, asleep := c.others(leader)[0], c.others(leader)[1]
	dir := t.TempDir()
	create := func(path string, body M) string {
		t.Helper()
		var made struct {
			Data struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		if status, text := admin.hear(http.MethodPost, path, body, &made); status != http.StatusCreated {
			t.Fatalf("%s is answered %d: %s", path, status, text)
		}
		return made.Data.ID
	}
	all := []string{"#all"}
	create("edge-router-policies", M{"name": "all", "semantic": "AnyOf", "identityRoles": all, "edgeRouterRoles": all})
	create("service-edge-router-policies", M{"name": "all", "semantic": "AnyOf", "serviceRoles": all, "edgeRouterRoles": all})
	create("services", M{"name": "payroll", "encryptionRequired": true})
	bob, host := c.person(t, admin, dir, "bob", create), c.person(t, admin, dir, "host", create)
	create("service-policies", M{"name": "finance", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#finance"}, "serviceRoles": all})
	create("service-policies", M{"name": "hosts", "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"@" + host.id}, "serviceRoles": all})
	grant := create("grants", M{"identityId": bob.id, "attribute": "finance", "reason": "quarter end", "validUntil": "2999-12-31T23:59:59Z"})
	c.route(t, admin, dir, create)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var listener *sdk.Listener
	c.eventually(t, "somebody to host", func() (ok bool) {
		var err error
		listener, err = host.open(t).Listen(ctx, "payroll", sdk.ListenOptions{})
		return err == nil
	})
	go talk(listener)
	user := bob.open(t)
	const connections = 9
	over := make(chan time.Time, connections)
	for range connections {
		var conn *sdk.Conn
		c.eventually(t, "a connection", func() (ok bool) {
			var err error
			conn, err = user.Dial(ctx, "payroll", sdk.DialOptions{})
			return err == nil
		})
		t.Cleanup(func() { conn.Close() })
		if _, err := io.ReadFull(conn, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			over <- time.Now()
		}()
	}
	makers := map[string]int{}
	for _, n := range c.nodes {
		makers[fmt.Sprint(n.n)] = n.carries(t)
	}
	moment := time.Now().Add(4 * time.Second).UTC().Truncate(time.Millisecond)
	if status, text := admin.hear(http.MethodPatch, "grants/"+grant, M{"validUntil": moment.Format(time.RFC3339Nano)}, nil); status != http.StatusOK {
		t.Fatalf("the end is answered %d: %s", status, text)
	}
	<-time.After(time.Until(moment.Add(-200 * time.Millisecond)))
	asleep.signal(syscall.SIGSTOP)
	leader.kill()
	<-time.After(time.Until(moment))
	watch := machine.Begin(t)
	var last time.Duration
	for i := range connections {
		select {
		case at := <-over:
			if at.Before(moment) {
				t.Errorf("a connection ended %s before the moment", moment.Sub(at))
			}
			last = max(last, at.Sub(moment))
		case <-time.After(patience):
			t.Fatalf("%d of %d connections go on %s after the moment", connections-i, connections, time.Since(moment))
		}
	}
	_, most := watch.Took(cutWithin)
	t.Logf("the last of %d connections ended %s after the moment (made by %v, %d was killed)", connections, last, makers, leader.n)
	if last > most {
		t.Errorf("the last connection ended %s after the moment, at most %s", last, most)
	}
	asleep.signal(syscall.SIGCONT)
	if _, err := user.Dial(ctx, "payroll", sdk.DialOptions{}); err == nil {
		t.Error("bob connects after the moment")
	}
}

// talk says something on every connection, for as long as it lasts.
func talk(l *sdk.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for {
				if _, err := conn.Write(make([]byte, 1000)); err != nil {
					return
				}
				<-time.After(10 * time.Millisecond)
			}
		}()
	}
}

// person is somebody who has enrolled.
type person struct{ id, file string }

// person makes somebody.
func (c *team) person(t *testing.T, at *node, dir, name string, create func(string, M) string) person {
	t.Helper()
	p := person{create("identities", M{"name": name, "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}), filepath.Join(dir, name+".json")}
	var list struct {
		Data []struct {
			JWT string `json:"jwt"`
		} `json:"data"`
	}
	if status := at.ask(http.MethodGet, "identities/"+p.id+"/enrollments", nil, &list); status != http.StatusOK || len(list.Data) != 1 {
		t.Fatalf("the invitation of %s is answered %d", name, status)
	}
	if err := overlay.Enroll(t.Context(), list.Data[0].JWT, p.file); err != nil {
		t.Fatal(err)
	}
	return p
}

// open has somebody log in.
func (p person) open(t *testing.T) *sdk.Client {
	t.Helper()
	c, err := sdk.Open(t.Context(), sdk.Options{Identity: p.file, Now: time.Now, Poll: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// route runs a router of all three.
func (c *team) route(t *testing.T, at *node, dir string, create func(string, M) string) {
	t.Helper()
	id := create("edge-routers", M{"name": "router"})
	var made struct {
		Data struct {
			JWT string `json:"enrollmentJwt"`
		} `json:"data"`
	}
	if status := at.ask(http.MethodGet, "edge-routers/"+id, nil, &made); status != http.StatusOK {
		t.Fatalf("the router is answered %d", status)
	}
	home := filepath.Join(dir, "router")
	if code, text := command(t, dir, "router", "enroll", made.Data.JWT, "--data", home, "--listen", "127.0.0.1:0", "--advertise", "localhost", "--metrics-listen", "off"); code != 0 {
		t.Fatal(text)
	}
	ended, said := make(chan struct{}), new(journal.Journal)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		cli.Main(ctx, cli.Env{
			Program: "netkeep", Args: []string{"router", "run", "--data", home}, Environ: []string{"HOME=" + dir},
			Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: said, Now: time.Now,
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("the router logged:\n%s", said)
		}
	})
	for _, n := range c.nodes {
		c.eventually(t, fmt.Sprintf("the router at controller %d", n.n), func() bool {
			var is struct {
				Data struct {
					Online bool `json:"isOnline"`
				} `json:"data"`
			}
			return n.ask(http.MethodGet, "edge-routers/"+id, nil, &is) == http.StatusOK && is.Data.Online
		})
	}
}

// carries is how many circuits a controller has made.
func (n *node) carries(t *testing.T) int {
	t.Helper()
	var list struct {
		Meta struct {
			Pagination struct {
				Total int `json:"totalCount"`
			} `json:"pagination"`
		} `json:"meta"`
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+n.listen+"/fabric/v1/circuits", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("zt-session", n.token)
	resp, err := n.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.UnmarshalRead(resp.Body, &list); err != nil {
		t.Fatal(err)
	}
	return list.Meta.Pagination.Total
}
