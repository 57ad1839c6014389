package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Event is one of a stream that a controller sends as it happens.
type Event struct {
	ID   string // to go on from, at whichever controller
	Name string
	Data []byte
}

// EventEnd is the name of the last event of a stream that the controller ends. Its
// data says why.
const EventEnd = "end"

const (
	// silence is how long nothing may come of a stream, not even a sign of life,
	// before it is taken for broken.
	silence = 45 * time.Second
	// maxEvent is how large one event may be.
	maxEvent = 8 << 20
)

// ErrNoStream is where an answer is not a stream.
var ErrNoStream = errors.New("the controller does not answer with a stream of events")

// errSilent is that nobody is there any more, or something between is not.
var errSilent = fmt.Errorf("%w: nothing came for %s", ErrUnreachable, silence)

// Stream makes a request whose answer is a stream, and has fn told of its events
// until ctx ends, fn fails or the stream does. begun, if not nil, is called when the
// controller has agreed to it. A stream that ends is an error too, ErrUnreachable: it
// can be had again, there or at another controller.
func (c *Client) Stream(ctx context.Context, r Request, begun func(), fn func(Event) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.stream = true
	if r.Header == nil {
		r.Header = map[string]string{}
	}
	r.Header["Accept"] = "text/event-stream"
	body, err := c.open(ctx, r)
	if err != nil {
		return err
	}
	defer body.Close()
	if begun != nil {
		begun()
	}
	watchdog := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watchdog.Stop()
	err = readEvents(&waking{body, func() { watchdog.Reset(silence) }}, fn)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// waking tells of everything that comes.
type waking struct {
	io.Reader
	came func()
}

func (w *waking) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.came()
	}
	return n, err
}

// readEvents reads the events of a stream until that ends or fn fails.
func readEvents(from io.Reader, fn func(Event) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	var next Event
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			if next.Name == "" && next.Data == nil {
				continue // after a sign of life
			}
			if err := fn(next); err != nil {
				return err
			}
			next = Event{}
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			next.ID = value
		case "event":
			next.Name = value
		case "data":
			if next.Data != nil {
				next.Data = append(next.Data, '\n')
			}
			next.Data = append(next.Data, value...)
		}
		if len(next.Data) > maxEvent {
			return fmt.Errorf("the controller sends an event of more than %d bytes", maxEvent)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return fmt.Errorf("the controller sends an event of more than %d bytes", maxEvent)
		}
		return fmt.Errorf("%w: the stream broke off: %w", ErrUnreachable, err)
	}
	return fmt.Errorf("%w: the controller ended the stream", ErrUnreachable)
}

// isStream reports whether an answer is one that goes on.
func isStream(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}
