package limit

import (
	"errors"
	"io"
	"sync/atomic"
)

// Slots is how many may do something at a time. The zero value lets nobody.
type Slots struct {
	Max int64

	taken atomic.Int64
}

// Take takes a slot if one is free. Whoever got one gives it back with Leave.
func (s *Slots) Take() bool {
	if s.taken.Add(1) > s.Max {
		s.taken.Add(-1)
		return false
	}
	return true
}

// Leave gives a slot back.
func (s *Slots) Leave() { s.taken.Add(-1) }

// Memory is how many bytes the bodies of all requests may take together. The
// zero value allows none.
type Memory struct {
	Bytes int64

	used atomic.Int64
}

// ErrFull says that there is no room for more at the moment.
var ErrFull = errors.New("limit: there is no room for more request bodies")

// firstRead is how much room a body gets before it is known to need more.
const firstRead = 4 << 10

// ReadAll reads a body of at most max bytes and keeps room for it until it is
// released. A body that is larger is cut off after max+1 bytes. The room for a
// body grows as it arrives, so that a client which announces much and sends
// nothing takes none.
func (m *Memory) ReadAll(r io.Reader, max int64) (data []byte, release func(), err error) {
	held := int64(0)
	release = func() { m.used.Add(-held) }
	for {
		if int64(len(data)) == held {
			more := min(firstRead+held, max+1-held)
			if more <= 0 {
				return data, release, nil
			}
			if m.used.Add(more) > m.Bytes {
				m.used.Add(-more)
				return nil, release, ErrFull
			}
			held += more
			data = append(make([]byte, 0, held), data...)
		}
		n, err := r.Read(data[len(data):held])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF):
			return data, release, nil
		case err != nil:
			return nil, release, err
		}
	}
}

// Used is how many bytes are held now.
func (m *Memory) Used() int64 { return m.used.Load() }
