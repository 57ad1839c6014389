// Package lint looks a network over for what its people did not mean or have forgotten:
// policies that give nobody anything, roles that nobody has, services that nobody may
// use, what is about to end. Each finding says why it matters and which command mends
// it. A finding is no mistake of a record, which would have been refused, and stands in
// the way of nothing.
//
// It is a function of a snapshot and a moment, by the bitmaps and indexes of package
// access, and owns nothing. Its cost grows with the network and not with the square of
// it. It must not import authn, rest or anything of the APIs: who may ask is for those
// who take requests.
package lint

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/advice"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// MaxListed is how many findings of a check are named; the others are counted.
const MaxListed = 100

// The times that findings go by.
const (
	// EndsSoon is how long before its end something is told of.
	EndsSoon = 14 * 24 * time.Hour
	// OldPassword is how long a password may stay the same.
	OldPassword = 365 * 24 * time.Hour
	// Unseen is how long an identity may stay away.
	Unseen = 90 * 24 * time.Hour
)

// Finding is something that should be looked at.
type Finding struct {
	Def      *kind.Def // of the record that it is about
	ID, Name string
	What     string // in a sentence
	Command  string // that mends it
}

// Check is one kind of findings.
type Check struct {
	Name string
	Why  string // it matters
	// Count is how many there are, and Listed the first of them by name.
	Count  int
	Listed []Finding
}

// check is how findings are found.
type check struct {
	name, why string
	find      func(*look, func(Finding))
}

// look is at one network at one moment.
type look struct {
	snap *state.Snapshot
	now  time.Time
	gaps map[string]bool // whether a role of a list, by kind and role, is nobody's
	// What several checks ask for: what policies give by their ids, by what those are
	// shadowed that are, and the policies of identities.
	scopes     map[string]scope
	shadows    map[string]string
	byIdentity map[string][]*model.ServicePolicy
}

// Run looks a network over at a moment. All checks are told of, with those that found
// nothing.
func Run(snap *state.Snapshot, now time.Time) []Check {
	l := &look{snap: snap, now: now, gaps: map[string]bool{}, scopes: map[string]scope{}, byIdentity: map[string][]*model.ServicePolicy{}}
	all := make([]Check, 0, len(checks))
	for _, c := range checks {
		out := Check{Name: c.name, Why: c.why}
		c.find(l, func(f Finding) {
			out.Count++
			out.add(f)
		})
		slices.SortFunc(out.Listed, Finding.compare)
		out.Listed = out.Listed[:min(len(out.Listed), MaxListed)]
		all = append(all, out)
	}
	return all
}

// add keeps the first by name, and twice as many as are listed at most.
func (c *Check) add(f Finding) {
	c.Listed = append(c.Listed, f)
	if len(c.Listed) == 2*MaxListed {
		slices.SortFunc(c.Listed, Finding.compare)
		c.Listed = c.Listed[:MaxListed]
	}
}

func (f Finding) compare(g Finding) int {
	return cmp.Or(cmp.Compare(f.Def.Name, g.Def.Name), cmp.Compare(f.Name, g.Name), cmp.Compare(f.ID, g.ID))
}

// of is a finding about a record.
func (l *look) of(d *kind.Def, rec kind.Record, what string, words ...string) Finding {
	return Finding{Def: d, ID: rec.Base().ID, Name: d.Label(rec), What: what, Command: advice.Command(words...)}
}

// called is how a command calls a record: by its name, unless that looks like a flag or
// a list, or is the id of another.
func (l *look) called(d *kind.Def, rec kind.Record) string {
	name := d.Label(rec)
	if _, taken := l.snap.Lookup(d, name); taken || name == "" || strings.HasPrefix(name, "-") || strings.ContainsRune(name, ',') {
		return rec.Base().ID
	}
	return name
}

// remove is the command that deletes a record.
func (l *look) remove(d *kind.Def, rec kind.Record, what string) Finding {
	return l.of(d, rec, what, "delete", d.Name, l.called(d, rec), "--yes")
}

// update is the command that changes a record.
func (l *look) update(d *kind.Def, rec kind.Record, what string, flags ...string) Finding {
	return l.of(d, rec, what, append([]string{"update", d.Name, l.called(d, rec)}, flags...)...)
}

// moment writes a time as commands read it.
func moment(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// day writes a time as people read it.
func day(at time.Time) string { return at.UTC().Format(time.DateOnly) }
