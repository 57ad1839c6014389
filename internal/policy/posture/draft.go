package posture

import (
	"maps"
	"slices"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// draft is the facts of a device while responses are written into a copy of
// them.
type draft struct {
	next         Facts
	recs         kind.Reader
	apiSessionID string
	now          time.Time

	outcome     Outcome
	ownPrograms bool // the maps of next are its own and may be written to
}

// take writes one response.
func (d *draft) take(r *Response) {
	if r.Validate() != nil {
		return
	}
	switch r.TypeID {
	case TypeOS:
		d.takeOS(r)
	case TypeDomain:
		d.takeDomain(r)
	case TypeMAC:
		d.takeMAC(r)
	case TypeProcess:
		d.takeProcess(r)
	case TypeEndpoint:
		d.takeEndpoint(r)
	}
}

// wrote notes whether a report says something new.
func (d *draft) wrote(news bool) { d.outcome.Changed = d.outcome.Changed || news }

// restamp is for how long a report that says the same keeps its time. Devices
// report often, and what says the same need not be stored again.
const restamp = 10 * time.Minute

// stamp returns the stamp of a report for a check. same is that of one that said
// the same before; nil if none did.
func (d *draft) stamp(checkID string, same *model.Stamp) model.Stamp {
	if same != nil && d.now.Sub(same.At) < restamp {
		return *same
	}
	return model.Stamp{CheckID: checkID, At: d.now}
}

// takeOS writes the operating system. No check looks at the build.
func (d *draft) takeOS(r *Response) {
	old := d.next.os
	d.wrote(old == nil || old.Type != r.Type || old.Version != r.Version)
	var same *model.Stamp
	if old != nil && old.Type == r.Type && old.Version == r.Version && old.Build == r.Build {
		same = &old.Stamp
	}
	d.next.os = &model.OSReport{Stamp: d.stamp(r.ID, same), Type: r.Type, Version: r.Version, Build: r.Build}
}

func (d *draft) takeDomain(r *Response) {
	var same *model.Stamp
	if old := d.next.domain; old != nil && old.Domain == r.Domain {
		same = &old.Stamp
	}
	d.wrote(same == nil)
	d.next.domain = &model.DomainReport{Stamp: d.stamp(r.ID, same), Domain: r.Domain}
}

func (d *draft) takeMAC(r *Response) {
	addresses := cleanMACs(r.MACAddresses)
	var same *model.Stamp
	if old := d.next.mac; old != nil && slices.Equal(old.Addresses, addresses) {
		same, addresses = &old.Stamp, old.Addresses
	}
	d.wrote(same == nil)
	d.next.mac = &model.MACReport{Stamp: d.stamp(r.ID, same), Addresses: addresses}
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
// there are checks that look at it, and a few, nor more than a device may have.
func (d *draft) takeProcess(r *Response) {
	report := model.ProgramReport{Running: r.IsRunning, Hash: r.Hash, Signers: r.SignerFingerprints}
	check, ok := model.PostureChecks.Get(d.recs, r.ID)
	if !ok {
		d.takeUnasked(r, report)
		return
	}
	path, named := namedPath(check, r.Path)
	if !named && check.TypeID != TypeProcess {
		d.takeUnasked(r, report)
		return
	}
	d.clonePrograms()
	if check.TypeID == TypeProcess {
		d.keep(d.next.processes, check.ID, check.ID, report)
	}
	if named {
		// Devices report each path once, whichever of the checks that name it they
		// mention.
		for other := range model.PostureChecks.All(d.recs) {
			if other.TypeID == TypeProcess && other.ID != check.ID && other.Process != nil && other.Process.Path == path {
				d.keep(d.next.processes, other.ID, other.ID, report)
			}
		}
		report.Path = path
		d.keep(d.next.paths, path, check.ID, report)
	}
}

// keep puts a report for a check in the place of the one with its key, unless
// the device has too many.
func (d *draft) keep(reports map[string]*model.ProgramReport, key, checkID string, report model.ProgramReport) {
	old := reports[key]
	same := sameStamp(&report, old)
	report.Stamp = d.stamp(checkID, same)
	reports[key] = &report
	if same == nil && d.next.weight() > maxWeight {
		d.next.unasked = nil // what decides goes first
		if d.next.weight() > maxWeight {
			delete(reports, key) // what it said before is not so any more
		}
	}
	d.wrote(!equal(old, reports[key]))
}

// equal reports whether two reports, each of which may be nil, say the same.
func equal(a, b *model.ProgramReport) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameStamp(a, b) != nil
}

// sameStamp returns the stamp of an old report, if there is one, that says the
// same as a new one.
func sameStamp(p, old *model.ProgramReport) *model.Stamp {
	if old != nil && p.Running == old.Running && p.Hash == old.Hash && slices.Equal(p.Signers, old.Signers) {
		return &old.Stamp
	}
	return nil
}

// maxUnasked is how many reports that no check looks at are kept for people to
// see.
const maxUnasked = 16

// takeUnasked writes a report on a program that no check looks at, in the
// place of the oldest if there are too many.
func (d *draft) takeUnasked(r *Response, report model.ProgramReport) {
	report.CheckID, report.Path = r.ID, r.Path
	others := slices.Clone(d.next.unasked)
	if i := slices.IndexFunc(others, func(u *model.ProgramReport) bool { return byCheck(u, &report) == 0 }); i >= 0 {
		if same := sameStamp(&report, others[i]); same != nil && d.stamp(r.ID, same) == *same {
			return
		}
		others = slices.Delete(others, i, i+1)
	}
	report.Stamp = d.stamp(r.ID, nil)
	d.next.unasked = append(others, &report)
	for len(d.next.unasked) > maxUnasked || len(d.next.unasked) > 0 && d.next.weight() > maxWeight {
		d.next.unasked = d.next.unasked[1:]
	}
}

// namedPath returns the check's own text of a path that it names.
func namedPath(c *model.PostureCheck, path string) (string, bool) {
	switch c.TypeID {
	case TypeProcess:
		if c.Process != nil && c.Process.Path == path {
			return c.Process.Path, true
		}
	case TypeMulti:
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
	processes, paths := map[string]*model.ProgramReport{}, map[string]*model.ProgramReport{}
	maps.Copy(processes, d.next.processes)
	maps.Copy(paths, d.next.paths)
	maps.DeleteFunc(processes, func(id string, _ *model.ProgramReport) bool {
		c, ok := model.PostureChecks.Get(d.recs, id)
		return !ok || c.TypeID != TypeProcess
	})
	maps.DeleteFunc(paths, func(path string, p *model.ProgramReport) bool { return !d.isNamed(path, p.CheckID) })
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
	if r.Woken {
		d.outcome.Woken = d.happened(&d.next.woken, r.At, passed) || d.outcome.Woken
	}
	if r.Unlocked {
		d.outcome.Unlocked = d.happened(&d.next.unlocked, r.At, passed) || d.outcome.Unlocked
	}
}

// happened writes that something has happened to the device, and reports false
// if it was known: who says when it was may say it many times. A device whose
// clock is ahead has had it happen just now.
func (d *draft) happened(e *event, at, passed time.Time) bool {
	if at.IsZero() || at.After(d.now) {
		at = d.now
	} else if !at.After(e.Last) {
		return false
	}
	*e = e.again(passed, at)
	d.wrote(true)
	return true
}
