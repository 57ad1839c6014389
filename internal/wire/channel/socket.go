package channel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// read takes frames from a socket until it ends.
func (c *Channel) read(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 4<<10)
	var batch *wire.Batch
	if bulk := bulkOf(conn); bulk != nil {
		batch = new(wire.Batch)
		bulk.pause = batch.Flush
		defer batch.Flush()
	}
	for {
		if err := c.readOne(r, batch); err != nil {
			c.detach(conn, fmt.Errorf("read: %w", err))
			return
		}
	}
}

// readOne takes one frame and does with it what has to be done. What follows from
// some may be put off until others were taken.
func (c *Channel) readOne(r *bufio.Reader, batch *wire.Batch) error {
	head, err := wire.ReadHead(r, c.opt.Bounds)
	if large, ok := errors.AsType[*wire.TooLarge](err); ok && c.opt.Skipped != nil {
		c.opt.Skipped(large)
		_, err = io.CopyN(io.Discard, r, large.Headers+large.Body)
		return err
	}
	if err != nil {
		return err
	}
	if c.opt.Unfit != nil {
		if headers, body := head.Parts(); c.opt.Unfit(head.Type(), headers, body) {
			_, err = io.CopyN(io.Discard, r, int64(headers+body))
			return err
		}
	}
	switch typ := head.Type(); {
	case batch == nil:
	case head.Size() > LargeFrame || typ != message.TypePayload && typ != message.TypeAck:
		batch.Flush() // to take it may need time
		batch = nil
	}
	if head.Size() > LargeFrame && c.opt.Large != nil {
		defer c.opt.Large()()
	}
	read := head.Read
	if c.opt.Pooled {
		read = head.ReadPooled
	}
	p, err := read(r)
	if err != nil {
		return err
	}
	if p.Batch = batch; batch != nil {
		batch.Open()
	}
	c.heed(p)
	if c.opt.Packet != nil && c.opt.Packet(c, p) {
		return nil
	}
	f, err := p.Frame()
	if err == nil {
		c.tapped(f, true)
		c.take(f)
	}
	return err
}

// detach gives a socket up. The channel ends with the last, or when a socket
// carried what cannot be a frame: no other is worth more then.
func (c *Channel) detach(conn net.Conn, reason error) {
	_ = conn.Close()
	c.mu.Lock()
	c.sockets, c.readers = without(c.sockets, conn), without(c.readers, conn)
	left := len(c.sockets)
	c.mu.Unlock()
	if left == 0 || errors.Is(reason, wire.ErrMagic) || errors.Is(reason, wire.ErrTooLarge) || errors.Is(reason, wire.ErrHeaders) {
		c.Close(reason)
	}
}

// without is the list less a socket. The list itself may be in use elsewhere.
func without(list []net.Conn, conn net.Conn) []net.Conn {
	var left []net.Conn
	for _, s := range list {
		if s != conn {
			left = append(left, s)
		}
	}
	return left
}

// take does with a frame what has to be done.
func (c *Channel) take(f *wire.Frame) {
	if n, ok := f.Headers.Uint32(message.HeaderReplyFor); ok && c.deliver(int32(n), f) {
		return
	}
	switch f.Type {
	case message.TypePing:
		_ = c.Result(f, true, "ok")
	case message.TypeLatency:
		_ = c.Result(f, true, "")
	case message.TypeHeartbeat, message.TypeProbe, message.TypeLatencyResponse, message.TypeHello:
	default:
		c.opt.Handle(c, f)
	}
}

// deliver hands a reply to who waits for it.
func (c *Channel) deliver(seq int32, f *wire.Frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	reply, ok := c.waiting[seq]
	if ok {
		delete(c.waiting, seq)
		reply <- f // there is room for the one
	}
	return ok
}

// heed takes note of signs of life and of requests for one, which any frame
// may carry. They are between neighbours: a packet that goes on to others must
// not take them along.
func (c *Channel) heed(p *wire.Packet) {
	asked, asks := p.Uint64(message.HeaderHeartbeat)
	sent, echoes := p.Uint64(message.HeaderHeartbeatResponse)
	if !asks && !echoes {
		return
	}
	p.Drop(message.HeaderHeartbeat, message.HeaderHeartbeatResponse)
	if asks {
		c.queue.echo(asked)
	}
	if echoes {
		now := c.opt.Now()
		if !c.opt.Beats.answered(sent) {
			return
		}
		c.mu.Lock()
		c.lastEcho = now
		c.mu.Unlock()
		if c.opt.Echoed != nil {
			c.opt.Echoed(time.Duration(now.UnixNano() - int64(sent)))
		}
	}
}

