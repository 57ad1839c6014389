package tun

import (
	"encoding/binary"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// The header that stands before each packet, by which whole trains of segments
// and packets without checksums go through the device as one: struct
// virtio_net_hdr, in the machine's own order of bytes.
const (
	headLength   = 10
	atFlags      = 0
	atKind       = 1
	atHeaders    = 2
	atSegment    = 4
	atSumStart   = 6
	atSumOffset  = 8
	offloads     = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6
	longestTrain = 65535
)

// native is the device as the kernel has it.
type native struct {
	device tun.Device
	raw    syscall.RawConn

	// What is being read: the header, and room for the longest packet in pieces,
	// so that a short one keeps a short piece.
	head  [headLength]byte
	views [len(pieces)]*buffer.View
	iov   [len(pieces) + 1]unix.Iovec
}

var pieces = [...]int{2048, 2048, 4096, 8192, 16384, 32768}

// newNative makes the wire of a device.
func newNative(d tun.Device) (*native, error) {
	raw, err := d.File().SyscallConn()
	if err != nil {
		return nil, err
	}
	// Trains of datagrams would have to be cut here.
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = unix.IoctlSetInt(int(fd), unix.TUNSETOFFLOAD, offloads) }); err != nil {
		return nil, err
	}
	return &native{device: d, raw: raw}, failed
}

func (n *native) capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload
}

func (n *native) longest() uint32 { return longestTrain }

func (n *native) Close() error { return n.device.Close() }

// read implements wire. What a program of the machine sends has no checksum
// yet, and what the machine passes on was looked at by who took it.
func (n *native) read() (*stack.PacketBuffer, error) {
	n.iov[0].Base = &n.head[0]
	n.iov[0].SetLen(headLength)
	for i, size := range pieces {
		if n.views[i] == nil {
			n.views[i] = buffer.NewViewSize(size)
			n.iov[i+1].Base = n.views[i].BasePtr()
			n.iov[i+1].SetLen(size)
		}
	}
	for {
		got, err := n.readv()
		if err != nil {
			return nil, err
		}
		if got > headLength {
			return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: n.pull(got - headLength)}), nil
		}
	}
}

func (n *native) readv() (int, error) {
	var got uintptr
	var errno syscall.Errno
	err := n.raw.Read(func(fd uintptr) bool {
		for {
			got, _, errno = unix.Syscall(unix.SYS_READV, fd, uintptr(unsafe.Pointer(&n.iov[0])), uintptr(len(n.iov)))
			if errno != unix.EINTR {
				return errno != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case errno == unix.EBADFD || errno == unix.ENODEV: // somebody else took it away
		return 0, os.ErrClosed
	case errno != 0:
		return 0, errno
	}
	return int(got), nil
}

// pull takes the pieces that a packet is in.
func (n *native) pull(length int) buffer.Buffer {
	var whole buffer.Buffer
	for i := range pieces {
		if length == 0 {
			break
		}
		v := n.views[i]
		n.views[i] = nil
		if length < v.Size() {
			v.CapLength(length)
		}
		length -= v.Size()
		_ = whole.Append(v)
	}
	return whole
}

// write implements wire. The device takes every packet at once.
func (n *native) write(pkt *stack.PacketBuffer) error {
	var head [headLength]byte
	order := binary.NativeEndian
	if g := &pkt.GSOOptions; g.Type != stack.GSONone {
		order.PutUint16(head[atHeaders:], uint16(pkt.HeaderSize()))
		if g.NeedsCsum {
			head[atFlags] = unix.VIRTIO_NET_HDR_F_NEEDS_CSUM
			order.PutUint16(head[atSumStart:], g.L3HdrLen)
			order.PutUint16(head[atSumOffset:], g.CsumOffset)
		}
		if pkt.Data().Size() > int(g.MSS) {
			head[atKind] = unix.VIRTIO_NET_HDR_GSO_TCPV4
			if g.Type == stack.GSOTCPv6 {
				head[atKind] = unix.VIRTIO_NET_HDR_GSO_TCPV6
			}
			order.PutUint16(head[atSegment:], g.MSS)
		}
	}
	const usual = 16
	var room [usual]unix.Iovec
	iov := room[:0]
	add := func(b []byte) {
		if len(b) > 0 {
			v := unix.Iovec{Base: &b[0]}
			v.SetLen(len(b))
			iov = append(iov, v)
		}
	}
	add(head[:])
	for _, part := range pkt.AsSlices() {
		add(part)
	}
	var errno syscall.Errno
	err := n.raw.Write(func(fd uintptr) bool {
		for {
			_, _, errno = unix.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&iov[0])), uintptr(len(iov)))
			if errno != unix.EINTR {
				return errno != unix.EAGAIN
			}
		}
	})
	if err != nil {
		return err
	}
	if errno == unix.EBADFD || errno == unix.EIO { // it is gone, or down
		return errno
	}
	return nil // a packet that is lost comes again
}
