package transit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/run/cli"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/networktest"
)

// tunnel is a tunneler that runs, as a command.
type tunnel struct {
	mu   sync.Mutex
	text bytes.Buffer
	stop context.CancelFunc
	done chan struct{}
	code int
}

func (c *tunnel) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *tunnel) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// tunnels runs netkeep tunnel until the test ends.
func tunnels(t *testing.T, args ...string) *tunnel {
	t.Helper()
	c := &tunnel{done: make(chan struct{})}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	go func() {
		defer close(c.done)
		c.code = cli.Main(ctx, cli.Env{Args: append([]string{"tunnel", "--poll", "100ms"}, args...), Stdin: strings.NewReader(""), Stdout: c, Stderr: c, Now: time.Now})
	}()
	t.Cleanup(func() {
		c.end()
		if t.Failed() {
			t.Logf("tunnel %s said:\n%s", strings.Join(args, " "), c)
		}
	})
	return c
}

func (c *tunnel) end() {
	c.stop()
	<-c.done
}

// leading makes a service with a configuration, and returns both ids.
func leading(n *networktest.Network, name string, config M) (service, configID string) {
	n.T.Helper()
	post := func(kind string, body M) string {
		return n.Admin.Post(networktest.Management+kind, body).Want(201).ID()
	}
	configID = post("configs", M{"name": n.Word + name, "configTypeId": "NH5p4FpGR", "data": config}) // host.v1
	service = post("services", M{"name": n.Word + name, "encryptionRequired": true, "roleAttributes": []string{n.Word}, "configs": []string{configID}})
	for typ, who := range map[string]string{"Dial": "user", "Bind": "host"} {
		post("service-policies", M{"name": n.Word + name + typ, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#" + n.Word + who}, "serviceRoles": []string{"@" + service}})
	}
	return service, configID
}

// page is a server of some words.
func page(t *testing.T, words string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, words) }))
	t.Cleanup(s.Close)
	return s
}

func portOf(a net.Addr) int {
	if udp, ok := a.(*net.UDPAddr); ok {
		return udp.Port
	}
	return a.(*net.TCPAddr).Port
}

func at(s *httptest.Server) M {
	return M{"protocol": "tcp", "address": "127.0.0.1", "port": portOf(s.Listener.Addr())}
}

// freePort is one that nothing listens on, of either sort.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := strconv.Atoi(machine.Port(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// read is what a page at a local port says.
func read(port int) string {
	c := &http.Client{Timeout: networktest.Soon / 4, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body)
}

// datagrams is where every datagram is sent back.
func datagrams(t *testing.T) net.PacketConn {
	t.Helper()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = u.WriteTo(buf[:n], from)
		}
	}()
	return u
}

// answers takes what it is sent until the end, and only then answers with how
// much that was.
func answers(t *testing.T) net.Listener {
	t.Helper()
	return server(t, func(conn net.Conn) {
		n, _ := io.Copy(io.Discard, conn)
		fmt.Fprintf(conn, "%d bytes", n)
	})
}

// server has each who connects dealt with, until the test ends.
func server(t *testing.T, deal func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				deal(conn)
			}()
		}
	}()
	return l
}

