package management

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/rest"
)

// mostListed is how many consequences, and how many pairs of who gains or
// loses what, an answer lists.
const mostListed = 1000

// changesOut is what came of a list of changes, or would.
type changesOut struct {
	Applied          bool             `json:"applied" doc:"Whether the changes were made; false for a plan."`
	Digest           string           `json:"digest" doc:"Stands for the outcome: send it as expect to make the changes only if the outcome is still this one."`
	Counts           countsOut        `json:"counts" doc:"How many changes had which outcome."`
	Changes          []changeOut      `json:"changes" doc:"What came of each change, in the order of the request."`
	Consequences     []consequenceOut `json:"consequences" doc:"Records that were created, changed or deleted because others were, by kind and name; the first 1000."`
	MoreConsequences bool             `json:"moreConsequences" doc:"Whether there are more consequences than are listed."`
	Access           accessOut        `json:"access" doc:"Who may use what that they could not before, and the other way round."`
	Assertions       []breachOut      `json:"assertions" doc:"Assertions that a plan would break, by name: without override the changes are refused. Empty once they were made."`
}

type countsOut struct {
	Created   int `json:"created" doc:"How many records were created."`
	Changed   int `json:"changed" doc:"How many changes left a record different."`
	Unchanged int `json:"unchanged" doc:"How many changes left a record as it was."`
	Deleted   int `json:"deleted" doc:"How many records were deleted."`
}

// count adds one outcome.
func (n *countsOut) count(outcome string) {
	switch outcome {
	case created:
		n.Created++
	case changed:
		n.Changed++
	case unchanged:
		n.Unchanged++
	case deleted:
		n.Deleted++
	}
}

type changeOut struct {
	Op      string     `json:"op" doc:"What was asked for."`
	Kind    string     `json:"kind" doc:"Kind of the record."`
	ID      string     `json:"id" doc:"Id of the record; empty in a plan for one that is yet to be created."`
	Name    string     `json:"name" doc:"What people call the record; empty if its kind has no names."`
	Outcome string     `json:"outcome" kind:"enum=created|changed|unchanged|deleted" doc:"What came of it."`
	Fields  []fieldOut `json:"fields" doc:"What is different; empty unless the outcome is changed."`
}

type fieldOut struct {
	Name   string         `json:"name" doc:"Name of the field, as bodies call it."`
	Before jsontext.Value `json:"before" doc:"Its value before the change; null if it had none, or if it is a secret."`
	After  jsontext.Value `json:"after" doc:"Its value after the change; null if it has none, or if it is a secret. A plan has names in the place of ids that are yet to be made."`
}

type consequenceOut struct {
	Kind    string `json:"kind" doc:"Kind of the record."`
	ID      string `json:"id" doc:"Id of the record; empty in a plan for one that is yet to be created."`
	Name    string `json:"name" doc:"What people call the record; empty if its kind has no names."`
	Outcome string `json:"outcome" kind:"enum=created|changed|deleted" doc:"What became of it."`
}

// keepTo leaves out what the caller may not read: who may use what, what assertions say,
// records that nobody asked to change, and what was in those that somebody did.
func (o *changesOut) keepTo(c *rest.Call) {
	reads := func(what string) bool { return c.Caller.Over(c.Latest(), what+":read").Whole() }
	if !reads("access") {
		o.Access = accessOut{Pairs: []pairOut{}}
	}
	if !reads(model.Assertions.Name) {
		o.Assertions = hiddenBreaches(len(o.Assertions))
	}
	for i, change := range o.Changes {
		if hasPower(change.Kind) && c.Caller.Over(c.Latest(), change.Kind+":read").None() {
			o.Changes[i].Fields = []fieldOut{}
		}
	}
	o.Consequences = slices.DeleteFunc(o.Consequences, func(one consequenceOut) bool { return hasPower(one.Kind) && !reads(one.Kind) })
}

// hasPower reports whether there is a power to read records of a kind.
func hasPower(name string) bool { return len(model.Expand(name+":read")) > 0 }

type accessOut struct {
	Gained int       `json:"gained" doc:"How many times somebody may use or host a service that they could not before."`
	Lost   int       `json:"lost" doc:"How many times somebody may not any more."`
	Pairs  []pairOut `json:"pairs" doc:"Who and what, by the names of identity and service and by type; the first 1000."`
	More   bool      `json:"more" doc:"Whether there are more than are listed."`
}

type pairOut struct {
	IdentityID string `json:"identityId" doc:"Id of the identity; empty in a plan for one that is yet to be created."`
	Identity   string `json:"identity" doc:"Name of the identity."`
	ServiceID  string `json:"serviceId" doc:"Id of the service; empty in a plan for one that is yet to be created."`
	Service    string `json:"service" doc:"Name of the service."`
	Type       string `json:"type" kind:"enum=Dial|Bind" doc:"Whether it is about using the service (Dial) or hosting it (Bind)."`
	Change     string `json:"change" kind:"enum=gained|lost" doc:"Whether the identity may now, or may not any more."`
}

var changesOutput = kind.NewOutput[changesOut]()

// changesSchema describes the answer. The values of fields may be anything.
func changesSchema() kind.Schema {
	s := changesOutput.Schema()
	s["description"] = "What came of the changes, or would."
	anyValue(s, "changes")
	return s
}

