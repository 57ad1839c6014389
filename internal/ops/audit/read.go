package audit

import (
	"context"
	"encoding/base64"
	"iter"

	"netkeep.internal/internal/model"
)

// Line is an entry to the letter: the entry after it has the digest of its text.
type Line struct {
	Number int64
	Text   []byte
}

// Entry reads it.
func (l Line) Entry() (*model.AuditEntry, error) { return line{l.Number, l.Text}.entry() }

// Digest is what the entry after it has in Previous.
func (l Line) Digest() string { return line{l.Number, l.Text}.digest().String() }

// untext reads a digest that an entry has; nil if it has none.
func untext(digest string) []byte {
	bytes, err := base64.RawStdEncoding.DecodeString(digest)
	if err != nil {
		return nil
	}
	return bytes
}

// First is the number of the first entry that the store has.
func First(head *model.AuditChain) int64 { return first(head) }

// Read yields the entries from one number to another, both among them, as far as
// they are there.
func (l *Log) Read(ctx context.Context, from, to int64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for at, err := range l.lines(ctx, span{from, to}, false) {
			if !yield(Line{at.number, at.text}, err) {
				return
			}
		}
	}
}

// Check looks at entries one after the other and says what is not as it was written.
type Check struct{ check check }

// NewCheck returns a check of entries from a number on, where the one before has the
// digest that is given; empty if that is not known.
func NewCheck(first int64, follows string) *Check {
	c := &Check{check{Verdict: Verdict{First: first}, next: first, digest: follows, held: follows != "" || first == 1}}
	return c
}

// Add looks at the next entry that there is.
func (c *Check) Add(l Line) { c.check.add(line{l.Number, l.Text}) }

// Lost takes note that entries are missing up to a number.
func (c *Check) Lost(to int64) { c.check.gap(to + 1) }

// End returns what there is to say. The digest is that of the last entry, empty if
// nobody vouches for it.
func (c *Check) End(digest string) Verdict {
	c.check.Last, c.check.Digest = c.check.next-1, c.check.digest
	if c.check.held && digest != "" {
		c.check.follow(digest, true)
	} else {
		c.check.leave()
	}
	return c.check.Verdict
}