// TestTunnel brings servers and programs into a network that know nothing of
// it, and changes what leads where while the tunnels run.
func TestTunnel(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host, user := n.AddIdentity("host", n.Word+"host"), n.AddIdentity("user", n.Word+"user")
	first, second := page(t, "first"), page(t, "second")
	_, webConfig := leading(n, "web", at(first))
	udp, tcp := datagrams(t), answers(t)
	leading(n, "dns", M{"protocol": "udp", "address": "127.0.0.1", "port": portOf(udp.LocalAddr())})
	leading(n, "half", M{"protocol": "tcp", "address": "127.0.0.1", "port": portOf(tcp.Addr())})

	damaged := host.File + ".damaged"
	if err := os.WriteFile(damaged, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	hosting := tunnels(t, "host", "--identity", host.File, "--identity", damaged)
	web, late, dns, half := freePort(t), freePort(t), freePort(t), freePort(t)
	taken := portOf(first.Listener.Addr())
	proxy := tunnels(t, "proxy", "--identity", user.File, "--verbose",
		fmt.Sprintf("%sweb:%d", n.Word, web), fmt.Sprintf("%sdns:%d/udp", n.Word, dns), fmt.Sprintf("%shalf:%d", n.Word, half),
		fmt.Sprintf("%slate:%d", n.Word, late), fmt.Sprintf("%sweb:%d", n.Word, taken))
	n.Eventually("the page is there", func() bool { return read(web) == "first" })

	t.Run("what cannot be done is said, and the rest goes on", func(t *testing.T) {
		for where, want := range map[*tunnel]string{
			hosting: "is no file of an identity that has enrolled; make one with: netkeep enroll TOKEN -o FILE",
			proxy:   "something else listens there: stop it, or choose another port",
		} {
			if got := strings.Count(where.String(), want); got != 1 {
				t.Errorf("%q is said %d times in:\n%s", want, got, where)
			}
		}
	})
	t.Run("datagrams", func(t *testing.T) {
		conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", dns))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, size := range []int{1, 1400, 60_000} {
			sent, got := bytesOf(uint64(size), size), make([]byte, 1<<16)
			n.Eventually("a datagram comes back", func() bool {
				_, _ = conn.Write(sent)
				_ = conn.SetReadDeadline(time.Now().Add(time.Second))
				m, err := conn.Read(got)
				return err == nil && bytes.Equal(got[:m], sent)
			})
		}
	})
	t.Run("half close", func(t *testing.T) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", half))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(networktest.Soon))
		if _, err := io.Copy(conn, bytes.NewReader(bytesOf(1, 1_000_000))); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); string(got) != "1000000 bytes" || err != nil {
			t.Errorf("the answer is %q, %v", got, err)
		}
	})
	t.Run("a service that comes later, changes and goes", func(t *testing.T) {
		service, _ := leading(n, "late", at(first))
		n.Eventually("it is there", func() bool { return read(late) == "first" })
		n.Admin.Patch(networktest.Management+"configs/"+webConfig, M{"data": at(second)}).Want(200)
		n.Eventually("it leads elsewhere", func() bool { return read(web) == "second" })
		if got := read(late); got != "first" {
			t.Errorf("another service says %q", got)
		}
		n.Admin.Delete(networktest.Management + "services/" + service).Want(200)
		n.Eventually("it is gone", func() bool { return strings.Contains(read(late), "EOF") || strings.Contains(read(late), "reset") })
		n.Eventually("it is said", func() bool {
			read(late)
			return strings.Contains(proxy.String(), "is offered no service "+n.Word+"late")
		})
	})
	t.Run("a server that is away", func(t *testing.T) {
		second.Close()
		n.Eventually("it is said", func() bool {
			read(web)
			return strings.Contains(hosting.String(), "the server behind the service cannot be reached: ")
		})
		if strings.Contains(proxy.String(), fmt.Sprint(portOf(second.Listener.Addr()))) {
			t.Error("a dialer is told where a service leads to")
		}
	})
	for _, c := range []*tunnel{hosting, proxy} {
		if c.end(); c.code != 0 || !strings.Contains(c.String(), "stopped") {
			t.Errorf("it ended with code %d", c.code)
		}
	}
}

