package transit

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/networktest"
)

// TestSourceAddress has servers see the address that a service's configuration
// tells dialers to be seen under, as far as the host allows.
func TestSourceAddress(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host, user := n.AddIdentity("host", n.Word+"host"), n.AddIdentity("user", n.Word+"user")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, _, _ := net.SplitHostPort(r.RemoteAddr)
		_, _ = io.WriteString(w, seen)
	}))
	t.Cleanup(server.Close)
	udp := seenUDP(t)
	// told has a service be dialled as if from somewhere.
	told := func(name, sourceIP string, config M) {
		service, configID := leading(n, name, config)
		id := n.Admin.Post(networktest.Management+"configs", M{"name": n.Word + name + "-dial", "configTypeId": "g7cIWbcGg", "data": M{
			"addresses": []string{"some.example"}, "portRanges": []M{{"low": 80, "high": 80}}, "protocols": []string{"tcp"}, "sourceIp": sourceIP,
		}}).Want(201).ID()
		n.Admin.Patch(networktest.Management+"services/"+service, M{"configs": []string{configID, id}}).Want(200)
	}
	allowing := func(sources ...string) M {
		config := at(server)
		config["allowedSourceAddresses"] = sources
		return config
	}
	told("fixed", "127.0.0.9", allowing("127.0.0.8/30"))
	told("same", "$src_ip", allowing("127.0.0.1"))
	told("udp", "127.0.0.10", M{"protocol": "udp", "address": "127.0.0.1", "port": portOf(udp.LocalAddr()), "allowedSourceAddresses": []string{"127.0.0.8/30"}})
	told("refused", "127.0.0.12", allowing("127.0.0.8/30"))
	told("unlisted", "127.0.0.9", at(server))
	told("absent", "192.0.2.7", allowing("192.0.2.0/24"))
	told("unknown", "$tunneler_id.appData[ip]", allowing("127.0.0.8/30"))

	hosting := tunnels(t, "host", "--identity", host.File)
	ports := map[string]int{}
	args := []string{"proxy", "--identity", user.File}
	for _, name := range []string{"fixed", "same", "refused", "unlisted", "absent", "unknown", "udp"} {
		ports[name] = freePort(t)
		args = append(args, fmt.Sprintf("%s%s:%d", n.Word, name, ports[name]))
	}
	args[len(args)-1] += "/udp"
	proxy := tunnels(t, args...)
	n.Eventually("the server sees the address that was told", func() bool { return read(ports["fixed"]) == "127.0.0.9" })
	n.Eventually("the server sees the dialer's", func() bool { return read(ports["same"]) == "127.0.0.1" })
	n.Eventually("a server of datagrams too", func() bool { return readUDP(ports["udp"]) == "127.0.0.10" })
	for name, want := range map[string]string{
		"refused":  `source_addr \"127.0.0.12\" is not in allowedSourceAddresses`,
		"unlisted": `source_addr \"127.0.0.9\" is not in allowedSourceAddresses`,
		"absent":   "the host cannot use source_addr 192.0.2.7: its machine has no such address; add it there",
	} {
		n.Eventually(name+" is refused, and both sides say why", func() bool {
			_ = read(ports[name])
			return strings.Count(hosting.String(), want) == 1 && strings.Count(proxy.String(), want) == 1
		})
	}
	n.Eventually("what a template has that is not known is said", func() bool {
		_ = read(ports["unknown"])
		return strings.Contains(proxy.String(), "sourceIp of its configuration of type intercept.v1 has $tunneler_id.appData[ip], which stands for nothing here")
	})
}

// seenUDP answers every datagram with the address that it came from.
func seenUDP(t *testing.T) net.PacketConn {
	t.Helper()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.Close() })
	go func() {
		buf := make([]byte, 100)
		for {
			_, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = u.WriteTo([]byte(from.(*net.UDPAddr).IP.String()), from)
		}
	}()
	return u
}

// readUDP is what a datagram to a local port is answered with.
func readUDP(port int) string {
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	_, _ = conn.Write([]byte("who am I?"))
	buf := make([]byte, 100)
	n, _ := conn.Read(buf)
	return string(buf[:n])
}
