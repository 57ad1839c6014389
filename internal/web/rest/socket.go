package rest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gorilla/websocket"

	"netkeep.internal/internal/lang/fault"
)

// Socket answers with a websocket, on which both ends send messages for as long as the
// caller likes and may use the operation. It is a stream that hears, and is bounded and
// judged as any other. Hear and Take are called one at a time.
type Socket struct {
	// Wake has one when there may be something to send.
	Wake <-chan struct{}
	// Take returns the next message to send; none if there is none at present. After an
	// error there is no more.
	Take func() ([]byte, error)
	// Hear takes a message of the client. It must be quick. After an error there is no
	// more.
	Hear func(c *Call, message []byte) error
	// Over, if set, is called in the end, whatever that is.
	Over func()
}

// ErrSlow says that a client does not read what it has asked for.
var ErrSlow = errors.New("the client does not read as fast as there is something to say")

// maxHeard is the largest message of a client.
const maxHeard = 64 << 10

var errNoSocket = fault.Invalid("Upgrade", "must be websocket, over HTTP/1.1", nil)

func (Socket) describe(*operation) {}

func (s Socket) send(c *Call) error {
	one := &stream{
		Stream: Stream{Over: s.Over}, call: c, book: c.api.Streams, who: c.Author().ID, party: c.Party(),
		look: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	r := c.whole
	// A page of somebody else cannot name a session, but need not be talked to either.
	if origin := r.Header.Get("Origin"); !websocket.IsWebSocketUpgrade(r) || r.ProtoMajor != 1 || origin != "" && origin != "https://"+r.Host {
		one.close()
		return errNoSocket
	}
	if err := one.book.enter(one); err != nil {
		one.close()
		return err
	}
	c.request = r
	c.letGo()
	if err := one.judge(); err != nil {
		one.leave()
		return err
	}
	upgrade := websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10, HandshakeTimeout: one.book.Patience, Error: func(http.ResponseWriter, *http.Request, int, error) {}}
	conn, err := upgrade.Upgrade(hijackable{c.w}, r, nil)
	if err != nil {
		one.leave()
		return errNoSocket
	}
	_ = conn.NetConn().SetDeadline(time.Time{}) // the server's own are on requests
	c.api.answered(c, time.Since(c.start))
	ctx, cancel := context.WithCancel(context.Background())
	one.book.mu.Lock()
	one.cut = func() { _ = conn.Close() }
	one.book.mu.Unlock()
	one.call = c.apart(ctx, &taken{conn.NetConn(), http.Header{}})
	go s.run(one, conn, cancel)
	return nil
}

// hijackable lets a connection be taken over through what is around the answer.
type hijackable struct{ http.ResponseWriter }

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// run talks until one of both ends it.
func (s Socket) run(one *stream, conn *websocket.Conn, cancel context.CancelFunc) {
	defer one.leave()
	heard, over := make(chan []byte), make(chan struct{})
	conn.SetReadLimit(maxHeard)
	go func() {
		defer close(over)
		defer cancel()
		for {
			typ, text, err := conn.ReadMessage()
			if err != nil || typ != websocket.BinaryMessage {
				return
			}
			select {
			case heard <- text:
			case <-one.call.Context().Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		_ = conn.Close()
		<-over
	}()
	defer func() {
		if p := recover(); p != nil {
			one.call.Log().Error("a websocket panicked", "panic", p)
		}
	}()
	ended := func(string) {}
	if one.book.Began != nil {
		ended = one.book.Began(one.call.op.Name)
	}
	reason, why := s.talk(one, conn, heard)
	ended(reason)
	if why != "" {
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, why[:min(len(why), 120)]), time.Now().Add(time.Second))
	}
	one.call.Log().Debug("websocket ended", "operation", one.call.op.Name, "by", one.call.Author().String(), "reason", reason)
}

// talk sends and hears; it returns who ended it, and what the client is told.
func (s Socket) talk(one *stream, conn *websocket.Conn, heard <-chan []byte) (reason, why string) {
	timer := time.NewTimer(one.rest())
	defer timer.Stop()
	for {
		// What it may not see any more it must not be told, though both happen at once.
		select {
		case <-one.look:
			if err := one.judge(); err != nil {
				return EndSession, err.Error()
			}
		default:
		}
		next, err := s.Take()
		switch {
		case errors.Is(err, ErrSlow):
			return EndSlow, err.Error()
		case err != nil:
			return EndSource, err.Error()
		case next != nil:
			if reason := say(one, conn, next); reason != "" {
				return reason, ""
			}
			continue
		}
		select {
		case <-one.call.Context().Done():
			return EndLeft, ""
		case <-one.stop:
			return EndServer, errStopping.Error()
		case <-one.look:
			if err := one.judge(); err != nil {
				return EndSession, err.Error()
			}
		case <-s.Wake:
		case text := <-heard:
			if err := s.Hear(one.call, text); err != nil {
				return EndSource, err.Error()
			}
		case <-timer.C:
			if err := one.judge(); err != nil {
				return EndSession, err.Error()
			}
			if err := conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(one.book.Patience)); err != nil {
				return EndLeft, ""
			}
			timer.Reset(one.rest())
		}
	}
}

// say sends a message within the time that the client has for it.
func say(one *stream, conn *websocket.Conn, text []byte) (reason string) {
	_ = conn.SetWriteDeadline(time.Now().Add(one.book.Patience))
	switch err := conn.WriteMessage(websocket.BinaryMessage, text); {
	case err == nil:
		return ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return EndSlow
	}
	return EndLeft
}
