// Package stream is the reliable stream between the two ends of a circuit. Who
// is between the ends only passes payloads and acknowledgements on and may lose,
// double or reorder them: the ends number what they send, keep it until it is
// acknowledged, send it again, and hand on in order what they receive.
//
// The package is pure: an End has no socket, no goroutine and no table. It calls
// the functions of its Options, never with a lock held, and has one timer, which
// runs while it waits for something. It imports frames and their numbers and
// nothing else of ours.
package stream

import (
	"errors"
	"time"

	"netkeep.internal/internal/wire"
)

// Bounds of an end.
const (
	// Window is how many bytes an end has in flight at most, and Buffer how many
	// of them it holds for its reader, unless Options say less. Every end
	// expects the other to have room for so much.
	Window = 4 << 20
	Buffer = 4 << 20

	// leastWindow is what a window that shrinks with losses keeps.
	leastWindow = 16 << 10
	// entry is what a payload costs beside its bytes, so that a million empty
	// ones do not fit either.
	entry = 256
	// span is how many payloads are in flight at most, and how far beyond the
	// one that it waits for an end takes others.
	span = Window / entry
	// earlyBytes and earlyMessages are what a terminator takes before it was
	// started: enough for hosts that speak first, which share a socket with
	// others and would hold them up.
	earlyBytes    = 64 << 10
	earlyMessages = 16
	// maxMessage is how long a message that comes in parts may be.
	maxMessage = 16 << 20
	// emptied is how much must have been held for the peer to be told that half
	// of it is taken. What is less stops nobody, and a message that is taken as
	// it comes need not be reported twice.
	emptied = 64 << 10
)

// Times of an end.
const (
	// firstWait is how long an acknowledgement may take before anything was
	// measured; later it is one and a half times what it takes and leastWait, up
	// to a bound: a scheduler's pause is no loss, nor is a queue that fills, and a
	// clock's leap is no reason to wait.
	firstWait = 200 * time.Millisecond
	leastWait = 64 * time.Millisecond
	mostWait  = 10 * time.Second
	// mostSilence is how long an end that hears nothing waits between tries.
	mostSilence = time.Second
	// closeWait is how long an end that has closed goes without an
	// acknowledgement before it gives up, or without what is missing before
	// the end that it has seen.
	closeWait = 30 * time.Second
	// linger is how long an end that is done acknowledges what is sent again.
	linger = 5 * time.Second
	// startWait is how long a terminator waits for the initiator.
	startWait = 3 * time.Minute
)

var (
	// ErrClosed says that the stream was closed from here.
	ErrClosed = errors.New("stream: closed")
	// ErrAborted says that the circuit was taken away.
	ErrAborted = errors.New("stream: the circuit was taken away")
	// ErrRefused says that the other end takes no more.
	ErrRefused = errors.New("stream: the other end takes no more")
	// ErrNotStarted says that the initiator never began.
	ErrNotStarted = errors.New("stream: the other end did not start in time")
	// ErrUnheard says that the other end did not acknowledge everything before
	// the end in time.
	ErrUnheard = errors.New("stream: the other end does not acknowledge what was sent")
	// ErrIncomplete says that the other end ended, and what it sent before did
	// not arrive.
	ErrIncomplete = errors.New("stream: the other end ended and a part of what it sent is missing")
	// ErrPoor says that a message is longer than there is memory for at present.
	ErrPoor = errors.New("stream: there is no memory for a message of this length at present")
	// ErrParts says that the parts of a message do not make one.
	ErrParts = errors.New("stream: the parts of a message do not add up")
	// ErrExhausted says that there are no numbers left for payloads.
	ErrExhausted = errors.New("stream: too many messages for one circuit; dial again")
)

// Message is what the user of one end hands to the user of the other: one goes
// in, one comes out.
type Message struct {
	Data  []byte
	Flags uint32 // data flags
	UUID  []byte
	// Memory is a hold on what both are in: the end's once it is written, and of who
	// takes it once it is read.
	Memory wire.Memory
	// End says that nothing follows. It comes alone and once. Err is nil if the
	// other end said so, and else why there is no more.
	End bool
	Err error
}

// Options of an End. Send, Ack and Now must be set. No function is called with a
// lock held; each may be called from any goroutine, and from within a method of
// the end.
type Options struct {
	Circuit    string
	Terminator bool // the end that was dialed; else the initiator

	// Send hands a payload on. With wait it may block for up to a second until
	// there is room. If it returns false the payload is sent again later; else its
	// memory is with whoever has it now.
	Send func(p *Payload, wait bool) bool
	// Ack hands an acknowledgement on and never blocks.
	Ack func(a *Ack)
	// Ready says that Next has something, or the end. It may be called
	// needlessly, and must neither block nor write.
	Ready func()
	// Room says that there is room again after TryWrite had none.
	Room func()
	// Done is called once, when nothing more is written or taken. What follows
	// is that the end acknowledges for a while what it is sent again.
	Done func(reason error)
	// Over is called once: the end may be forgotten. It comes after Done, or at
	// the same time if the stream is aborted just then.
	Over func(reason error)

	Window, Buffer int
	// Pool, if set, may leave less than these to an end among many.
	Pool *Pool
	// Purse, if set, is asked for what exceeds them by far.
	Purse Purse
	Now   func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Window <= 0 || o.Window > Window {
		o.Window = Window
	}
	if o.Buffer <= 0 || o.Buffer > Buffer {
		o.Buffer = Buffer
	}
	if o.Ready == nil {
		o.Ready = func() {}
	}
	if o.Room == nil {
		o.Room = func() {}
	}
	if o.Done == nil {
		o.Done = func(error) {}
	}
	if o.Over == nil {
		o.Over = func(error) {}
	}
	return o
}

// Stats of an end.
type Stats struct {
	Sent, Received int64 // bytes of messages
	Resent         int64 // payloads that were sent again
	Dropped        int64 // payloads that there was no room for, or that came from ourselves
	InFlight       int   // bytes, with what they cost
	Held           int   // likewise
	RTT            time.Duration
	Heard          time.Duration // since the other end was heard
}
