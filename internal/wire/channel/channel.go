// Package channel is the logical connection to one peer, over one socket or
// several: hellos, requests and their replies, heartbeats, and a bounded queue
// of what is to be sent. It serves both ends. It knows frames and the few types
// of them that keep a channel alive; what others mean is its user's to say, and
// it must not import model or state.
package channel

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Options of a Channel.
type Options struct {
	// Handle takes every frame that is no reply somebody waits for, in the
	// order of its socket. It runs where frames are read: while it does, the
	// peer is not listened to.
	Handle func(c *Channel, f *wire.Frame)
	// Packet, if set, sees every frame before its headers are taken apart, for
	// channels that carry much; it reports whether it has taken it. Then it owns it.
	Packet func(c *Channel, p *wire.Packet) bool
	// Pooled has frames read into memory that is used again when their owner
	// releases them.
	Pooled bool
	// Lane, if set, says what a packet that is offered belongs to, such as a
	// circuit; nil is nothing. Packets that belong to the same stay in their
	// order; others take turns with them, and each has its share of what may wait.
	Lane func(p *wire.Packet) []byte
	// Large, if set, is asked before more than LargeFrame bytes are read at once,
	// and may wait; done is called when they have been taken.
	Large func() (done func())
	// Skipped, if set, is told of frames that exceed Bounds, which are then read
	// past. Else the channel ends with the first: for what many share, one too
	// large frame of one of them is no reason.
	Skipped func(e *wire.TooLarge)
	// Unfit, if set, is asked before a frame within Bounds is read, and may have
	// it read past.
	Unfit func(typ int32, headers, body int) bool
	// Closed, if set, is called once when the channel has ended, with the
	// reason.
	Closed func(c *Channel, reason error)
	// Bounds of the frames that the peer may send.
	Bounds wire.Bounds
	// Takes, if set, is what the peer takes: a larger frame would end the channel
	// there, and with it what all others have on it. Who sends one is told that it
	// is too large, and nothing is sent.
	Takes wire.Bounds
	// Queue is how many bytes may wait to be sent.
	Queue int
	// Soft is how many bytes may wait to be sent before Offer takes no more.
	Soft int
	// Deep is the same for what is in lanes: Soft, unless it says otherwise.
	Deep int
	// Sockets, if set, is how many there may be, of both kinds: one too many is
	// closed.
	Sockets int
	// Purse, if set, is asked for room for more than Soft that is offered, and gets
	// back what was sent: for channels that share how much may wait.
	Purse Purse
	// Room, if set, is called where frames are written, when Offer takes some
	// again after it did not.
	Room func(c *Channel)
	// Beat is how often the peer is asked for a sign of life, and Silence how
	// long it may go without one, or take for what is written to it. Below zero
	// it is not asked, and may take as long as it likes.
	Beat, Silence time.Duration
	// Beats, if set, are the signs of life that were asked for on this channel and
	// on others, if they may be given on any.
	Beats *Beats
	// Echoed, if set, is told how long each sign of life was on its way.
	Echoed func(took time.Duration)
	Now    func() time.Time
}

// Purse is memory that several channels share.
type Purse interface {
	Take(bytes int) bool
	Give(bytes int)
}

// LargeFrame is the size from which Options.Large is asked.
const LargeFrame = 1 << 20

