package limit

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// Bodies is the bodies of requests that arrive or are worked on, or those of
// answers that are sent: how many bytes they may take together, and how many may
// be on their way at a time. Another finds room as long as one of those can give
// way: of the party that has most, the one that has been on its way for longest.
// So a body that is sent or taken at once passes those that never are. The zero
// value allows none.
type Bodies struct {
	Bytes int64
	Max   int
	Share Share // of the bytes
	Now   func() time.Time

	mu     sync.Mutex
	used   int64
	moving int
	crowd  crowd[*transfer] // what parties hold, and what of it is on its way
}

// ErrSlow says that a body was too slow to be waited for, or that it had to
// give way because it was the slowest.
var ErrSlow = errors.New("limit: the body did not arrive in time")

// Pace is how fast a body must arrive.
type Pace struct {
	First time.Duration // it may take as long as that in any case
	Least int64         // and longer if so many bytes come a second; 0 if not
	Last  time.Duration // but never longer than that
}

// until is when a body must be there, or more of it than is now.
func (p Pace) until(start time.Time, got int) time.Time {
	patience := p.First
	if p.Least > 0 {
		patience = min(p.Last, p.First+time.Duration(got)*time.Second/time.Duration(p.Least))
	}
	return start.Add(patience)
}

// Source is where a body comes from.
type Source struct {
	io.Reader
	// Size is how large it says that it is; below 1 if it does not say.
	Size int64
	// Until sets the time at which a Read fails, also one that waits, as
	// http.ResponseController.SetReadDeadline does.
	Until func(time.Time) error
}

// firstRead is how much room a body gets before it is known to need more.
const firstRead = 4 << 10

// Read reads a body of at most max bytes for a party and keeps room for it
// until it is released. A body that is larger is cut off after max+1 bytes. The
// room grows as the body arrives, so that a client which announces much and
// sends nothing takes little.
func (b *Bodies) Read(p Party, from Source, max int64, pace Pace) (data []byte, release func(), err error) {
	a := &transfer{party: p, until: from.Until}
	if err := b.begin(a); err != nil {
		return nil, nil, err
	}
	data, err = b.read(a, from, max, pace)
	if b.end(a); a.out {
		err = ErrSlow // its room was given to another
	}
	if err = a.finish(err); err != nil {
		b.release(a)
		return nil, nil, err
	}
	return data, func() { b.release(a) }, nil
}

func (b *Bodies) read(a *transfer, from Source, max int64, pace Pace) (data []byte, err error) {
	start, room := b.Now(), int64(0)
	for {
		if int64(len(data)) == room {
			more := min(firstRead+room, max+1-room)
			if room == 0 && from.Size > 0 {
				more = min(more, from.Size) // all of it, mostly
			}
			if more <= 0 {
				return data, nil
			}
			if err := b.grow(a, more); err != nil {
				return nil, err
			}
			room += more
			data = append(make([]byte, 0, room), data...)
			if err := a.wait(pace.until(start, len(data))); err != nil {
				return nil, err
			}
		}
		n, err := from.Read(data[len(data):room])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// Hold keeps room for a body that is sent, until it is released. How long that
// takes is up to whoever takes it; should it have to give way, until sets the
// time at which a Write fails.
func (b *Bodies) Hold(p Party, size int, until func(time.Time) error) (release func(), err error) {
	a := &transfer{party: p, until: until}
	if err := b.begin(a); err != nil {
		return nil, err
	}
	release = func() {
		b.end(a)
		a.close()
		b.release(a)
	}
	// One that is larger than all may be is sent if there is no other.
	if err := b.grow(a, min(int64(size), b.Bytes)); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// begin finds a place for another body.
func (b *Bodies) begin(a *transfer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.moving >= b.Max {
		if !b.evict(a, b.crowd.first()) {
			return ErrFull
		}
	}
	b.moving++
	a.spare = b.crowd.offer(a.party, a, 0)
	return nil
}

// grow finds room for more of a body.
func (b *Bodies) grow(a *transfer, more int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a.out {
		return ErrSlow
	}
	// One body of the largest size is within any share.
	for b.crowd.holds(a.party) > a.holds && b.crowd.holds(a.party)+more > b.Share.of(b.Bytes) {
		if !b.evict(a, b.crowd.firstOf(a.party)) {
			return ErrShare
		}
	}
	for b.used+more > b.Bytes {
		if !b.evict(a, b.crowd.first()) {
			return ErrFull
		}
	}
	b.hold(a, more)
	return nil
}

// evict has a body give way to another. A body does not give way to one of
// lower rank, nor to itself.
func (b *Bodies) evict(newcomer *transfer, s *spare[*transfer]) bool {
	if s == nil || s.thing == newcomer || s.thing.party.Rank > newcomer.party.Rank {
		return false
	}
	a := s.thing
	b.withdraw(a)
	b.hold(a, -a.holds)
	a.out = true
	go a.cut() // which may have to wait for whoever reads or writes it
	return true
}

// hold notes what a body takes in addition.
func (b *Bodies) hold(a *transfer, more int64) {
	a.holds += more
	b.used += more
	b.crowd.add(a.party, more)
}

// withdraw notes that a body is not on its way any more.
func (b *Bodies) withdraw(a *transfer) {
	b.moving--
	b.crowd.withdraw(a.spare)
}

func (b *Bodies) end(a *transfer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !a.out {
		b.withdraw(a)
	}
}

func (b *Bodies) release(a *transfer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hold(a, -a.holds)
}

// Used is how many bytes are held now.
func (b *Bodies) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// transfer is a body on its way.
type transfer struct {
	party Party
	until func(time.Time) error

	// Of the books, and guarded with them.
	holds int64
	spare *spare[*transfer]
	out   bool // it had to give way

	mu   sync.Mutex
	gone bool // and whoever reads or writes it is told
	over bool // nobody does any more
}

// wait sets how long its reader may wait for more.
func (a *transfer) wait(until time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return ErrSlow
	}
	if err := a.until(until); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// cut ends the wait of its reader or writer, if there still is one.
func (a *transfer) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone = true; !a.over {
		_ = a.until(time.Unix(1, 0))
	}
}

// close says that it is not written any more.
func (a *transfer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// finish says that it is not read any more, and how that went. From then on
// its source is left alone.
func (a *transfer) finish(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.over = true; {
	case a.gone || errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSlow // and what is left of it is not waited for either
	case err == nil:
		_ = a.until(time.Time{}) // the work on the request has a limit of its own
	}
	return err
}
