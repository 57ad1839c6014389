package rest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/ops/limit"
)

// eventType is the content type of an answer that is a stream of events.
const eventType = "text/event-stream"

// LastEvent is where a client is that was told some events before.
var LastEvent = TextParam("Last-Event-ID", "Id of the last event that the client has got, from whichever controller: what came after it follows; the answer begins with what there is now if not given.").InHeader()

// Stream answers with events as they happen, for as long as the caller likes and
// may use the operation. It holds no slot and no memory for bodies meanwhile.
type Stream struct {
	// Wake has one when there may be something to send.
	Wake <-chan struct{}
	// Take appends what there is to send, made by AppendEvent; that bounds how much
	// a client that reads slowly takes of memory. After an error there is no more.
	Take func(dst []byte) ([]byte, error)
	// Over, if set, is called in the end, whatever that is.
	Over func()
}

func (Stream) describe(o *operation) { o.stream = true }

// AppendEvent adds an event to a stream. data must add text without line breaks, as
// JSON is.
func AppendEvent(dst []byte, name, id string, data func(dst []byte) []byte) []byte {
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	dst = append(append(append(dst, "event: "...), name...), "\ndata: "...)
	return append(data(dst), "\n\n"...)
}

// Streams are the streams of all APIs: how many there may be, who has them, and
// whether they may go on. Whoever learns that a caller may have lost what it needs
// says so with Look, so that a stream ends with the session that it was opened with
// and not a while later.
type Streams struct {
	// Slots is how many there may be, and how many of them one identity may have.
	Slots limit.Slots
	// Pulse is how often a stream shows that it is there, and Patience how long a
	// client may take to read what it is sent.
	Pulse, Patience time.Duration
	// Began, if set, is told of every stream by the name of its operation, and what
	// it returns why it ended.
	Began func(operation string) (ended func(reason string))

	mu   sync.Mutex
	by   map[string]map[*stream]struct{} // by the id of the caller
	over bool
	gone chan struct{} // closed when none is left; nil while nobody waits for that
}

// Why streams end.
const (
	EndLeft    = "left"    // the client has closed it
	EndSlow    = "slow"    // it did not read
	EndSession = "session" // it may not use the operation any more
	EndServer  = "server"  // the controller stops
	EndSource  = "source"  // there is no more to say
)

var (
	errManyStreams = fault.New(fault.CodeUnavailable, "there are as many streams at this controller as it may have; try again, or ask another controller")
	errOwnStreams  = fault.Later("this identity has as many streams open as it may; end one of them first", 0)
	errStopping    = fault.New(fault.CodeUnavailable, "the controller stops; go on at another, or at this one when it is back")
)

// stream is one that is open.
type stream struct {
	Stream
	call  *Call
	book  *Streams
	who   string
	party limit.Party
	look  chan struct{} // has one if the caller is to be looked at again
	stop  chan struct{} // closed when the controller stops
	cut   func()        // ends the connection; nil if that is not ours
}

// Look has the streams of a caller find out whether they may go on. It only tells
// them, and is for those who must not wait.
func (s *Streams) Look(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for one := range s.by[caller] {
		one.rouse()
	}
}

// LookAll is Look for everybody.
func (s *Streams) LookAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.by {
		for one := range all {
			one.rouse()
		}
	}
}

func (s *stream) rouse() {
	select {
	case s.look <- struct{}{}:
	default:
	}
}

// Close ends all streams, and those that are asked for from now on.
func (s *Streams) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	for _, all := range s.by {
		for one := range all {
			close(one.stop)
		}
	}
}

// enter takes a stream into the book, if there is room.
func (s *Streams) enter(one *stream) error {
	switch err := s.Slots.Take(one.party); {
	case errors.Is(err, limit.ErrShare):
		return errOwnStreams
	case err != nil:
		return errManyStreams
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		s.Slots.Leave(one.party)
		return errStopping
	}
	if s.by == nil {
		s.by = map[string]map[*stream]struct{}{}
	}
	if s.by[one.who] == nil {
		s.by[one.who] = map[*stream]struct{}{}
	}
	s.by[one.who][one] = struct{}{}
	return nil
}

func (s *Streams) leave(one *stream) {
	s.Slots.Leave(one.party)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by[one.who], one)
	if len(s.by[one.who]) == 0 {
		delete(s.by, one.who)
	}
	if s.gone != nil && len(s.by) == 0 {
		close(s.gone)
		s.gone = nil
	}
}

