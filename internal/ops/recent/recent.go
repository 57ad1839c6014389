// Package recent remembers the last day of a controller: how many logged in and dialled,
// were refused, what services carried and how slow links were, minute by minute. It owns
// a ring of minutes in memory, which takes the same room whatever happens, and is gone
// with the process. It counts nothing itself: it reads what others have counted since
// the start, and keeps how much that grew. It must not import anything of ours.
package recent

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// Minutes is how many are remembered.
	Minutes = 24 * 60
	// MaxServices is how many services are told apart. The rest are one.
	MaxServices = 200
	// Other is what stands for the services that are not told apart.
	Other = ""
)

// Totals is what was counted since the controller started, and what is so now.
type Totals struct {
	Logins, LoginsRefused uint64
	Dials, DialsRefused   uint64
	// Carried is bytes by the id of their service, in both directions.
	Carried map[string]uint64
	// Circuits are those that there are, Slowest and Median how long links take.
	Circuits        int
	Slowest, Median time.Duration
}

// Minute is what happened in one, or in several together: of what grows how much it did,
// and of the rest the most that there was.
type Minute struct {
	Logins, LoginsRefused uint64
	Dials, DialsRefused   uint64
	Bytes                 uint64
	Circuits              int
	Slowest, Median       time.Duration
}

// add takes in another minute.
func (m *Minute) add(o Minute) {
	m.Logins += o.Logins
	m.LoginsRefused += o.LoginsRefused
	m.Dials += o.Dials
	m.DialsRefused += o.DialsRefused
	m.Bytes += o.Bytes
	m.Circuits = max(m.Circuits, o.Circuits)
	m.Slowest, m.Median = max(m.Slowest, o.Slowest), max(m.Median, o.Median)
}

// Day is the last one.
type Day struct {
	read func() Totals
	now  func() time.Time

	mu       sync.Mutex
	began    time.Time
	last     Totals
	at       int64 // the newest minute, counted from 1970
	minutes  [Minutes]Minute
	services map[string]*series
}

// series is what one service carried in each minute.
type series [Minutes]uint64

func (s *series) total() (sum uint64) {
	for _, n := range s {
		sum += n
	}
	return sum
}

// New returns a day in which nothing has happened before now.
func New(read func() Totals, now func() time.Time) *Day {
	began := now()
	return &Day{read: read, now: now, began: began, at: minuteOf(began), services: map[string]*series{}}
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// Run looks once a minute until ctx ends.
func (d *Day) Run(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			d.Look()
		}
	}
}

// Look takes in what has happened since the last look, for the minute that it is.
func (d *Day) Look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.look()
}

func (d *Day) look() {
	now := d.read()
	d.turn(minuteOf(d.now()))
	d.minutes[d.at%Minutes].add(Minute{
		Logins: grown(d.last.Logins, now.Logins), LoginsRefused: grown(d.last.LoginsRefused, now.LoginsRefused),
		Dials: grown(d.last.Dials, now.Dials), DialsRefused: grown(d.last.DialsRefused, now.DialsRefused),
		Circuits: now.Circuits, Slowest: now.Slowest, Median: now.Median,
	})
	for id, bytes := range now.Carried {
		if n := grown(d.last.Carried[id], bytes); n > 0 {
			d.minutes[d.at%Minutes].Bytes += n
			d.of(id)[d.at%Minutes] += n
		}
	}
	d.last = now
}

// grown is by how much a count grew. One that is smaller than before has begun anew.
func grown(before, now uint64) uint64 {
	if now < before {
		return now
	}
	return now - before
}

// turn begins the minutes up to one. A clock that went back goes on with the newest.
func (d *Day) turn(to int64) {
	if to-d.at > Minutes {
		d.at = to - Minutes
	}
	for d.at < to {
		d.at++
		d.minutes[d.at%Minutes] = Minute{}
		for _, s := range d.services {
			s[d.at%Minutes] = 0
		}
	}
}

// of is the series of a service. Where there are too many, the one that carried least
// becomes one of the others.
func (d *Day) of(id string) *series {
	if s := d.services[id]; s != nil {
		return s
	}
	if id != Other && len(d.services) >= MaxServices {
		least, ids := uint64(0), make([]string, 0, len(d.services))
		for other := range d.services {
			ids = append(ids, other)
		}
		slices.Sort(ids)
		gone := Other
		for _, other := range ids {
			if n := d.services[other].total(); other != Other && (gone == Other || n < least) {
				gone, least = other, n
			}
		}
		rest := d.services[gone]
		delete(d.services, gone)
		into := d.of(Other)
		for i, n := range rest {
			into[i] += n
		}
	}
	s := new(series)
	d.services[id] = s
	return s
}

// Report is the last day in steps.
type Report struct {
	Began time.Time // since when it is known what happened
	From  time.Time // when the first step began
	Step  time.Duration
	Steps []Minute
	// Services are those that carried something, the one with most first.
	Services []Service
}

// Service is what one carried.
type Service struct {
	ID    string // Other for those that are not told apart
	Bytes uint64
	Steps []uint64
}

// Report looks, and tells of the last day in steps of so many minutes, which must be a
// divisor of an hour.
func (d *Day) Report(minutes int) Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.look()
	step, n := int64(minutes), Minutes/minutes
	first := (d.at/step - int64(n) + 1) * step
	r := Report{Began: d.began, From: time.Unix(first*60, 0).UTC(), Step: time.Duration(minutes) * time.Minute, Steps: make([]Minute, n)}
	for m := first; m <= d.at; m++ {
		r.Steps[(m-first)/step].add(d.minutes[m%Minutes])
	}
	for id, s := range d.services {
		one := Service{ID: id, Steps: make([]uint64, n)}
		for m := first; m <= d.at; m++ {
			one.Steps[(m-first)/step] += s[m%Minutes]
			one.Bytes += s[m%Minutes]
		}
		if one.Bytes > 0 {
			r.Services = append(r.Services, one)
		}
	}
	slices.SortFunc(r.Services, func(a, b Service) int {
		switch {
		case a.Bytes != b.Bytes && a.Bytes > b.Bytes:
			return -1
		case a.Bytes != b.Bytes:
			return 1
		case a.ID < b.ID:
			return -1
		}
		return 1
	})
	return r
}