// Bounds and times that suit a control connection.
const (
	MaxHeaders = 64 << 10
	MaxBody    = 8 << 20
	MaxQueue   = 16 << 20
	MaxSoft    = 512 << 10
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
	if o.Soft == 0 {
		o.Soft = MaxSoft
	}
	if o.Deep == 0 {
		o.Deep = o.Soft
	}
	if o.Beat == 0 {
		o.Beat = Beat
	}
	if o.Silence == 0 {
		o.Silence = Silence
	}
	if o.Beats == nil {
		o.Beats = new(Beats)
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

	queue   queue
	sending sync.Mutex // of who takes from the queue and writes
	late    bool       // what was taken was written and is not out; under sending

	seq     atomic.Uint32
	tap     atomic.Pointer[Tap]
	mu      sync.Mutex
	waiting map[int32]chan *wire.Frame
	sockets []net.Conn // frames are sent on the first
	remote  string     // the address of the last that joined
	readers []net.Conn // frames are only read from these
	reason  error      // set once it is over

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
	c.queue.init(opt)
	c.queue.later = c
	return c
}

// Attach adds a socket on which hellos have been exchanged. The channel ends
// with its last socket.
func (c *Channel) Attach(conn net.Conn) {
	if c.join(conn) {
		go c.read(conn)
	}
}

// AttachReader adds a socket from which frames are only read: it neither gets
// any nor keeps the channel from its end.
func (c *Channel) AttachReader(conn net.Conn) {
	c.mu.Lock()
	room := c.room()
	if room {
		c.readers = append(c.readers, conn)
	}
	c.mu.Unlock()
	if !room {
		_ = conn.Close()
		return
	}
	go c.read(conn)
}

// Serve is Attach, except that it returns when the socket has ended.
func (c *Channel) Serve(conn net.Conn) {
	if c.join(conn) {
		c.read(conn)
	}
}

// room reports whether the channel may have another socket. The caller holds the
// mutex.
func (c *Channel) room() bool {
	return c.reason == nil && (c.opt.Sockets == 0 || len(c.sockets)+len(c.readers) < c.opt.Sockets)
}

// join makes a socket one of the channel's, unless that is over or has too many.
func (c *Channel) join(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.room() {
		_ = conn.Close()
		return false
	}
	c.sockets, c.remote = append(c.sockets, conn), conn.RemoteAddr().String()
	c.started.Do(func() { go c.write() })
	return true
}

// Sockets is how many sockets the channel has.
func (c *Channel) Sockets() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sockets)
}

// Remote is the peer's address on the first socket, or on the last that there
// was: what is done for a peer may take longer than its connection.
func (c *Channel) Remote() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sockets) > 0 {
		return c.sockets[0].RemoteAddr().String()
	}
	return c.remote
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
	sockets := append(c.sockets, c.readers...)
	c.sockets, c.readers = nil, nil
	clear(c.waiting)
	c.mu.Unlock()
	c.end()
	for _, s := range sockets {
		_ = s.Close()
	}
	c.queue.close()
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
	if c.opt.Takes != (wire.Bounds{}) {
		if err := f.Within(c.opt.Takes); err != nil {
			return err
		}
	}
	c.tapped(f, false)
	err := c.queue.add(item{bytes: f.Append(nil)})
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

// Offer queues a packet and reports true, unless more waits already than the
// channel likes or it is over. It never waits and never ends the channel. The
// packet gets its number, and is the channel's if it was taken: nobody else looks
// at it any more.
func (c *Channel) Offer(p *wire.Packet) bool {
	if c.over.Err() != nil {
		return false
	}
	p.Seq = c.next()
	if c.opt.Lane != nil {
		if lane := c.opt.Lane(p); lane != nil {
			return c.queue.offerIn(lane, p)
		}
	}
	return c.queue.offer(p)
}

// OfferFirst is Offer for what is small and should not wait behind data, such as
// acknowledgements: it goes before all that waits, and has room of its own.
func (c *Channel) OfferFirst(p *wire.Packet) bool {
	if c.over.Err() != nil {
		return false
	}
	p.Seq = c.next()
	return c.queue.offerFirst(p)
}

// OfferWhenRoom is Offer, except that it waits for room.
func (c *Channel) OfferWhenRoom(ctx context.Context, p *wire.Packet) error {
	for !c.Offer(p) {
		select {
		case <-c.queue.room():
		case <-c.over.Done():
			return c.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
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

// Request sends a frame and waits for the reply to it. A reply is returned or
// handled like any other frame, never both and never neither, whenever ctx ends.
func (c *Channel) Request(ctx context.Context, f *wire.Frame) (*wire.Frame, error) {
	reply := make(chan *wire.Frame, 1)
	c.number(f)
	c.mu.Lock()
	c.waiting[f.Seq] = reply
	c.mu.Unlock()
	err := c.enqueue(f)
	if err == nil {
		select {
		case r := <-reply:
			return r, nil
		case <-c.over.Done():
			err = c.Err()
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	c.mu.Lock()
	delete(c.waiting, f.Seq)
	c.mu.Unlock()
	select {
	case r := <-reply: // it came just now
		return r, nil
	default:
		return nil, err
	}
}

func (c *Channel) number(f *wire.Frame) { f.Seq = c.next() }

// next is a number for a frame; negative ones are hellos'.
func (c *Channel) next() int32 { return int32(c.seq.Add(1) & math.MaxInt32) }