// Wait waits until all streams have ended that Close has told to. When ctx ends it
// cuts off those that have not.
func (s *Streams) Wait(ctx context.Context) {
	s.mu.Lock()
	if len(s.by) == 0 {
		s.mu.Unlock()
		return
	}
	if s.gone == nil {
		s.gone = make(chan struct{})
	}
	gone := s.gone
	s.mu.Unlock()
	select {
	case <-gone:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for _, all := range s.by {
		for one := range all {
			if one.cut != nil {
				one.cut()
			}
		}
	}
	s.mu.Unlock()
	<-gone
}

func (s Stream) send(c *Call) error {
	one := &stream{
		Stream: s, call: c, book: c.api.Streams, who: c.Author().ID, party: c.Party(),
		look: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if err := one.book.enter(one); err != nil {
		one.close()
		return err
	}
	c.request = c.whole
	c.letGo()
	// What was changed before anybody could tell this stream it has to see itself.
	if err := one.judge(); err != nil {
		one.leave()
		return err
	}
	h := c.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", eventType)
	c.tellRevision(http.StatusOK)
	if one.takeOver() {
		return nil
	}
	defer one.leave()
	one.begin()
	one.run()
	return nil
}

// leave is the end of a stream.
func (s *stream) leave() {
	s.close()
	s.book.leave(s)
}

func (s *stream) close() {
	if s.Over != nil {
		s.Over()
	}
}

// begin sends the header, from where on the request counts as answered.
func (s *stream) begin() {
	c := s.call
	control := http.NewResponseController(c.w)
	// The server's own bounds are on requests, and on answers as a whole.
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	c.w.WriteHeader(http.StatusOK)
	_ = control.Flush()
	c.api.answered(c, time.Since(c.start))
}

// run sends the rest of the answer.
func (s *stream) run() {
	ended := func(string) {}
	if s.book.Began != nil {
		ended = s.book.Began(s.call.op.Name)
	}
	reason := EndLeft
	if s.call.request.Method != http.MethodHead {
		reason = s.follow()
	}
	ended(reason)
	s.call.Log().Debug("stream ended", "operation", s.call.op.Name, "by", s.call.Author().String(), "reason", reason)
}

// follow sends what there is, and waits for more, until one of both ends it. It
// returns who did.
func (s *stream) follow() (reason string) {
	ctx := s.call.request.Context()
	timer := time.NewTimer(s.rest())
	defer timer.Stop()
	for {
		// What it may not see any more it must not be told, though both happen at
		// once.
		select {
		case <-s.look:
			if err := s.judge(); err != nil {
				return s.end(err, EndSession)
			}
		default:
		}
		if reason := s.take(); reason != "" {
			return reason
		}
		select {
		case <-ctx.Done():
			return EndLeft
		case <-s.stop:
			return s.end(errStopping, EndServer)
		case <-s.look:
			if err := s.judge(); err != nil {
				return s.end(err, EndSession)
			}
		case <-s.Wake:
		case <-timer.C:
			if err := s.judge(); err != nil {
				return s.end(err, EndSession)
			}
			if reason := s.write([]byte(":\n\n")); reason != "" {
				return reason
			}
			timer.Reset(s.rest())
		}
	}
}

// judge finds out whether the caller may still use the operation. That counts as use
// of its session: somebody reads what is sent.
func (s *stream) judge() error {
	err := s.call.api.recognise(s.call)
	// A snapshot that is held holds all that has changed since.
	s.call.Snap, s.call.present, s.call.memos = nil, nil, nil
	return err
}

// rest is how long there is nothing to do if nothing happens: until the next sign of
// life, or until time ends the caller's session.
func (s *stream) rest() time.Duration {
	if who, ok := s.call.Caller.(interface{ Expires() time.Time }); ok {
		return max(0, min(s.book.Pulse, time.Until(who.Expires())))
	}
	return s.book.Pulse
}

// take sends what there is; reason is why it was the last, empty if not.
func (s *stream) take() (reason string) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	var err error
	*buf, err = s.Take((*buf)[:0])
	if reason := s.write(*buf); reason != "" {
		return reason
	}
	if err != nil {
		return s.end(err, EndSource)
	}
	return ""
}

// end tells the client why there is no more.
func (s *stream) end(err error, reason string) string {
	if s.call.request.Context().Err() != nil {
		return EndLeft
	}
	f, ours := errors.AsType[*fault.Error](err)
	if !ours {
		s.call.Log().Error("stream failed", "error", err)
		f = fault.New(fault.CodeUnhandled, "")
	}
	said := f.Reason
	if said == "" {
		said = answers[f.Code].says
	}
	last := AppendEvent(nil, "end", "", func(dst []byte) []byte {
		dst = kind.AppendText(append(dst, `{"code":`...), string(f.Code))
		return append(kind.AppendText(append(dst, `,"message":`...), said), '}')
	})
	if failed := s.write(last); failed != "" {
		return failed
	}
	return reason
}

// write sends some of the stream, within the time that the client has for it;
// reason is why it could not, empty if it could.
func (s *stream) write(part []byte) (reason string) {
	if len(part) == 0 {
		return ""
	}
	c, control, begun := s.call, http.NewResponseController(s.call.w), time.Now()
	_ = control.SetWriteDeadline(begun.Add(s.book.Patience))
	n, err := c.w.Write(part)
	c.bytes += n
	if err == nil {
		err = control.Flush()
	}
	switch {
	case err == nil:
		_ = control.SetWriteDeadline(time.Time{}) // or waiting would count
		return ""
	case errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) >= s.book.Patience:
		return EndSlow
	}
	return EndLeft
}