// write sends what is queued, and asks for signs of life.
func (c *Channel) write() {
	var beats <-chan time.Time
	if c.opt.Beat > 0 {
		beat := time.NewTicker(c.opt.Beat)
		defer beat.Stop()
		beats = beat.C
	}
	for {
		ask := false
		select {
		case <-c.over.Done():
			return
		case <-c.queue.waiting:
		case <-beats:
			if c.silent() {
				c.Close(ErrSilent)
				return
			}
			ask = true
		}
		if c.writeNext(ask) && c.opt.Room != nil {
			c.opt.Room(c)
		}
	}
}

// writeNext sends some of what is queued, and reports whether there is room now for
// what was refused before.
func (c *Channel) writeNext(ask bool) (room bool) {
	c.sending.Lock()
	defer c.sending.Unlock()
	items, room := c.queue.take()
	if echo, ok := c.queue.takeEcho(); ok {
		items = append(items, item{bytes: c.heartbeat(message.HeaderHeartbeatResponse, echo)})
	}
	if ask {
		items = append(items, item{bytes: c.heartbeat(message.HeaderHeartbeat, c.opt.Beats.asked(c.opt.Now()))})
	}
	if conn := c.first(); conn != nil && (c.late || len(items) > 0) {
		if err := c.send(conn, items); err != nil {
			c.detach(conn, fmt.Errorf("write: %w", err))
		}
	}
	c.late = false
	c.queue.sent()
	return room
}

// Flush sends what was put off where packets are read, as far as that needs no
// waiting. It implements wire.Later.
func (c *Channel) Flush() {
	if !c.sending.TryLock() || !c.sendCalm() {
		c.queue.wake()
	}
}

// sendCalm is Flush by who may send; it reports false if something is left.
func (c *Channel) sendCalm() bool {
	defer c.sending.Unlock()
	conn := c.first()
	bulk := bulkOf(conn)
	if bulk == nil || c.late {
		return false
	}
	items, calm := c.queue.takeCalm()
	if len(items) == 0 {
		return calm
	}
	bulk.hold()
	err := inRecords(conn, items)
	// The rest, and what is wrong, is for who may wait.
	if c.late = !bulk.release() || err != nil; !c.late {
		c.queue.sent()
	}
	return !c.late
}

func (c *Channel) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opt.Now().Sub(c.lastEcho) > c.opt.Silence
}

func (c *Channel) heartbeat(header int32, stamp uint64) []byte {
	f := &wire.Frame{Type: message.TypeHeartbeat, Headers: wire.Headers{}}
	f.Headers.SetUint64(header, stamp)
	c.number(f)
	return f.Append(nil)
}

// Ask asks the peer for a sign of life at once.
func (c *Channel) Ask() {
	f := &wire.Frame{Type: message.TypeHeartbeat, Headers: wire.Headers{}}
	f.Headers.SetUint64(message.HeaderHeartbeat, c.opt.Beats.asked(c.opt.Now()))
	_ = c.Send(f)
}

// buffers are where frames are put together before they are written: a channel
// needs one only while it writes.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// keep has a buffer used again.
func keep(b *[]byte) {
	if cap(*b) <= 2*chunk {
		buffers.Put(b)
	}
}

// together returns the bytes of frames, in a buffer that is to be kept, and lets go
// of them.
func together(items []item) *[]byte {
	kept := buffers.Get().(*[]byte)
	all := (*kept)[:0]
	for _, i := range items {
		all = i.append(all)
		if i.packet != nil {
			i.packet.Release()
		}
	}
	clear(items) // what they hold may go
	*kept = all
	return kept
}

// first is the socket that frames are sent on, nil if there is none.
func (c *Channel) first() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sockets) == 0 {
		return nil
	}
	return c.sockets[0]
}

// send writes frames to a socket, at once: each write becomes as few records of TLS
// as it can. What a socket that breaks takes along is lost: who needs an answer asks
// again.
func (c *Channel) send(conn net.Conn, items []item) error {
	bulk := bulkOf(conn)
	if bulk == nil && len(items) > 0 {
		defer c.until(conn)()
		all := together(items)
		_, err := conn.Write(*all)
		keep(all)
		return err
	}
	if bulk == nil {
		return nil
	}
	if len(items) > 0 {
		bulk.hold()
		err := inRecords(conn, items)
		if bulk.release() || err != nil {
			return err
		}
	}
	defer c.until(conn)()
	return bulk.flush()
}

// until bounds how long a write may wait.
func (c *Channel) until(conn net.Conn) (over func()) {
	if c.opt.Silence <= 0 {
		return func() {}
	}
	_ = conn.SetWriteDeadline(c.opt.Now().Add(c.opt.Silence))
	return func() { _ = conn.SetWriteDeadline(time.Time{}) }
}
