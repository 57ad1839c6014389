// Package channel is the logical connection to one peer, over one socket or
// several: hellos, requests and their replies, heartbeats, and a bounded queue
// of what is to be sent. It serves both ends. It knows frames and the few types
// of them that keep a channel alive; what others mean is its user's to say, and
// it must not import model or state.
package channel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"netkeep/internal/line/message"
	"netkeep/internal/line/wire"
)

// Options of a Channel.
type Options struct {
	// Handle takes every frame that is no reply somebody waits for, in the
	// order of its socket. It runs where frames are read: while it does, the
	// peer is not listened to.
	Handle func(c *Channel, f *wire.Frame)
	// Closed, if set, is called once when the channel has ended, with the
	// reason.
	Closed func(c *Channel, reason error)
	// Bounds of the frames that the peer may send.
	Bounds wire.Bounds
	// Queue is how many bytes may wait to be sent.
	Queue int
	// Beat is how often the peer is asked for a sign of life, and Silence how
	// long it may go without one.
	Beat, Silence time.Duration
	Now           func() time.Time
}

// Bounds and times that suit a control connection.
const (
	MaxHeaders = 64 << 10
	MaxBody    = 8 << 20
	MaxQueue   = 16 << 20
	Beat       = 10 * time.Second
	Silence    = 30 * time.Second
)

// WithDefaults fills in what suits a control connection.
func (o Options) WithDefaults() Options {
	if o.Bounds == (wire.Bounds{}) {
		o.Bounds = wire.Bounds{Headers: MaxHeaders, Body: MaxBody}
	}
	if o.Queue == 0 {
		o.Queue = MaxQueue
	}
	if o.Beat == 0 {
		o.Beat = Beat
	}
	if o.Silence == 0 {
		o.Silence = Silence
	}
	return o
}

var (
	// ErrClosed says that the channel was closed from here.
	ErrClosed = errors.New("channel: closed")
	// ErrFull says that the peer takes frames more slowly than they come.
	ErrFull = errors.New("channel: the peer does not keep up")
	// ErrSilent says that the peer gives no sign of life.
	ErrSilent = errors.New("channel: the peer is silent")
)

// Channel is a logical connection. All methods may be called at any time.
type Channel struct {
	ID  string // of the connection
	opt Options

	queue queue

	mu      sync.Mutex
	seq     int32
	waiting map[int32]chan *wire.Frame
	sockets []net.Conn
	reason  error // set once it is over

	over     context.Context // ends with the channel
	end      context.CancelFunc
	started  sync.Once
	lastEcho time.Time // under mu
}

// New returns a channel that has no socket yet.
func New(id string, opt Options) *Channel {
	opt = opt.WithDefaults()
	c := &Channel{ID: id, opt: opt, waiting: map[int32]chan *wire.Frame{}, lastEcho: opt.Now()}
	c.over, c.end = context.WithCancel(context.Background())
	c.queue.init(opt.Queue)
	return c
}

// Attach adds a socket on which hellos have been exchanged. The channel ends
// with its last socket.
func (c *Channel) Attach(conn net.Conn) {
	if c.join(conn) {
		go c.read(conn)
	}
}

// Serve is Attach, except that it returns when the socket has ended.
func (c *Channel) Serve(conn net.Conn) {
	if c.join(conn) {
		c.read(conn)
	}
}

// join makes a socket one of the channel's, unless that is over.
func (c *Channel) join(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason != nil {
		_ = conn.Close()
		return false
	}
	c.sockets = append(c.sockets, conn)
	c.started.Do(func() { go c.write() })
	return true
}

// Sockets is how many sockets the channel has.
func (c *Channel) Sockets() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sockets)
}

// Remote is the peer's address on the first socket.
func (c *Channel) Remote() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sockets) == 0 {
		return ""
	}
	return c.sockets[0].RemoteAddr().String()
}

// Done is closed when the channel has ended.
func (c *Channel) Done() <-chan struct{} { return c.over.Done() }

// Context ends when the channel has ended.
func (c *Channel) Context() context.Context { return c.over }

// Err is why the channel has ended, nil if it has not.
func (c *Channel) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// Close ends the channel, for a reason that others are told.
func (c *Channel) Close(reason error) {
	if reason == nil {
		reason = ErrClosed
	}
	c.mu.Lock()
	if c.reason != nil {
		c.mu.Unlock()
		return
	}
	c.reason = reason
	sockets := c.sockets
	c.sockets = nil
	clear(c.waiting)
	c.mu.Unlock()
	c.end()
	for _, s := range sockets {
		_ = s.Close()
	}
	if c.opt.Closed != nil {
		c.opt.Closed(c, reason)
	}
}

// Send queues a frame and gives it its number. It never waits: a peer that
// does not keep up loses the channel.
func (c *Channel) Send(f *wire.Frame) error {
	c.number(f)
	return c.enqueue(f)
}

func (c *Channel) enqueue(f *wire.Frame) error {
	err := c.queue.add(f.Append(nil))
	if err != nil {
		c.Close(err)
		return err
	}
	return c.Err()
}

