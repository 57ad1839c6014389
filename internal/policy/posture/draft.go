package posture

import (
	"maps"
	"slices"
	"time"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
)

// draft is the facts of an identity while responses are written into a copy of
// them.
type draft struct {
	next         Facts
	recs         kind.Reader
	ranges       *ranges
	apiSessionID string
	now          time.Time

	outcome Outcome
	written bool // next is not what it was copied from
	// What of next is its own and may be written to.
	ownPrograms, ownEndpoints bool
}

// take writes one response.
func (d *draft) take(r *Response) {
	if r.Validate() != nil {
		return
	}
	switch r.TypeID {
	case typeOS:
		d.takeOS(r)
	case typeDomain:
		d.takeDomain(r)
	case typeMAC:
		d.takeMAC(r)
	case typeProcess:
		d.takeProcess(r)
	case typeEndpoint:
		d.takeEndpoint(r)
	}
}

// wrote notes that a report was written, and whether it says something new.
func (d *draft) wrote(news bool) {
	d.written = true
	d.outcome.Changed = d.outcome.Changed || news
}

func (d *draft) stamp(checkID string) stamp { return stamp{checkID, d.now} }

// takeOS writes the operating system. No check looks at the build.
func (d *draft) takeOS(r *Response) {
	old := d.next.os
	d.wrote(old == nil || old.typ != r.Type || old.version != r.Version)
	d.next.os = &osReport{d.stamp(r.ID), r.Type, r.Version, r.Build, d.ranges.release(r.Version)}
}

func (d *draft) takeDomain(r *Response) {
	old := d.next.domain
	d.wrote(old == nil || old.domain != r.Domain)
	d.next.domain = &domainReport{d.stamp(r.ID), r.Domain}
}

func (d *draft) takeMAC(r *Response) {
	old, addresses := d.next.mac, cleanMACs(r.MACAddresses)
	news := old == nil || !slices.Equal(old.addresses, addresses)
	if !news {
		addresses = old.addresses // one list for all who refer to it
	}
	d.wrote(news)
	d.next.mac = &macReport{d.stamp(r.ID), addresses}
}

// cleanMACs returns the addresses as macReport holds them. One without a digit
// is none.
func cleanMACs(list []string) []string {
	var clean []string
	for _, s := range list {
		if digits := appendHex(nil, s); len(digits) > 0 {
			clean = append(clean, string(digits))
		}
	}
	slices.Sort(clean)
	return slices.Clip(slices.Compact(clean))
}

// takeProcess writes a report on a program. Nobody can make us keep more than
// there are checks that look at it, and a few.
func (d *draft) takeProcess(r *Response) {
	check, ok := model.PostureChecks.Get(d.recs, r.ID)
	if !ok {
		d.takeUnasked(r)
		return
	}
	path, named := namedPath(check, r.Path)
	if !named && check.TypeID != typeProcess {
		d.takeUnasked(r)
		return
	}
	d.clonePrograms()
	report := &processReport{d.stamp(check.ID), r.IsRunning, r.Hash, r.SignerFingerprints}
	if check.TypeID == typeProcess {
		d.wrote(!report.same(d.next.processes[check.ID]))
		d.next.processes[check.ID] = report
	}
	if named {
		d.wrote(!report.same(d.next.paths[path]))
		d.next.paths[path] = report
	}
}

// maxUnasked is how many reports that no check looks at are kept for people to
// see.
const maxUnasked = 16

// takeUnasked writes a report on a program that no check looks at, in the
// place of the oldest if there are too many.
func (d *draft) takeUnasked(r *Response) {
	others := slices.DeleteFunc(slices.Clone(d.next.unasked), func(u unaskedReport) bool { return u.checkID == r.ID && u.path == r.Path })
	if len(others) == maxUnasked {
		others = slices.Delete(others, 0, 1)
	}
	d.next.unasked = append(others, unaskedReport{r.Path, &processReport{d.stamp(r.ID), r.IsRunning, r.Hash, r.SignerFingerprints}})
	d.wrote(false)
}

// same reports whether two reports say the same of a program.
func (p *processReport) same(old *processReport) bool {
	return old != nil && p.running == old.running && p.hash == old.hash && slices.Equal(p.signers, old.signers)
}

// namedPath returns the check's own text of a path that it names.
func namedPath(c *model.PostureCheck, path string) (string, bool) {
	switch c.TypeID {
	case typeProcess:
		if c.Process != nil && c.Process.Path == path {
			return c.Process.Path, true
		}
	case typeMulti:
		for i := range c.Processes {
			if c.Processes[i].Path == path {
				return c.Processes[i].Path, true
			}
		}
	}
	return "", false
}

// clonePrograms gives the draft maps of its own, without what no check looks
// at any more.
func (d *draft) clonePrograms() {
	if d.ownPrograms {
		return
	}
	d.ownPrograms = true
	processes, paths := map[string]*processReport{}, map[string]*processReport{}
	maps.Copy(processes, d.next.processes)
	maps.Copy(paths, d.next.paths)
	maps.DeleteFunc(processes, func(id string, _ *processReport) bool {
		c, ok := model.PostureChecks.Get(d.recs, id)
		return !ok || c.TypeID != typeProcess
	})
	maps.DeleteFunc(paths, func(path string, p *processReport) bool { return !d.isNamed(path, p.checkID) })
	d.next.processes, d.next.paths = processes, paths
}

// isNamed reports whether a check names the path, most likely this one.
func (d *draft) isNamed(path, checkID string) bool {
	if c, ok := model.PostureChecks.Get(d.recs, checkID); ok {
		if _, named := namedPath(c, path); named {
			return true
		}
	}
	for c := range model.PostureChecks.All(d.recs) {
		if _, named := namedPath(c, path); named {
			return true
		}
	}
	return false
}

// takeEndpoint writes that the device was woken or unlocked.
func (d *draft) takeEndpoint(r *Response) {
	if !r.Woken && !r.Unlocked {
		return
	}
	var passed time.Time
	if api, ok := model.APISessions.Get(d.recs, d.apiSessionID); ok {
		if at := api.FactorShown(d.recs); at != nil {
			passed = *at
		}
	}
	e := d.next.endpoints[d.apiSessionID]
	if r.Woken {
		e.woken, d.outcome.Woken = e.woken.again(passed, d.now), true
	}
	if r.Unlocked {
		e.unlocked, d.outcome.Unlocked = e.unlocked.again(passed, d.now), true
	}
	d.cloneEndpoints()
	d.next.endpoints[d.apiSessionID] = e
	d.wrote(true)
}

// cloneEndpoints gives the draft a map of its own.
func (d *draft) cloneEndpoints() {
	if d.ownEndpoints {
		return
	}
	d.ownEndpoints = true
	endpoints := make(map[string]endpoint, len(d.next.endpoints)+1)
	maps.Copy(endpoints, d.next.endpoints)
	d.next.endpoints = endpoints
}
