package transit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
)

// TestAllow has configurations lead a host to where its own machine says that it
// may not go.
func TestAllow(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host, user := n.AddIdentity("host", n.Word+"host"), n.AddIdentity("user", n.Word+"user")
	open, closed, udp := page(t, "open"), page(t, "closed"), datagrams(t)
	port, other := portOf(open.Listener.Addr()), portOf(closed.Listener.Addr())
	leading(n, "good", at(open))
	_, moved := leading(n, "bad", at(closed))
	leading(n, "udp", M{"protocol": "udp", "address": "127.0.0.1", "port": portOf(udp.LocalAddr())})
	leading(n, "any", M{
		"protocol": "tcp", "forwardAddress": true, "allowedAddresses": []string{"0.0.0.0/0", "localhost", "*.invalid"},
		"forwardPort": true, "allowedPortRanges": []M{{"low": 1, "high": 65535}},
	})
	looked := at(open)
	looked["portChecks"] = []M{{"interval": "1s", "timeout": "5s", "address": closed.Listener.Addr().String(), "actions": []M{{"trigger": "fail", "action": "increase cost 5"}}}}
	looked["httpChecks"] = []M{{"interval": "1s", "timeout": "5s", "url": closed.URL, "actions": []M{{"trigger": "fail", "action": "increase cost 5"}}}}
	leading(n, "looked after", looked)

	hosting := tunnels(t, "host", "--identity", host.File, "--allow", fmt.Sprintf("127.0.0.0/8:%d/tcp", port), "--allow", "*.invalid:1")
	c := n.Client(user)
	const refusal = "the host may not reach where this leads to: its own list of targets (--allow) does not have it"
	// dial returns what a dial ends with: nothing, a refusal by the list, or
	// something else.
	dial := func(service, ip, hostname string, port int) string {
		data, _ := json.Marshal(M{"dst_protocol": "tcp", "dst_ip": ip, "dst_hostname": hostname, "dst_port": fmt.Sprint(port)})
		conn, err := c.Dial(within(t, networktest.Soon), n.Word+service, sdk.DialOptions{Data: data})
		switch {
		case err == nil:
			_ = conn.Close()
			return ""
		case strings.Contains(err.Error(), refusal):
			return "refused"
		}
		return err.Error()
	}
	becomes := func(service, want string) {
		t.Helper()
		n.Eventually(service+" is "+want, func() bool { return dial(service, "127.0.0.1", "", port) == want })
	}
	becomes("good", "")
	becomes("bad", "refused")
	becomes("udp", "refused")
	becomes("any", "")
	for _, test := range []struct {
		ip, hostname string
		port         int
		want         string
	}{
		{"127.0.0.1", "", other, "refused"},
		{"10.0.0.1", "", port, "refused"},
		{"0.0.0.0", "", other, "refused"},
		{"0.0.0.0", "", port, ""}, // which is 127.0.0.1
		{"", "localhost", port, ""},
		{"", "localhost", other, "refused"},
		{"", "some.invalid", 2, "refused"},
	} {
		if got := dial("any", test.ip, test.hostname, test.port); got != test.want && (test.want == "" || !strings.Contains(got, test.want)) {
			t.Errorf("%+v: %q", test, got)
		}
	}
	n.Eventually("checks of health do not reach it either", func() bool {
		return strings.Count(hosting.String(), "--allow does not list it") == 2
	})
	said := func(service, words string) int {
		var count int
		for line := range strings.Lines(hosting.String()) {
			if strings.Contains(line, n.Word+service) && strings.Contains(line, words) {
				count++
			}
		}
		return count
	}
	for range 5 {
		becomes("bad", "refused")
	}
	for _, service := range []string{"bad", "any", "udp"} {
		if got := said(service, "a target was refused that --allow does not list"); got != 1 {
			t.Errorf("it is said %d times of %s", got, service)
		}
	}
	n.Admin.Patch(networktest.Management+"configs/"+moved, M{"data": at(open)}).Want(200)
	becomes("bad", "")
	n.Eventually("it is counted", func() bool { return said("bad", "targets were refused that --allow does not list") == 1 })
	if !strings.Contains(hosting.String(), fmt.Sprintf("127.0.0.1:%d", other)) {
		t.Error("the log does not say which target it was")
	}
}