// anyValue says that the fields of what a list has may have values of any type.
func anyValue(s kind.Schema, list string) {
	fields := s["properties"].(kind.Schema)[list].(kind.Schema)["items"].(kind.Schema)["properties"].(kind.Schema)["fields"].(kind.Schema)
	props := fields["items"].(kind.Schema)["properties"].(kind.Schema)
	for name, p := range props {
		if name != "name" {
			props[name] = kind.Schema{"description": p.(kind.Schema)["description"], "anyOf": []any{
				kind.Schema{"type": "string", "nullable": true}, kind.Schema{"type": "number"}, kind.Schema{"type": "boolean"},
				kind.Schema{"type": "array", "items": kind.Schema{}}, kind.Schema{"type": "object", "additionalProperties": true},
			}}
		}
	}
}

// The outcomes.
const (
	created   = "created"
	changed   = "changed"
	unchanged = "unchanged"
	deleted   = "deleted"
)

func (d done) outcome() string {
	switch {
	case d.before == nil:
		return created
	case d.after == nil:
		return deleted
	case d.before == d.after:
		return unchanged
	}
	return changed
}

// record is the one that there is, or was.
func (d done) record() kind.Record {
	if d.after != nil {
		return d.after
	}
	return d.before
}

// digest stands for the outcome. It is taken of what a plan says, in which no
// new id is.
func (o changesOut) digest() string {
	sum := sha256.Sum256(changesOutput.Append(nil, &o))
	return hex.EncodeToString(sum[:])
}

// mode is whether an outcome shows the ids of what it created: those of a plan
// will never be, and would make two equal plans differ.
type mode bool

const (
	shown  mode = false
	hidden mode = true
)

// report says what came of the changes.
func (l *list) report(moved access.Delta, m mode) changesOut {
	r := reporter{}
	if m == hidden {
		r = l.newcomers()
	}
	out := changesOut{Changes: make([]changeOut, len(l.done))}
	for i, d := range l.done {
		def := l.steps[i].Kind()
		id, name := r.title(def, d.record())
		c := changeOut{Op: l.in[i].Op, Kind: def.Name, ID: id, Name: name, Outcome: d.outcome()}
		if c.Outcome == changed {
			c.Fields = r.fields(def, d)
		}
		out.Counts.count(c.Outcome)
		out.Changes[i] = c
	}
	out.Consequences = r.consequences(l.consequences())
	out.Access = r.access(moved)
	if m == hidden {
		out.Digest = out.digest() // of every consequence, listed or not
	}
	if out.MoreConsequences = len(out.Consequences) > mostListed; out.MoreConsequences {
		out.Consequences = out.Consequences[:mostListed]
	}
	return out
}

// reporter knows the names of what is to be created, by id.
type reporter map[string]string

// newcomers are what the changes create, directly or not.
func (l *list) newcomers() reporter {
	r := reporter{}
	note := func(d *kind.Def, rec kind.Record) { r[rec.Base().ID] = nameOf(d, rec) }
	for _, ref := range l.whole.Changed {
		if _, had := l.whole.Before.Lookup(ref.Def, ref.ID); had {
			continue
		}
		if rec, has := l.whole.After.Lookup(ref.Def, ref.ID); has && r[ref.ID] == "" {
			note(ref.Def, rec)
		}
	}
	for i, d := range l.done { // also what is gone again
		if d.before == nil {
			note(l.steps[i].Kind(), d.after)
		}
	}
	return r
}

// nameOf is what people call a record; nothing if its kind has no names.
func nameOf(d *kind.Def, rec kind.Record) string {
	if name := d.Label(rec); name != rec.Base().ID {
		return name
	}
	return ""
}

// title is the id of a record and its name.
func (r reporter) title(d *kind.Def, rec kind.Record) (id, name string) {
	id = rec.Base().ID
	name = nameOf(d, rec)
	if called, new := r[id]; new {
		return "", strings.ReplaceAll(name, id, called) // some are named after an id
	}
	return id, name
}

// id is an id that there is, or nothing.
func (r reporter) id(id string) string {
	if _, new := r[id]; new {
		return ""
	}
	return id
}

// named is the name in place of an id that is yet to be made.
func (r reporter) named(id string) string {
	if name, new := r[id]; new {
		return name
	}
	return id
}

func (r reporter) fields(d *kind.Def, of done) []fieldOut {
	before, after := of.before, of.after
	if len(r) > 0 {
		before, after = d.Renamed(before, r.named), d.Renamed(after, r.named)
	}
	differences := d.Differences(before, after)
	out := make([]fieldOut, len(differences))
	for i, f := range differences {
		out[i] = fieldOut(f)
	}
	return out
}

func (r reporter) consequences(all []consequence) []consequenceOut {
	out := make([]consequenceOut, len(all))
	for i, c := range all {
		id, name := r.title(c.kind, c.record())
		out[i] = consequenceOut{c.kind.Name, id, name, c.outcome()}
	}
	slices.SortFunc(out, func(a, b consequenceOut) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Outcome, b.Outcome))
	})
	return out
}

func (r reporter) access(moved access.Delta) accessOut {
	out := accessOut{Gained: moved.Gained, Lost: moved.Lost, More: moved.More, Pairs: make([]pairOut, len(moved.Pairs))}
	for i, p := range moved.Pairs {
		change := "lost"
		if p.Gained {
			change = "gained"
		}
		out.Pairs[i] = pairOut{r.id(p.IdentityID), p.Identity, r.id(p.ServiceID), p.Service, p.Type, change}
	}
	slices.SortFunc(out.Pairs, func(a, b pairOut) int {
		return cmp.Or(cmp.Compare(a.Identity, b.Identity), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Change, b.Change))
	})
	return out
}
