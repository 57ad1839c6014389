package tun

import (
	"bytes"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/tun/tuntest"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// strict looks at the checksums of what comes.
type strict struct{ *packets }

func (strict) capabilities() stack.LinkEndpointCapabilities { return 0 }

// behind makes a device whose packets come from a channel and go to one, as if
// another system had made it.
func behind(t *testing.T, opt Options, host string) (*Device, *tuntest.ChannelTUN) {
	t.Helper()
	ends := tuntest.NewChannelTUN()
	d := &Device{opt: opt, host: netip.MustParseAddr(host)}
	d.own = d.host.Next()
	d.link = newLink(strict{newPackets(ends.TUN())}, tuntest.DefaultMTU)
	if err := d.build(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.link.wire.Close()
		d.stack.Close()
		d.link.Wait()
		d.stack.Wait()
	})
	return d, ends
}

// TestPackets shows that connections and datagrams go over a device that gives
// and takes single packets, whole and with their checksums.
func TestPackets(t *testing.T) {
	e := &echoes{}
	_, device := behind(t, e.options(), "100.64.0.1")
	machine, wire := behind(t, e.options(), "10.9.0.1")
	over := make(chan struct{})
	var carried sync.WaitGroup
	carry := func(from, to chan []byte) {
		carried.Go(func() {
			for {
				select {
				case packet := <-from:
					select {
					case to <- packet:
					case <-over:
						return
					}
				case <-over:
					return
				}
			}
		})
	}
	carry(wire.Inbound, device.Outbound)
	carry(device.Inbound, wire.Outbound)
	t.Cleanup(func() {
		close(over)
		carried.Wait()
	})

	to := tcpip.FullAddress{NIC: nic, Addr: address(netip.MustParseAddr("192.0.2.7")), Port: 80}
	c, err := gonet.DialContextTCP(t.Context(), machine.stack, to, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	go func() {
		_, _ = c.Write(sent)
		_ = c.CloseWrite()
	}()
	heard, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(heard, sent) {
		t.Fatalf("%d bytes came back of %d, or others: %v", len(heard), len(sent), err)
	}
	if got, want := e.last(), "tcp 10.9.0.2 192.0.2.7:80"; got != want {
		t.Fatalf("%q came, not %q", got, want)
	}

	u, err := gonet.DialUDP(machine.stack, nil, &to, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	_ = u.SetDeadline(time.Now().Add(time.Minute))
	answer := make([]byte, 100)
	_, err = u.Write([]byte("hello"))
	if err == nil {
		var n int
		n, err = u.Read(answer)
		answer = answer[:n]
	}
	if err != nil || string(answer) != "hello" {
		t.Fatalf("%q came back: %v", answer, err)
	}
}
