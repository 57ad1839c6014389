package channel

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// sockets returns both ends of a connection of this machine.
func sockets(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = here.Close()
		_ = there.Close()
	})
	return here, there
}

// relay is two channels over sockets: what comes over the one goes out on the other.
type relay struct {
	from, to net.Conn // where others write and read
	out      *Channel
	busy     chan struct{} // taken by a frame that is no payload
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{busy: make(chan struct{})}
	var in, out net.Conn
	r.from, in = sockets(t)
	r.to, out = sockets(t)
	opt := Options{Beat: -1, Now: time.Now, Handle: func(*Channel, *wire.Frame) {}, Pooled: true, Soft: 1 << 30, Queue: 1 << 30}
	r.out = New("out", opt)
	r.out.Attach(NewBulk(out))
	opt.Packet = func(_ *Channel, p *wire.Packet) bool {
		if p.Type != message.TypePayload {
			<-r.busy
			return true
		}
		return r.out.Offer(p)
	}
	c := New("in", opt)
	c.Attach(NewBulk(in))
	t.Cleanup(func() {
		close(r.busy)
		c.Close(nil)
		r.out.Close(nil)
	})
	return r
}

func payload(n, size int) []byte {
	body := make([]byte, 8+size)
	binary.BigEndian.PutUint64(body, uint64(n))
	for i := range size {
		body[8+i] = byte(n + i)
	}
	return (&wire.Packet{Type: message.TypePayload, Body: body}).Append(nil)
}

// next reads a payload and reports which it is.
func (r *relay) next(t *testing.T) int {
	t.Helper()
	_ = r.to.SetReadDeadline(time.Now().Add(time.Minute))
	p, err := wire.ReadPacket(r.to, wire.Bounds{Headers: 100, Body: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n := int(binary.BigEndian.Uint64(p.Body))
	for i, b := range p.Body[8:] {
		if b != byte(n+i) {
			t.Fatalf("byte %d of %d is %d", i, n, b)
		}
	}
	return n
}

// TestBulkOrder passes on what one sends who does not stop to one who reads nothing at
// first: more than the system takes, beside what another sends.
func TestBulkOrder(t *testing.T) {
	r := newRelay(t)
	const count, others = 400, 100
	var all sync.WaitGroup
	all.Go(func() {
		for i := range count {
			_, _ = r.from.Write(payload(i, (i*7919)%60_000))
		}
	})
	all.Go(func() {
		for i := range others {
			p, _ := wire.ReadPacket(&reader{payload(1_000_000+i, 10)}, wire.Bounds{Headers: 100, Body: 1 << 20})
			r.out.Offer(p)
		}
	})
	all.Wait() // all of it was taken, with nobody who reads
	seen, seenOthers := 0, 0
	for range count + others {
		switch n := r.next(t); {
		case n == seen:
			seen++
		case n == 1_000_000+seenOthers:
			seenOthers++
		default:
			t.Fatalf("after %d and %d came %d", seen, seenOthers, n)
		}
	}
}

// reader reads bytes.
type reader struct{ left []byte }

func (r *reader) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// TestBulkDoesNotWait has what came go on although what came with it is not all there,
// or takes time.
func TestBulkDoesNotWait(t *testing.T) {
	r := newRelay(t)
	part := payload(1, 10_000)
	_, _ = r.from.Write(append(payload(0, 100), part[:200]...))
	if n := r.next(t); n != 0 {
		t.Errorf("%d came first", n)
	}
	slow := (&wire.Packet{Type: message.TypeData}).Append(nil)
	_, _ = r.from.Write(append(part[200:], slow...))
	if n := r.next(t); n != 1 {
		t.Errorf("%d came second", n)
	}
}

// TestBulkBehind says something beside what waits for a peer that reads nothing: it
// does not wait, and goes out behind that. There is an end to it.
func TestBulkBehind(t *testing.T) {
	here, there := sockets(t)
	b := NewBulk(here)
	waits := 0
	for all := true; all; waits += 1 << 20 {
		b.hold()
		_, _ = b.Write(make([]byte, 1<<20))
		all = b.release()
	}
	flushed := make(chan error, 1)
	go func() { flushed <- b.flush() }()
	said := 0
	for range 200 {
		n, err := b.Write(bytes.Repeat([]byte{1}, 10_000))
		if said += n; err != nil {
			break
		}
	}
	if said == 0 || said > maxBehind+20_000 {
		t.Errorf("%d bytes were taken", said)
	}
	got, err := io.ReadAll(io.LimitReader(there, int64(waits+said)))
	if err != nil || len(got) != waits+said || bytes.IndexByte(got, 1) != waits {
		t.Errorf("%d bytes came of %d and %d, the last from %d on: %v", len(got), waits, said, bytes.IndexByte(got, 1), err)
	}
	if err := <-flushed; err != nil {
		t.Error(err)
	}
}