// TestForwarded has dialers say where they want to be led, and lists say where
// they may.
func TestForwarded(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host, user := n.AddIdentity("host", n.Word+"host"), n.AddIdentity("user", n.Word+"user")
	open, closed := page(t, "open"), page(t, "closed")
	port := portOf(open.Listener.Addr())
	leading(n, "any", M{
		"forwardProtocol": true, "allowedProtocols": []string{"tcp"}, "forwardAddress": true, "allowedAddresses": []string{"127.0.0.0/24", "*.localhost"},
		"forwardPort": true, "allowedPortRanges": []M{{"low": port, "high": port}},
	})
	leading(n, "one", M{"protocol": "tcp", "address": "127.0.0.1", "port": port, "listenOptions": M{"maxConnections": 1, "cost": 77, "precedence": "required", "bindUsingEdgeIdentity": true}})
	tunnels(t, "host", "--identity", host.File)
	c := n.Client(user)
	dial := func(service string, data M, opt sdk.DialOptions) (*sdk.Conn, error) {
		opt.Data, _ = json.Marshal(data)
		return c.Dial(within(t, networktest.Soon), n.Word+service, opt)
	}
	good := M{"dst_protocol": "tcp", "dst_ip": "127.0.0.1", "dst_port": fmt.Sprint(port)}
	n.Eventually("it is hosted", func() bool {
		conn, err := dial("any", good, sdk.DialOptions{})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	for name, bad := range map[string]M{
		"allowedPortRanges": {"dst_protocol": "tcp", "dst_ip": "127.0.0.1", "dst_port": fmt.Sprint(portOf(closed.Listener.Addr()))},
		"allowedAddresses":  {"dst_protocol": "tcp", "dst_ip": "127.0.1.1", "dst_port": fmt.Sprint(port)},
		"allowedProtocols":  {"dst_protocol": "udp", "dst_ip": "127.0.0.1", "dst_port": fmt.Sprint(port)},
	} {
		if conn, err := dial("any", bad, sdk.DialOptions{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v, %v", bad, conn, err)
		}
	}

	var first *sdk.Conn
	n.Eventually("the other is hosted, under the name of the identity", func() bool {
		var err error
		first, err = dial("one", nil, sdk.DialOptions{Instance: host.Name})
		return err == nil
	})
	if _, err := dial("one", nil, sdk.DialOptions{Instance: host.Name}); err == nil || !strings.Contains(err.Error(), "as many connections as may be are open") {
		t.Errorf("a second connection: %v", err)
	}
	_ = first.Close()
	n.Eventually("there is room again", func() bool {
		conn, err := dial("one", nil, sdk.DialOptions{Instance: host.Name})
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	stands := standing(n, "one")
	if stands["cost"] != 77.0 || stands["precedence"] != "required" || stands["identity"] != host.Name {
		t.Errorf("it is hosted as %v", stands)
	}
}

// standing is how a service is hosted.
func standing(n *networktest.Network, service string) M {
	n.T.Helper()
	list := n.Admin.Get(networktest.Management + `terminators?filter=` + `service.name%3D%22` + n.Word + service + `%22`).Want(200).List()
	if len(list) != 1 {
		return nil
	}
	return list[0]
}

// TestHealth has a server go and come back that is looked after.
func TestHealth(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host := n.AddIdentity("host", n.Word+"host")
	server := page(t, "well")
	address := server.Listener.Addr().String()
	config := at(server)
	config["portChecks"] = []M{{"interval": "50ms", "timeout": "5s", "address": address, "actions": []M{
		{"trigger": "fail", "consecutiveEvents": 2, "action": "mark unhealthy"}, {"trigger": "pass", "action": "mark healthy"},
	}}}
	config["httpChecks"] = []M{{"interval": "50ms", "timeout": "5s", "url": "http://" + address, "expectInBody": "well", "actions": []M{
		{"trigger": "change", "action": "increase cost 5"},
	}}}
	leading(n, "looked after", config)
	c := tunnels(t, "host", "--identity", host.File)
	is := func(precedence string, cost float64) func() bool {
		return func() bool {
			s := standing(n, "looked%20after")
			return s != nil && s["precedence"] == precedence && s["cost"] == cost
		}
	}
	n.Eventually("it is hosted", is("default", 5))
	server.Close()
	n.Eventually("it is out", func() bool { s := standing(n, "looked%20after"); return s != nil && s["precedence"] == "failed" })
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") }))
	_ = again.Listener.Close()
	again.Listener = l
	again.Start()
	defer again.Close()
	n.Eventually("it is back", func() bool { s := standing(n, "looked%20after"); return s != nil && s["precedence"] == "default" })
	if said := c.String(); strings.Count(said, "a check of health fails") != 2 {
		t.Errorf("what fails is not said once each:\n%s", said)
	}
}

// TestPortToNothing has a port for a service that there is not: that is said, and
// that it leads somewhere only once it does.
func TestPortToNothing(t *testing.T) {
	n := networktest.New(t, shared)
	user := n.AddIdentity("user")
	service := n.AddService("there", true)
	missing := service + "-later"
	c := tunnels(t, "proxy", "--identity", user.File, fmt.Sprintf("%s:%d", service, freePort(t)), fmt.Sprintf("%s:%d", missing, freePort(t)))
	says := func(service, text string) bool {
		for line := range strings.Lines(c.String()) {
			if strings.Contains(line, `"service":"`+service+`"`) && strings.Contains(line, text) {
				return true
			}
		}
		return false
	}
	const leads, nobody = "a port leads to a service", "nobody who is logged in here may dial its service"
	n.Eventually("both are told of", func() bool { return says(service, leads) && says(missing, nobody) })
	if says(missing, leads) || says(service, nobody) {
		t.Errorf("it says\n%s", c)
	}
	id := n.Admin.Get(networktest.Management + "services?filter=" + url.QueryEscape(fmt.Sprintf("name=%q", service))).Want(200).List()[0]["id"].(string)
	n.Admin.Patch(networktest.Management+"services/"+id, M{"name": missing}).Want(200)
	n.Eventually("the other leads there now", func() bool { return says(missing, leads) && says(service, nobody) })
}

// TestTunnelRefused lists commands that cannot be.
func TestTunnelRefused(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"host"}, "give the file of an identity with --identity FILE"},
		{[]string{"proxy", "--identity", "x"}, "say which ports lead to which services"},
		{[]string{"proxy", "--identity", "x", "wiki"}, `"wiki" is not SERVICE:PORT`},
		{[]string{"proxy", "--identity", "x", "--bind", "here", "wiki:1"}, `"here" is no IP address`},
		{[]string{"host", "--identity", "nothing.json"}, "nothing is left to do"},
		{[]string{"host", "--identity", "x", "--allow", "10.0.0.1"}, `--allow "10.0.0.1" says no ports`},
		{[]string{"run", "--identity", "x", "--allow", "*.*.lan:1"}, `--allow "*.*.lan:1" has the host`},
		{[]string{"proxy", "--identity", "x", "--allow", "*:1", "wiki:1"}, "there is no flag --allow"},
	} {
		c := tunnels(t, test.args...)
		<-c.done
		if c.code == 0 || !strings.Contains(c.String(), test.want) {
			t.Errorf("%q: code %d\n%s", test.args, c.code, c)
		}
	}
}
