package tunneler

import (
	"bytes"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/client/intercept"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/tun"
)

// offered is a service that somebody may dial.
func offered(id, name, config string) *sdk.Service {
	return &sdk.Service{ID: id, Name: name, Dial: true, Config: map[string]jsontext.Value{intercept.Type: jsontext.Value(config)}}
}

// TestOffers has services come and go, of several identities: who has which
// address, what leads to the device, and whose connections end.
func TestOffers(t *testing.T) {
	var log bytes.Buffer
	tunneler := &Tunneler{log: slog.New(slog.NewTextHandler(&log, nil)), opt: Options{Now: time.Now}}
	i, err := newInterceptor(t.Context(), tunneler, netip.MustParsePrefix("100.64.0.0/10"))
	if err != nil {
		t.Fatal(err)
	}
	var routes []tun.Route
	i.lead = func(want []tun.Route) error {
		routes = want
		return nil
	}
	var first, second sdk.Client
	web := offered("s1", "web", `{"addresses":["web.corp","*.apps.corp","192.0.2.0/24"],"portRanges":[{"low":80,"high":81}],"protocols":["tcp"]}`)
	one := offered("s2", "one", `{"addresses":["192.0.2.7"],"portRanges":[{"low":80,"high":80}],"protocols":["tcp","udp"],"allowedSourceAddresses":["100.64.0.1"]}`)
	hosts := offered("s3", "hosts", `{"addresses":["hosts.corp"],"portRanges":[{"low":22,"high":22}],"protocols":["tcp"]}`)
	hosts.Dial = false
	i.offer(&first, "laptop", []*sdk.Service{web, hosts})
	i.offer(&second, "phone", []*sdk.Service{one, web})

	from := netip.MustParseAddrPort("100.64.0.1:4000")
	at := func(protocol, to string) string {
		t.Helper()
		where, err := netip.ParseAddrPort(to)
		if err != nil {
			name, port, _ := strings.Cut(to, ":")
			ip, err := i.pool.Addr(name)
			if err != nil {
				t.Fatal(err)
			}
			where = netip.MustParseAddrPort(ip.String() + ":" + port)
		}
		a := i.find(protocol, from, where)
		if a == nil {
			return ""
		}
		defer a.release()
		return strings.TrimSpace(a.rule.Service + " " + wayOf(a.rule).who + " " + a.name)
	}
	for _, c := range []struct{ protocol, to, want string }{
		{"tcp", "web.corp:80", "web laptop web.corp"},
		{"tcp", "a.apps.corp:81", "web laptop a.apps.corp"},
		{"tcp", "web.corp:82", ""},
		{"udp", "web.corp:80", ""},
		{"tcp", "192.0.2.9:80", "web laptop"},
		{"tcp", "192.0.2.7:80", "one phone"},
		{"tcp", "192.0.2.7:81", "web laptop"},
		{"udp", "192.0.2.7:80", "one phone"},
		{"tcp", "hosts.corp:22", ""},
		{"tcp", "100.99.0.1:80", ""}, // an address that no name has
	} {
		if got := at(c.protocol, c.to); got != c.want {
			t.Errorf("%s %s is for %q, not %q", c.protocol, c.to, got, c.want)
		}
	}
	from = netip.MustParseAddrPort("10.0.0.9:4000")
	if got := at("udp", "192.0.2.7:80"); got != "" {
		t.Errorf("who may not come from there gets %s", got)
	}
	from = netip.MustParseAddrPort("100.64.0.1:4000")
	block, ip := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.0.2.7/32")
	want := []tun.Route{{Block: block, Protocol: "tcp", Low: 80, High: 81}, {Block: ip, Protocol: "tcp", Low: 80, High: 80}, {Block: ip, Protocol: "udp", Low: 80, High: 80}}
	if !slices.Equal(routes, want) {
		t.Errorf("to the device lead %v", routes)
	}
	if !strings.Contains(log.String(), "several services want the same address") {
		t.Errorf("nothing was said of 192.0.2.7:\n%s", log.String())
	}

	// What moves away ends; what has its name does not.
	ended, leave := make(chan string, 3), map[string]func(){}
	for _, to := range []string{"192.0.2.7:80", "192.0.2.9:80"} {
		a := i.find("tcp", from, netip.MustParseAddrPort(to))
		leave[to] = i.guests.hold(a, func() { ended <- to })
	}
	defer leave["192.0.2.9:80"]()
	name, _ := i.pool.Addr("web.corp")
	a := i.find("tcp", from, netip.AddrPortFrom(name, 80))
	defer i.guests.hold(a, func() { ended <- "web.corp" })()
	i.offer(&second, "phone", []*sdk.Service{web})
	if got := <-ended; got != "192.0.2.7:80" {
		t.Errorf("the connection to %s ended", got)
	}
	leave["192.0.2.7:80"]() // as connections do that have ended
	if got := at("tcp", "192.0.2.7:80"); got != "web laptop" {
		t.Errorf("what is left has %q", got)
	}
	i.offer(&first, "laptop", nil)
	if got := at("tcp", "192.0.2.7:80"); got != "web phone" {
		t.Errorf("who is left has %q", got)
	}
	if len(ended) > 0 {
		t.Errorf("the connection to %s ended too", <-ended)
	}
	i.offer(&second, "phone", nil)
	if len(routes) != 0 || at("tcp", "web.corp:80") != "" {
		t.Errorf("something is left: %v", routes)
	}
}
