package transit

import (
	"net"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
)

// TestHalfRouted has a router told of a circuit whose link it has just lost: it cannot be
// made, and whoever hosts it, whom the router has reached by then, hears that at once.
func TestHalfRouted(t *testing.T) {
	n := networktest.New(t, shared)
	at := n.AddRouter("at")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	host := n.Client(n.AddIdentity("host"))
	service := n.AddService("hosted", false)
	hosted, err := host.Listen(within(t, networktest.Soon), service, sdk.ListenOptions{})
	must(t, err)
	defer hosted.Close()
	term := n.Admin.Get(networktest.Management + `terminators?filter=service.name="` + service + `"`).Want(200).List()[0]["address"].(string)
	for binding, to := range map[string]struct {
		address string
		hosts   net.Listener
	}{"transport": {"tcp:" + l.Addr().String(), l}, "edge": {term, hosted}} {
		reached := make(chan net.Conn, 1)
		go func() {
			if conn, err := to.hosts.Accept(); err == nil {
				reached <- conn
			}
		}()
		_, err := at.Route(within(t, networktest.Soon), "nobody", &message.Route{
			CircuitID: "half-" + binding, Egress: &message.Egress{Binding: binding, Address: "eg." + binding, Destination: to.address},
			Forwards: []message.Forward{{From: "eg." + binding, To: "lost", Type: message.ToLink}, {From: "lost", To: "eg." + binding, Type: message.ToEnd}},
		})
		if err == nil {
			t.Errorf("%s: a circuit over a link that is not there is made", binding)
		}
		conn := <-reached
		must(t, conn.SetReadDeadline(time.Now().Add(networktest.Soon)))
		_, err = conn.Read(make([]byte, 1))
		if e, is := err.(net.Error); err == nil || is && e.Timeout() {
			t.Errorf("%s: who hosts does not hear of it: %v", binding, err)
		}
		_ = conn.Close()
	}
}