// SendWhenReady is Send, except that it waits until what was queued before has
// gone out, for senders of much.
func (c *Channel) SendWhenReady(ctx context.Context, f *wire.Frame) error {
	for {
		ready := c.queue.drained()
		if ready == nil {
			return c.Send(f)
		}
		select {
		case <-ready:
		case <-c.over.Done():
			return c.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Reply answers a frame.
func (c *Channel) Reply(to, f *wire.Frame) error {
	if f.Headers == nil {
		f.Headers = wire.Headers{}
	}
	f.Headers.SetUint32(message.HeaderReplyFor, uint32(to.Seq))
	for key, value := range to.Headers {
		if key >= message.FirstReflected && key <= message.LastReflected {
			f.Headers[key] = value
		}
	}
	return c.Send(f)
}

// Result answers a frame that asks for nothing but whether it was heeded.
func (c *Channel) Result(to *wire.Frame, success bool, text string) error {
	return c.Reply(to, resultFrame(success, text))
}

func resultFrame(success bool, text string) *wire.Frame {
	f := &wire.Frame{Type: message.TypeResult, Headers: wire.Headers{}, Body: []byte(text)}
	f.Headers.SetBool(message.HeaderSuccess, success)
	return f
}

// Request sends a frame and waits for the reply to it.
func (c *Channel) Request(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	reply := make(chan *wire.Frame, 1)
	c.number(f)
	c.mu.Lock()
	c.waiting[f.Seq] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, f.Seq)
		c.mu.Unlock()
	}()
	if err := c.enqueue(f); err != nil {
		return nil, err
	}
	select {
	case r := <-reply:
		return r, nil
	case <-c.over.Done():
		return nil, c.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *Channel) number(f *wire.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seq++; c.seq < 0 {
		c.seq = 1 // negative numbers are hellos'
	}
	f.Seq = c.seq
}

// read takes frames from a socket until it ends.
func (c *Channel) read(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 4<<10)
	for {
		f, err := wire.Read(r, c.opt.Bounds)
		if err != nil {
			c.detach(conn, fmt.Errorf("read: %w", err))
			return
		}
		c.take(f)
	}
}

// detach gives a socket up. The channel ends with the last, or when a socket
// carried what cannot be a frame: no other is worth more then.
func (c *Channel) detach(conn net.Conn, reason error) {
	_ = conn.Close()
	c.mu.Lock()
	left := c.sockets[:0:0]
	for _, s := range c.sockets {
		if s != conn {
			left = append(left, s)
		}
	}
	c.sockets = left
	c.mu.Unlock()
	if len(left) == 0 || errors.Is(reason, wire.ErrMagic) || errors.Is(reason, wire.ErrTooLarge) || errors.Is(reason, wire.ErrHeaders) {
		c.Close(reason)
	}
}

// take does with a frame what has to be done.
func (c *Channel) take(f *wire.Frame) {
	c.heed(f)
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

// heed takes note of signs of life and of requests for one.
func (c *Channel) heed(f *wire.Frame) {
	if asked, ok := f.Headers.Uint64(message.HeaderHeartbeat); ok {
		c.queue.echo(asked)
	}
	if _, ok := f.Headers.Uint64(message.HeaderHeartbeatResponse); ok {
		c.mu.Lock()
		c.lastEcho = c.opt.Now()
		c.mu.Unlock()
	}
}

// write sends what is queued, and asks for signs of life.
func (c *Channel) write() {
	beat := time.NewTicker(c.opt.Beat)
	defer beat.Stop()
	for {
		ask := false
		select {
		case <-c.over.Done():
			return
		case <-c.queue.waiting:
		case <-beat.C:
			if c.silent() {
				c.Close(ErrSilent)
				return
			}
			ask = true
		}
		buf := c.queue.take()
		if echo, ok := c.queue.takeEcho(); ok {
			buf = append(buf, c.heartbeat(message.HeaderHeartbeatResponse, echo))
		}
		if ask {
			buf = append(buf, c.heartbeat(message.HeaderHeartbeat, uint64(c.opt.Now().UnixNano())))
		}
		c.flush(buf)
	}
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

// flush writes frames to the first socket. What a socket that breaks takes
// along is lost: who needs an answer asks again.
func (c *Channel) flush(frames net.Buffers) {
	c.mu.Lock()
	var conn net.Conn
	if len(c.sockets) > 0 {
		conn = c.sockets[0]
	}
	c.mu.Unlock()
	if conn == nil || len(frames) == 0 {
		return
	}
	_ = conn.SetWriteDeadline(c.opt.Now().Add(c.opt.Silence))
	if _, err := conn.Write(join(frames)); err != nil {
		c.detach(conn, fmt.Errorf("write: %w", err))
	}
}

// join makes one write of several frames: each write is a record of TLS.
func join(frames net.Buffers) []byte {
	if len(frames) == 1 {
		return frames[0]
	}
	size := 0
	for _, f := range frames {
		size += len(f)
	}
	all := make([]byte, 0, size)
	for _, f := range frames {
		all = append(all, f...)
	}
	return all
}
