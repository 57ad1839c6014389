package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"netkeep.internal/internal/data/store"
)

// noise is, in part, what etcd warns of although it is as it should be here.
var noise = []string{
	// we listen nowhere
	"Running http and grpc server on single port. This is not recommended for production.",
	// our limits are meant
	"exceeded recommended request limit",
	// a new member says so until its first snapshot
	"Failed to detect schema version",
	"failed to update storage version",
	"since there are still pending configuration changes to apply",
	// the caller gets the error, and it is often one to expect
	"failed to apply request",
	"failed to receive from snapshot stream; closing",
	// said of a peer again and again for as long as it is away; once is enough,
	// and that it became inactive is said once
	"prober detected unhealthy status",
	"failed to reach the peer URL",
	"failed to get version",
	"dropped internal Raft message since sending buffer is full",
	"lost TCP streaming connection with remote peer",
	"closed TCP streaming connection with remote peer",
	"rejected stream from remote peer because it was removed",
	// a leader is gone, which the caller or a probe tells
	"waiting for ReadIndex response took too long",
	"ignored out-of-date read index response",
	// what was removed is read again from the log
	"skipped attributes update of removed member",
	// ErrRemoved says what to do
	"server error",
	"data-dir used by this member must be removed",
	// who asks tries again
	"rejecting promote learner",
	"rejecting member add request",
	"rejecting member promote request",
	"rejecting member remove request",
	attemptFailed,
	"streamer failed to create ClientStream",
	// who renews a lease tries again, and says when it is lost
	"getToken failed",
}

// attemptFailed is what the client says of each attempt of a call that it makes
// again. What the call returns in the end is only that it took too long.
const attemptFailed = "retrying of unary invoker failed"

// publishFailed is what a member says of each attempt to tell its cluster of
// itself. Until it has applied what it read from its log it refuses its own
// requests, and it tries again at once.
const publishFailed = "failed to publish local member to cluster through raft"

// outdated is, in part, what a member ends with that lacks what others know that it
// had.
const outdated = "Was the raft log corrupted, truncated, or lost?"

// publishPause is how long it waits for the next.
const publishPause = 10 * time.Millisecond

// bridge takes etcd's log to slog, from warnings on.
type bridge struct {
	log *slog.Logger
	// fail is told why etcd cannot go on. etcd would end the process or
	// panic; here only the goroutine ends.
	fail func(error)
	// closing is set when etcd is asked to stop. All it then complains of is
	// that it stops.
	closing atomic.Bool
	// failed is set when it cannot go on. The rest of it complains of that for as
	// long as there are others who talk to it.
	failed atomic.Bool
	// publishing is set once it was said that the member tells of itself in vain.
	publishing atomic.Bool
	// trouble is what became of the last attempt that failed.
	trouble atomic.Pointer[string]
}

// because adds to an error of a client that waited in vain what it met.
func (b *bridge) because(err error) error {
	if last := b.trouble.Load(); last != nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fmt.Errorf("%w; the last attempt: %s", err, *last)
	}
	return err
}

func (b *bridge) logger() *zap.Logger {
	return zap.New(core{b, b.log}, zap.WithFatalHook(b), zap.WithPanicHook(b))
}

// OnWrite is what happens after an entry that would have ended the process.
func (b *bridge) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	var text strings.Builder
	text.WriteString(ce.Message)
	for _, a := range attrs(fields) {
		fmt.Fprintf(&text, ", %s: %v", a.Key, a.Value)
	}
	why := store.ErrFailed
	if strings.Contains(ce.Message, outdated) {
		why = ErrOutdated
	}
	b.failed.Store(true)
	b.fail(fmt.Errorf("%w: %s", why, text.String()))
	runtime.Goexit()
}

// core is the zapcore.Core of a bridge, with the attributes of its log.
type core struct {
	*bridge
	log *slog.Logger
}

func (c core) Enabled(l zapcore.Level) bool {
	return l >= zapcore.WarnLevel && c.log.Enabled(context.Background(), level(l))
}

func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.bridge, slog.New(c.log.Handler().WithAttrs(attrs(fields)))}
}

func (c core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	fatal := e.Level > zapcore.ErrorLevel
	known := func(part string) bool { return strings.Contains(e.Message, part) }
	switch e.Message {
	case attemptFailed:
		return ce.AddCore(e, attempt{c})
	case publishFailed:
		return ce.AddCore(e, publication{c})
	}
	if !c.Enabled(e.Level) || !fatal && (c.closing.Load() || c.failed.Load() || slices.ContainsFunc(noise, known)) {
		return ce
	}
	return ce.AddCore(e, c)
}

func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c.log.LogAttrs(context.Background(), level(e.Level), "etcd: "+e.Message, attrs(fields)...)
	return nil
}

func (c core) Sync() error { return nil }

// attempt keeps what became of an attempt, and logs nothing.
type attempt struct{ core }

func (a attempt) Write(_ zapcore.Entry, fields []zapcore.Field) error {
	for _, f := range attrs(fields) {
		if f.Key == "error" {
			text := f.Value.String()
			a.trouble.Store(&text)
		}
	}
	return nil
}

// publication logs the first of the attempts of a member to tell of itself, and
// has it pause: between two attempts it does nothing else but log.
type publication struct{ core }

func (p publication) Write(_ zapcore.Entry, fields []zapcore.Field) error {
	if !p.closing.Load() && !p.publishing.Swap(true) {
		p.log.LogAttrs(context.Background(), slog.LevelInfo, "the store reads its log before it answers", attrs(fields)...)
	}
	<-time.After(publishPause)
	return nil
}

func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func attrs(fields []zapcore.Field) []slog.Attr {
	out := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		enc := zapcore.NewMapObjectEncoder()
		f.AddTo(enc)
		for k, v := range enc.Fields {
			out = append(out, slog.Any(k, shorten(v)))
		}
	}
	return out
}

// shorten cuts texts: of a slow request etcd logs every key.
func shorten(v any) any {
	const most = 300
	if s, ok := v.(string); ok && len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return v
}
