package kind

import (
	"cmp"
	"time"

	"netkeep.internal/internal/lang/pack"
)

// Moment is a time in eight bytes, for fields of which there are very many; it is stored and
// shown as a time.Time in UTC is. It counts from the year 1, so that the zero is that of
// time.Time: to the nanosecond in the years that most records are of, which may have been
// taken over with as much, and to the microsecond before and after them, since a certificate
// that never ends is of the year 9999. A later moment has a greater count.
type Moment struct{ count int64 }

const (
	yearOne = -62_135_596_800 // in Unix time

	// In seconds from the year 1, the span of which there is a count to the nanosecond: from
	// 1900 until 2172.
	fineFrom = 59_926_608_000
	fineTill = fineFrom + 1<<33

	// The counts at its ends.
	fineFirst = fineFrom * 1e6
	fineEnd   = fineFirst + 1<<33*1e9
)

// What a date-time can say.
var (
	firstTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// MomentOf is the moment of a time. Of one that no date-time in UTC can say it is the nearest that
// one can, so that whatever is read can be written again: to lose a record, or the login of
// somebody whose token ends after the year 9999, would be worse than to be wrong about times
// that far away.
func MomentOf(t time.Time) Moment {
	switch {
	case t.Before(firstTime):
		t = firstTime
	case t.After(lastTime):
		t = lastTime
	}
	seconds, nanos := t.Unix()-yearOne, int64(t.Nanosecond())
	switch {
	case seconds < fineFrom:
		return Moment{seconds*1e6 + nanos/1e3}
	case seconds < fineTill:
		return Moment{fineFirst + (seconds-fineFrom)*1e9 + nanos}
	}
	return Moment{fineEnd + (seconds-fineTill)*1e6 + nanos/1e3}
}

// Time is the moment as a time in UTC.
func (m Moment) Time() time.Time {
	switch {
	case m.count < fineFirst:
		return time.UnixMicro(yearOne*1e6 + m.count).UTC()
	case m.count < fineEnd:
		n := m.count - fineFirst
		return time.Unix(yearOne+fineFrom+n/1e9, n%1e9).UTC()
	}
	n := m.count - fineEnd
	return time.Unix(yearOne+fineTill+n/1e6, n%1e6*1e3).UTC()
}

// IsZero reports whether it is no moment, as that of a zero time.Time is.
func (m Moment) IsZero() bool { return m == Moment{} }

// Compare is negative if m is before another moment, and positive if it is after it.
func (m Moment) Compare(other Moment) int { return cmp.Compare(m.count, other.count) }

// Before reports whether m is before another moment.
func (m Moment) Before(other Moment) bool { return m.count < other.count }

// After reports whether m is after another moment.
func (m Moment) After(other Moment) bool { return m.count > other.count }

// Equal reports whether both are the same moment.
func (m Moment) Equal(other Moment) bool { return m == other }

func (m Moment) String() string { return m.Time().String() }

// MarshalText writes the moment as a time.Time is, for what is JSON without being a kind's.
func (m Moment) MarshalText() ([]byte, error) { return m.Time().MarshalText() }

// UnmarshalText reads a time as time.Time does.
func (m *Moment) UnmarshalText(text []byte) error {
	var t time.Time
	if err := t.UnmarshalText(text); err != nil {
		return err
	}
	*m = MomentOf(t)
	return nil
}

// Pack packs the moment as its count.
func (m *Moment) Pack(w *pack.Writer) { w.Number(m.count) }

// Unpack reads a moment that was packed.
func (m *Moment) Unpack(r *pack.Reader) { m.count = r.Number() }
