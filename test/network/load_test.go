package network

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// lane is a client that connections are led through.
type lane struct {
	sdk, at string // which one, and at which kind of router
	address string
}

func (l *lane) String() string { return l.sdk + " at " + l.at }

// dialTime is how long any dial may take.
const dialTime = 40 * time.Second

// dial connects to a service.
func (l *lane) dial(service string) (*line, error) {
	conn, err := net.DialTimeout("tcp", l.address, dialTime)
	if err != nil {
		return nil, err
	}
	made := &line{Conn: conn, in: bufio.NewReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(dialTime))
	_, err = fmt.Fprintln(conn, service)
	said := ""
	if err == nil {
		said, err = made.in.ReadString('\n')
	}
	if err == nil && said != "+\n" {
		err = fmt.Errorf("%s", strings.TrimSpace(said))
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return made, nil
}

// line is a connection to a service that sends back what it gets.
type line struct {
	net.Conn
	in *bufio.Reader
}

// silence is how long a word may take.
const silence = 30 * time.Second

// echo sends a word and waits for it.
func (l *line) echo() error {
	const word = "a word or two"
	_ = l.SetDeadline(time.Now().Add(silence))
	if _, err := io.WriteString(l, word); err != nil {
		return err
	}
	back := make([]byte, len(word))
	if _, err := io.ReadFull(l.in, back); err != nil {
		return err
	}
	if string(back) != word {
		return fmt.Errorf("%q came back for %q", back, word)
	}
	return nil
}

// incident is something that went wrong.
type incident struct {
	*lane
	at  time.Time // when it began, or when it last went well
	err error
}

// traffic is what goes over a network all the time.
type traffic struct {
	t     *testing.T
	lanes []*lane
	stop  chan struct{}
	done  sync.WaitGroup

	mu     sync.Mutex
	open   []*line
	dials  map[*lane]int
	failed []incident // dials
	broken []incident // connections
	slow   time.Duration
}

// begin opens connections, and dials so often in a second, all the time.
func begin(t *testing.T, lanes []*lane, service string, connections, dials int) *traffic {
	t.Helper()
	f := &traffic{t: t, lanes: lanes, stop: make(chan struct{}), dials: map[*lane]int{}}
	t.Cleanup(f.end)
	for i := range connections {
		l := lanes[i%len(lanes)]
		conn, err := l.dial(service)
		if err != nil {
			t.Fatalf("connection %d, %v: %v", i, l, err)
		}
		f.hold(l, conn)
	}
	every := time.Second * time.Duration(len(lanes)) / time.Duration(dials)
	for _, l := range lanes {
		f.done.Go(func() { f.dial(l, service, every) })
	}
	return f
}

// hold keeps a connection busy until the end.
func (f *traffic) hold(l *lane, conn *line) {
	f.mu.Lock()
	f.open = append(f.open, conn)
	f.mu.Unlock()
	f.done.Go(func() {
		last := time.Now()
		for f.wait(500 * time.Millisecond) {
			if err := conn.echo(); err != nil {
				f.mu.Lock()
				defer f.mu.Unlock()
				if !f.over() {
					f.broken = append(f.broken, incident{l, last, err})
				}
				return
			}
			last = time.Now()
		}
	})
}

// wait waits; it is false in the end.
func (f *traffic) wait(d time.Duration) bool {
	select {
	case <-f.stop:
		return false
	case <-time.After(d):
		return true
	}
}

func (f *traffic) over() bool {
	select {
	case <-f.stop:
		return true
	default:
		return false
	}
}

// dial dials again and again, whatever becomes of the dials before.
func (f *traffic) dial(l *lane, service string, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
		}
		f.done.Go(func() {
			began := time.Now()
			conn, err := l.dial(service)
			if err == nil {
				err = conn.echo()
				_ = conn.Close()
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.dials[l]++
			f.slow = max(f.slow, time.Since(began))
			if err != nil {
				f.failed = append(f.failed, incident{l, began, err})
			}
		})
	}
}

// end closes all connections and dials no more.
func (f *traffic) end() {
	f.mu.Lock()
	if f.over() {
		f.mu.Unlock()
		return
	}
	close(f.stop)
	for _, conn := range f.open {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.done.Wait()
}

// take returns what went wrong since it was asked last, of the dials that are over,
// and how long the longest of them took.
func (f *traffic) take() (dials int, failed, broken []incident, slow time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range maps.Values(f.dials) {
		dials += n
	}
	failed, broken, slow = f.failed, f.broken, f.slow
	f.failed, f.broken, f.slow, f.dials = nil, nil, 0, map[*lane]int{}
	return dials, failed, broken, slow
}

// told is what went wrong, by lane, with the time since something else and the first
// reason.
func told(incidents []incident, since time.Time) string {
	by, why := map[string][]string{}, map[string]error{}
	for _, i := range incidents {
		name := i.String()
		if by[name] == nil {
			why[name] = i.err
		}
		by[name] = append(by[name], fmt.Sprintf("%.1f", i.at.Sub(since).Seconds()))
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%d of %s (at %s s: %v)", len(by[name]), name, strings.Join(by[name], ", "), why[name]))
	}
	if all == nil {
		return "none"
	}
	return strings.Join(all, ", ")
}
