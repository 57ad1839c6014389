package model

import (
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// What a policy or a grant is at a moment.
const (
	Current  = "current"
	Upcoming = "upcoming"
	Over     = "over"
)

// Validity is from when and until when a record gives what it gives. What it is
// now is stored with it: access is found by indexes and follows changes of
// records, so the moment at which something begins or ends is a write as any
// other.
type Validity struct {
	// A tool that does not know the two and writes a record back as a whole must
	// not make for ever what was for an hour.
	ValidFrom  *time.Time `json:"validFrom" kind:"nullable,keep" doc:"When it begins to count, to the millisecond; null if at once. A replace without it leaves it as it is."`
	ValidUntil *time.Time `json:"validUntil" kind:"nullable,keep" doc:"When it ends to count, to the millisecond: what rests on it ends then; null if never. A replace without it leaves it as it is."`
	Standing   string     `json:"standing" kind:"server,enum=current|upcoming|over,default=current" doc:"Whether it counts now (current), not yet (upcoming) or no more (over); only what counts gives anybody anything."`
}

// Counts reports whether the record gives what it gives.
func (v *Validity) Counts() bool { return v.Standing != Upcoming && v.Standing != Over }

// Timed reports whether the record begins or ends by itself.
func (v *Validity) Timed() bool { return v.ValidFrom != nil || v.ValidUntil != nil }

// At is what the record is at a moment.
func (v *Validity) At(moment time.Time) string {
	switch {
	case v.ValidUntil != nil && !moment.Before(*v.ValidUntil):
		return Over
	case v.ValidFrom != nil && moment.Before(*v.ValidFrom):
		return Upcoming
	}
	return Current
}

// The groups in which records wait for their moments.
const (
	ToBegin = "begin "
	ToEnd   = "end "
)

// Place is where a moment comes in a group: texts in the order of times.
func Place(moment time.Time) string { return moment.UTC().Format("2006-01-02T15:04:05.000Z") }

// Ranked puts records in the order of their next moments, so that the next of
// all and how many end within a day are found without a look at every one.
func (v *Validity) Ranked() (group, place string) {
	switch {
	case v.Standing == Upcoming && v.ValidFrom != nil:
		return ToBegin, Place(*v.ValidFrom)
	case v.Counts() && v.ValidUntil != nil:
		return ToEnd, Place(*v.ValidUntil)
	}
	return "", ""
}

// settle makes the record what it is at the moment of a write, and refuses times
// at which it could never count. Only what is new must not be over.
func (v *Validity) settle(r kind.Reader, isNew bool) error {
	v.ValidFrom, v.ValidUntil = whole(v.ValidFrom), whole(v.ValidUntil)
	for field, t := range map[string]*time.Time{"validFrom": v.ValidFrom, "validUntil": v.ValidUntil} {
		if t != nil && (t.Year() > 9999 || t.Year() < 0) { // which a time of another zone may be
			return fault.Invalid(field, "must be in a year of four digits, in UTC too", t.Format(time.DateTime))
		}
	}
	if v.ValidFrom != nil && v.ValidUntil != nil && !v.ValidFrom.Before(*v.ValidUntil) {
		return fault.Invalid("validUntil", "must be after validFrom, which is "+v.ValidFrom.Format(time.RFC3339Nano), v.ValidUntil)
	}
	write, ok := r.(interface{ Now() time.Time })
	if !ok {
		return nil // somebody looks at what is stored
	}
	now := write.Now()
	v.Standing = v.At(now)
	if isNew && v.Standing == Over {
		return fault.Invalid("validUntil", "must be in the future: it is "+now.UTC().Format(time.RFC3339)+" now", v.ValidUntil)
	}
	return nil
}

// whole is a time as answers show it. Finer ones could not be told from each
// other.
func whole(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	w := t.UTC().Truncate(time.Millisecond)
	return &w
}
