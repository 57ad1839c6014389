package limit

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// Bodies is the bodies of requests that are arriving or being worked on: how
// many bytes they may take together, and how many may arrive at a time. One
// that arrives finds room as long as another can give way: of the party that
// has most, the one that has been arriving for longest. So a body that is sent
// at once passes those that are never sent. The zero value allows none.
type Bodies struct {
	Bytes int64
	Max   int
	Share Share // of the bytes
	Now   func() time.Time

	mu       sync.Mutex
	used     int64
	arriving int
	crowd    crowd[*arrival] // what parties hold, and what of it is arriving
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
	a := &arrival{party: p, from: from}
	if err := b.begin(a); err != nil {
		return nil, nil, err
	}
	data, err = b.read(a, max, pace)
	if b.end(a); a.out {
		err = ErrSlow // its room was given to another
	}
	if err = a.finish(err); err != nil {
		b.release(a)
		return nil, nil, err
	}
	return data, func() { b.release(a) }, nil
}

func (b *Bodies) read(a *arrival, max int64, pace Pace) (data []byte, err error) {
	start, room := b.Now(), int64(0)
	for {
		if int64(len(data)) == room {
			more := min(firstRead+room, max+1-room)
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
		n, err := a.from.Read(data[len(data):room])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// begin finds a place for another body.
func (b *Bodies) begin(a *arrival) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.arriving >= b.Max {
		if !b.evict(a, b.crowd.first()) {
			return ErrFull
		}
	}
	b.arriving++
	a.spare = b.crowd.offer(a.party, a, 0)
	return nil
}

// grow finds room for more of a body.
func (b *Bodies) grow(a *arrival, more int64) error {
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
func (b *Bodies) evict(newcomer *arrival, s *spare[*arrival]) bool {
	if s == nil || s.thing == newcomer || s.thing.party.Rank > newcomer.party.Rank {
		return false
	}
	a := s.thing
	b.withdraw(a)
	b.hold(a, -a.holds)
	a.out = true
	go a.cut() // which may have to wait for its reader
	return true
}

// hold notes what a body takes in addition.
func (b *Bodies) hold(a *arrival, more int64) {
	a.holds += more
	b.used += more
	b.crowd.add(a.party, more)
}

// withdraw notes that a body is not arriving any more.
func (b *Bodies) withdraw(a *arrival) {
	b.arriving--
	b.crowd.withdraw(a.spare)
}

func (b *Bodies) end(a *arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !a.out {
		b.withdraw(a)
	}
}

func (b *Bodies) release(a *arrival) {
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

// arrival is a body that is arriving.
type arrival struct {
	party Party
	from  Source

	// Of the books, and guarded with them.
	holds int64
	spare *spare[*arrival]
	out   bool // it had to give way

	mu   sync.Mutex
	gone bool // and its reader is told
	over bool // it is not read any more
}

// wait sets how long its reader may wait for more.
func (a *arrival) wait(until time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return ErrSlow
	}
	if err := a.from.Until(until); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// cut ends the wait of its reader, if there still is one.
func (a *arrival) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone = true; !a.over {
		_ = a.from.Until(time.Unix(1, 0))
	}
}

// finish says that it is not read any more, and how that went. From then on
// its source is left alone.
func (a *arrival) finish(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.over = true; {
	case a.gone || errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSlow // and what is left of it is not waited for either
	case err == nil:
		_ = a.from.Until(time.Time{}) // the work on the request has a limit of its own
	}
	return err
}
