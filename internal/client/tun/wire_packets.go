package tun

import (
	"sync"

	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const (
	// room is what some systems write in before each packet.
	room = 4
	// longestPacket is what the length of one can say.
	longestPacket = 65535
)

// packets is a device that gives and takes one packet at a time, as utun and
// wintun do: whole, and with its checksums.
type packets struct {
	device tun.Device
	in     []byte
	size   [1]int

	mu  sync.Mutex // one writes at a time
	out []byte
}

// newPackets makes the wire of a device.
func newPackets(d tun.Device) *packets {
	go func() { // it waits for somebody who hears what happens to it
		for range d.Events() {
		}
	}()
	return &packets{device: d, in: make([]byte, room+longestPacket), out: make([]byte, 0, room+longestPacket)}
}

func (p *packets) capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload // a program of this machine has sent it
}

func (p *packets) longest() uint32 { return 0 }

func (p *packets) Close() error { return p.device.Close() }

// read implements wire.
func (p *packets) read() (*stack.PacketBuffer, error) {
	for {
		n, err := p.device.Read([][]byte{p.in}, p.size[:], room)
		if err != nil {
			return nil, err
		}
		if n > 0 && p.size[0] > 0 {
			data := buffer.NewViewWithData(p.in[room : room+p.size[0]])
			return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(data)}), nil
		}
	}
}

// write implements wire. A packet that the device does not take comes again, and
// that it is gone is seen by who reads.
func (p *packets) write(pkt *stack.PacketBuffer) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = p.out[:room]
	for _, part := range pkt.AsSlices() {
		p.out = append(p.out, part...)
	}
	_, _ = p.device.Write([][]byte{p.out}, room)
	return nil
}
