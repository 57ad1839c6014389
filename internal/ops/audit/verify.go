package audit

import (
	"context"
	"encoding/base64"
	"math"
	"slices"

	"netkeep.internal/internal/model"
)

// maxFlaws is how many flaws are listed.
const maxFlaws = 100

// Flaw is something that is wrong with the log.
type Flaw struct {
	From, To int64 // numbers of the entries that it is about
	What     string
}

// Verdict is what there is to say of the log.
type Verdict struct {
	First, Last int64  // numbers of the entries that there should be
	Digest      string // of the last
	Found       int64  // how many were read
	Flaws       []Flaw // the first of them
	More        bool   // whether there are others
}

// What may be wrong with entries.
const (
	missing    = "missing"
	altered    = "not as written"
	unreadable = "not readable"         // the block that holds them
	misfiled   = "not filed as written" // so that filters do not find them
)

// Place is how far the log was read: the number of the next entry, and the digest of the
// one before it, empty if that is not known. The zero value is the beginning.
type Place struct {
	Next    int64
	Follows string
}

// APart is about how many bytes of entries are read for one answer, however many there
// are: on one core that takes a second.
const APart = 64 << 20

// Verify reads the whole log and says what is not as it was written.
func (l *Log) Verify(ctx context.Context) (Verdict, error) {
	v, _, err := l.VerifyPart(ctx, Place{}, math.MaxInt64)
	return v, err
}

// VerifyPart reads the log from a place on until it has read so many bytes of entries, and
// says what is not as it was written of those. The place is where to go on, the zero value
// if that was the end.
func (l *Log) VerifyPart(ctx context.Context, at Place, most int64) (Verdict, Place, error) {
	snap, err := l.State.Current(ctx)
	if err != nil {
		return Verdict{}, Place{}, err
	}
	head := Head(snap)
	c := check{Verdict: Verdict{First: first(head), Last: head.Last, Digest: text(head.Digest)}}
	if c.next, c.digest, c.held = at.Next, at.Follows, at.Follows != ""; c.next <= c.First { // what was before is forgotten
		c.next, c.digest, c.held = c.First, text(head.Before), true
	}
	if c.next > c.Last+1 { // somebody has seen those between
		c.flaw(c.Last+1, c.next-1, missing)
		c.held = false
	}
	stopped := false
	err = l.readBy(ctx, span{c.next, c.Last}, false, manyBlocks, func(b *model.AuditBlock, in span) (int, bool) {
		lines, err := linesOf(b)
		if err != nil {
			c.lose(numberOf(b.ID), min(max(b.Last, in.from), c.Last), unreadable)
			return 0, true
		}
		said, err := filedIn(b)
		for i, at := range lines {
			if in.from > at.number || at.number > in.to {
				continue
			}
			most -= int64(len(at.text))
			if entry := c.add(at); err == nil && entry != nil && (i >= len(said.times) || !said.tells(i, entry)) {
				c.flaw(at.number, at.number, misfiled)
			}
		}
		stopped = most <= 0 && c.next <= c.Last && c.held && !c.broken // of others the next entry tells what is wrong
		return len(lines), !stopped
	})
	if err != nil {
		return Verdict{}, Place{}, err
	}
	next := Place{c.next, c.digest}
	if !stopped {
		next = Place{}
		c.gap(c.Last + 1)
		if c.held {
			c.follow(c.Digest, true)
		}
	}
	c.forgive(first(Head(l.State.Snapshot())))
	return c.Verdict, next, nil
}

// text is a digest as entries have it.
func text(digest []byte) string { return base64.RawStdEncoding.EncodeToString(digest) }

// check is the log up to an entry, the last one. Each entry but the last is vouched
// for by the one after it, which has its digest. Where that is another one, either of
// the two was altered: the one after is vouched for in its turn, or is not.
type check struct {
	Verdict
	next   int64  // number of the entry after the last one
	digest string // of the last one
	held   bool   // whether the last one can be compared with
	broken bool   // whether it has another digest than that of the one before it
	plain  plain
}

// add looks at an entry and returns it, nil if it cannot be read. It is good until the next.
func (c *check) add(at line) *model.AuditEntry {
	c.gap(at.number)
	entry, err := c.plain.of(at)
	if err != nil || entry.Number != at.number || entry.ID != ID(at.number) {
		c.leave()
		c.flaw(at.number, at.number, altered)
	} else {
		if c.held {
			c.follow(entry.Previous, false)
		}
		c.held = true
	}
	c.next, c.digest = at.number+1, at.digest().String()
	c.Found++
	return entry
}

// gap takes note of what is missing before an entry.
func (c *check) gap(before int64) { c.lose(c.next, before-1, missing) }

// lose takes note of entries that are not there, and of those that are missing before.
func (c *check) lose(from, to int64, what string) {
	if to < c.next {
		return
	}
	c.leave()
	c.flaw(c.next, from-1, missing)
	c.flaw(max(c.next, from), to, what)
	c.next = to + 1
}

// leave gives up on the last entry, for which nobody vouches.
func (c *check) leave() {
	if c.held && c.broken {
		c.flaw(c.next-2, c.next-1, altered)
	}
	c.held, c.broken = false, false
}

// follow compares the last entry with the digest that the one after it has. That
// one may itself be altered, unless it is sure.
func (c *check) follow(digest string, sure bool) {
	last := c.next - 1
	switch same := digest == c.digest; {
	case c.broken && same:
		c.flaw(last-1, last-1, altered)
		c.broken = false
	case c.broken: // nobody vouches for what it says of the one before
		c.flaw(last-1, last, altered)
		c.broken = false
	case !same && sure:
		c.flaw(last, last, altered)
	case !same && last < c.First: // what was there before is vouched for by who has removed it
		c.flaw(c.First, c.First, altered)
	default:
		c.broken = !same
	}
}

// flaw adds one.
func (c *check) flaw(from, to int64, what string) {
	if from > to {
		return
	}
	if n := len(c.Flaws); n > 0 && c.Flaws[n-1].What == what && c.Flaws[n-1].To+1 == from {
		c.Flaws[n-1].To = to
		return
	}
	if c.More = len(c.Flaws) == maxFlaws; !c.More {
		c.Flaws = append(c.Flaws, Flaw{max(from, c.First), to, what})
	}
}

// forgive takes back what is said of entries that are forgotten by now.
func (c *check) forgive(before int64) {
	c.Flaws = slices.DeleteFunc(c.Flaws, func(f Flaw) bool { return f.To < before })
}
