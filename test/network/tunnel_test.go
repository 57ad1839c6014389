package network

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// addTunnelRouter adds a router that would be a client itself, and is allowed to
// after it has begun.
func (n *network) addTunnelRouter(name, options string) *router {
	n.t.Helper()
	listener := fmt.Sprintf("  - {binding: tunnel, options: {svcPollRate: 1s, %s}}\nedge:\n", options)
	r := n.addRouterAs(M{"name": name}, strings.Replace(routerConfig, "edge:\n", listener, 1))
	if !slices.Contains(n.flags, bearing) { // one that goes by the model waits, and asks for nothing
		n.control.says(n.t, "may not be a client has a tunnel listener\" router="+r.id, 0)
	}
	n.call("PATCH", "edge-routers/"+r.id, M{"isTunnelerEnabled": true})
	return r
}

// bearing has a controller let clients log in by OpenID Connect. Routers of 1.6 go by the
// data model then.
const bearing = "--oidc-enabled=true"

// hosted makes a service that leads to an address and is hosted by somebody.
func (n *network) hosted(name, by string, at net.Addr) (policy string) {
	n.t.Helper()
	config := n.create("configs", M{
		"name": name, "configTypeId": "NH5p4FpGR", // host.v1
		"data": M{"protocol": "tcp", "address": "127.0.0.1", "port": at.(*net.TCPAddr).Port},
	})
	service := n.create("services", M{"name": name, "encryptionRequired": true, "configs": []string{config}})
	return n.create("service-policies", M{
		"name": by + " hosts " + name, "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{by}, "serviceRoles": []string{"@" + service},
	})
}

// page is where a page with some words is.
func page(t *testing.T, words string) net.Addr {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, words) }))
	t.Cleanup(server.Close)
	return server.Listener.Addr()
}

// echo is where everything is sent back.
func echo(t *testing.T) net.Addr {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr()
}

// read returns the page at an address.
func read(address string) (string, error) {
	browser := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	resp, err := browser.Get("http://" + address)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// reads waits until a page can be read.
func (n *network) reads(address, words string) {
	n.t.Helper()
	began := time.Now()
	n.eventually(words, func() bool {
		text, err := read(address)
		return err == nil && text == words
	})
	n.t.Logf("%s: after %v", words, time.Since(began).Round(time.Millisecond))
}

// TestTunnelers has routers and tunnelers host services and dial those of each
// other, before clients may log in by OpenID Connect and then.
func TestTunnelers(t *testing.T) {
	for name, flags := range map[string][]string{"by themselves": nil, "by the model": {bearing}} {
		t.Run(name, func(t *testing.T) { hostEachOther(t, newNetwork(t, flags...)) })
	}
}

func hostEachOther(t *testing.T, n *network) {
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	n.everyone()
	n.create("service-policies", M{"name": "all", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}})
	host, dialer := n.addIdentity("host"), n.addIdentity("dialer")
	n.hosted("at-tunneler", "#host", page(t, "from a tunneler to a router"))
	toRouter, toTunneler, added := free(t), free(t), free(t)
	hosting := n.addTunnelRouter("hosting", "mode: host")
	policy := n.hosted("at-router", "@"+hosting.id, page(t, "from a router to a tunneler"))
	n.hosted("echo", "@"+hosting.id, echo(t))
	n.addTunnelRouter("dialling", fmt.Sprintf(`mode: proxy, services: ["at-tunneler:%s"]`, portOf(t, toRouter)))
	// One that finds no router tries again after most of a minute.
	start(t, n.dir, nil, programs.ziti, "tunnel", "host", "--svcPollRate", "1", "-i", host)
	start(t, n.dir, nil, programs.ziti, "tunnel", "proxy", "--svcPollRate", "1", "-i", dialer, "at-router:"+portOf(t, toTunneler), "added:"+portOf(t, added))

	n.reads(toTunneler, "from a router to a tunneler")
	n.reads(toRouter, "from a tunneler to a router")
	line, err := n.dial(dialer, "echo", 1<<20, 10)
	if err != nil {
		t.Fatalf("an application dials the router: %v", err)
	}
	t.Log(line)
	n.hosted("added", "@"+hosting.id, page(t, "a service that came later"))
	n.reads(added, "a service that came later")

	n.call("DELETE", "service-policies/"+policy, nil)
	gone := time.Now()
	n.eventually("it is no longer hosted", func() bool {
		_, err := read(toTunneler)
		return err != nil
	})
	if took := time.Since(gone); took > 2*time.Second {
		t.Errorf("the router hosts %v after its policy is gone", took)
	}
	if text, err := read(added); err != nil || text != "a service that came later" {
		t.Errorf("another service is gone as well: %q, %v", text, err)
	}

	session := hosting.apiSession()
	n.call("DELETE", "api-sessions/"+session, nil)
	n.eventually("the router has another API session", func() bool {
		now := hosting.apiSession()
		return now != "" && now != session
	})
	n.reads(added, "a service that came later")
	session = hosting.apiSession()
	n.control.kill(syscall.SIGKILL)
	n.startController()
	n.login()
	n.reads(added, "a service that came later")
	if now := hosting.apiSession(); now != session {
		t.Errorf("the router had the API session %s and now has %s", session, now)
	}
}

// apiSession is the one that a router has as a client; empty if it has none.
func (r *router) apiSession() string {
	r.n.t.Helper()
	all := r.n.list("api-sessions?filter=" + url.QueryEscape(fmt.Sprintf("identityId=%q", r.id)))
	if len(all) == 0 {
		return ""
	}
	if len(all) > 1 {
		r.n.t.Fatalf("the router has %d API sessions", len(all))
	}
	return all[0]["id"].(string)
}
