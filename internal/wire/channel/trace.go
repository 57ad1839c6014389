package channel

import (
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// TraceTime is how long frames are told of that somebody has asked to be told of: who
// forgets to say that it is enough need not be thought of.
const TraceTime = 15 * time.Minute

// TraceOf is what is told of a frame: which it was, and nothing of what is in it.
func TraceOf(who string, now time.Time, f *wire.Frame, in bool) message.Trace {
	t := message.Trace{Timestamp: now.UnixNano(), Identity: who, Channel: message.ControlPipe, In: in, Type: f.Type, Seq: f.Seq, ReplyFor: -1, Length: int32(len(f.Body))}
	if n, is := f.Headers.Uint32(message.HeaderReplyFor); is {
		t.ReplyFor = int32(n)
	}
	return t
}
