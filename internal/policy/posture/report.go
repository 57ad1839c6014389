package posture

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Facts is what a device has reported, as checks look at it. It does not
// change any more.
type Facts struct {
	os     *model.OSReport
	domain *model.DomainReport
	mac    *model.MACReport
	// processes are the reports for checks on one program, by check.
	processes map[string]*model.ProgramReport
	// paths are the reports for programs that checks name, by path. Devices
	// report each once, for whichever of the checks that name it.
	paths map[string]*model.ProgramReport
	// unasked are the latest reports on programs that no check looks at.
	unasked  []*model.ProgramReport
	woken    event
	unlocked event
}

// FactsOf returns what is stored of a device; nil is one that has reported
// nothing.
func FactsOf(d *model.Device) *Facts {
	if d == nil {
		return &Facts{}
	}
	f := &Facts{os: d.OS, domain: d.Domain, mac: d.MAC, woken: event(d.Woken), unlocked: event(d.Unlocked)}
	if len(d.Processes)+len(d.Paths) > 0 {
		f.processes, f.paths = map[string]*model.ProgramReport{}, map[string]*model.ProgramReport{}
	}
	for i := range d.Processes {
		f.processes[d.Processes[i].CheckID] = &d.Processes[i]
	}
	for i := range d.Paths {
		f.paths[d.Paths[i].Path] = &d.Paths[i]
	}
	for i := range d.Unasked {
		f.unasked = append(f.unasked, &d.Unasked[i])
	}
	return f
}

// device returns the facts as they are stored: the same for the same facts.
func (f *Facts) device(apiSessionID string) *model.Device {
	return &model.Device{
		Meta: kind.Meta{ID: apiSessionID}, APISessionID: apiSessionID, OS: f.os, Domain: f.domain, MAC: f.mac,
		Processes: sorted(f.processes), Paths: sorted(f.paths), Unasked: values(f.unasked),
		Woken: model.DeviceEvent(f.woken), Unlocked: model.DeviceEvent(f.unlocked),
	}
}

func sorted(reports map[string]*model.ProgramReport) []model.ProgramReport {
	var list []*model.ProgramReport
	for _, key := range slices.Sorted(maps.Keys(reports)) {
		list = append(list, reports[key])
	}
	return values(list)
}

func values(reports []*model.ProgramReport) (list []model.ProgramReport) {
	for _, p := range reports {
		list = append(list, *p)
	}
	return list
}

// event is something after which checks may ask for a new code.
type event model.DeviceEvent

// again returns the event after it has happened once more. passed is when the
// last code was shown.
func (e event) again(passed, now time.Time) event {
	next := event{Last: now, First: e.since(passed)}
	if next.First.IsZero() {
		next.First = now
	}
	if e.Last.After(now) {
		next.Last = e.Last
	}
	return next
}

// since returns when the event first happened after a moment; zero if it did
// not.
func (e event) since(moment time.Time) time.Time {
	switch {
	case e.First.After(moment):
		return e.First
	case e.Last.After(moment):
		return e.Last
	}
	return time.Time{}
}

// Submit takes responses of the device that uses an API session, and returns it
// as it is to be stored; nil if that would say nothing new. Responses for checks
// that recs does not have, and those that Validate refuses, are left out.
func Submit(recs kind.Reader, old *model.Device, apiSessionID string, responses []Response, now time.Time) (*model.Device, Outcome) {
	before := FactsOf(old)
	d := draft{next: *before, recs: recs, apiSessionID: apiSessionID, now: now.UTC().Round(0)}
	for i := range responses {
		d.take(&responses[i])
	}
	next := d.next.device(apiSessionID)
	if reflect.DeepEqual(next, before.device(apiSessionID)) {
		next = nil
	}
	return next, d.outcome
}

// Differ reports whether checks may come out differently for a device than they
// did before. Either may be nil.
func Differ(before, after *model.Device) bool {
	return !reflect.DeepEqual(FactsOf(before).judged(), FactsOf(after).judged())
}

// judged returns the facts without what no check looks at.
func (f *Facts) judged() *model.Device {
	d := f.device("")
	d.Unasked = nil
	if d.OS != nil {
		d.OS = &model.OSReport{Type: d.OS.Type, Version: d.OS.Version}
	}
	if d.Domain != nil {
		d.Domain = &model.DomainReport{Domain: d.Domain.Domain}
	}
	if d.MAC != nil {
		d.MAC = &model.MACReport{Addresses: d.MAC.Addresses}
	}
	for i := range d.Processes {
		d.Processes[i].At = time.Time{}
	}
	for i := range d.Paths {
		d.Paths[i].Stamp = model.Stamp{}
	}
	return d
}

// maxWeight is about how many bytes are kept of one device. Reports on programs
// beyond that are left out, so that checks on them fail.
const maxWeight = 128 << 10

// reportWeight is about how many bytes a report takes beside its texts.
const reportWeight = 120

// weight is about how many bytes the reports on programs take.
func (f *Facts) weight() (n int) {
	for _, p := range f.processes {
		n += weigh(p)
	}
	for _, p := range f.paths {
		n += weigh(p)
	}
	for _, p := range f.unasked {
		n += weigh(p)
	}
	return n
}

func weigh(p *model.ProgramReport) int {
	n := reportWeight + len(p.CheckID) + len(p.Path) + len(p.Hash)
	for _, s := range p.Signers {
		n += len(s) + 3
	}
	return n
}

// byCheck compares reports by check and path.
func byCheck(a, b *model.ProgramReport) int {
	return cmp.Or(cmp.Compare(a.CheckID, b.CheckID), cmp.Compare(a.Path, b.Path))
}
