package channel

import (
	"strconv"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// TraceTime is how long frames are told of that somebody has asked to be told of: who
// forgets to say that it is enough need not be thought of.
const TraceTime = 15 * time.Minute

// TraceOf is what somebody tells of a frame of a channel: which it was, and nothing of
// what is in it.
func TraceOf(who, channel string, now time.Time, f *wire.Frame, in bool) message.Trace {
	t := message.Trace{Timestamp: now.UnixNano(), Identity: who, Channel: channel, In: in, Type: f.Type, Seq: f.Seq, ReplyFor: -1, Length: int32(len(f.Body))}
	if n, is := f.Headers.Uint32(message.HeaderReplyFor); is {
		t.ReplyFor = int32(n)
	}
	if name, known := message.TypeName(f.Type); known {
		t.Decoded = append(t.Decoded, `{"__decoder__":"netkeep","__message__":"`...)
		t.Decoded = append(append(t.Decoded, name...), '"')
		if f.Type == message.TypeResult {
			t.Decoded = append(t.Decoded, `,"success":`...)
			t.Decoded = strconv.AppendBool(t.Decoded, f.Headers.Bool(message.HeaderSuccess))
		}
		t.Decoded = append(t.Decoded, '}')
	}
	return t
}
