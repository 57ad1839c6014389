package management

import (
	"net/http"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/history"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// differenceOut is what differs between two moments.
type differenceOut struct {
	FromEntry int64          `json:"fromEntry" doc:"Number of the last audit entry of the earlier moment."`
	ToEntry   int64          `json:"toEntry" doc:"Number of the last audit entry of the later moment."`
	Counts    countsOut      `json:"counts" doc:"How many records became what; those that entries tell of and that are as they were count as unchanged."`
	Records   []differingOut `json:"records" doc:"Records that differ, those that were changed last first; a page of them."`
	Access    accessOut      `json:"access" doc:"Who may use what at the later moment and not at the earlier one, and the other way round; a page of the pairs."`
}

// differingOut is a record that differs.
type differingOut struct {
	Kind    string     `json:"kind" doc:"Kind of the record."`
	ID      string     `json:"id" doc:"Id of the record."`
	Name    string     `json:"name" doc:"What people call the record; empty if its kind has no names."`
	Outcome string     `json:"outcome" kind:"enum=created|changed|deleted" doc:"What became of it from one moment to the other."`
	Fields  []fieldOut `json:"fields" doc:"What is different; empty unless the outcome is changed."`
	Entries int        `json:"entries" doc:"How many audit entries tell of the record in between."`
	Entry   int64      `json:"entry" doc:"Number of the last of these."`
	Who     string     `json:"who" doc:"Who is behind that one."`
	When    time.Time  `json:"when" doc:"When that was."`
}

// mostPaged is how many records and pairs one may leave out at the beginning.
const mostPaged = 100_000

// The parameters of a difference.
var (
	fromParam       = rest.TextParam("from", "The earlier moment: a time, as in 2026-01-31T08:00:00Z, or the number of an audit entry.").Required()
	toParam         = rest.TextParam("to", "The later moment, in the same way; now if not given.")
	someParam       = rest.NumberParam("limit", "How many records, and how many pairs of who gains or loses what, to answer with: 500 if not given, and 1000 at most.")
	leaveParam      = rest.NumberParam("offset", "How many of both to leave out at the beginning; none if not given, and 100000 at most.")
	differenceParam = []rest.Parameter{fromParam, toParam, someParam, leaveParam}
)

// mountHistory offers what differs between moments.
func mountHistory(a *rest.API, s *api.Service, past *history.History) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/difference", Name: "listDifferences", Tag: model.AuditEntries.Path,
		Doc:  "Tell what changed in the network from one moment to another, who changed it last, and which identities gained or lost which services.",
		Auth: rest.Admin, Need: "access:read", Params: differenceParam, Answer: differenceSchema(),
	}, func(c *rest.Call, _ rest.None) (differenceOut, error) {
		p, err := pageOf(c)
		if err != nil {
			return differenceOut{}, err
		}
		to := toParam.Of(c)
		if to == "" {
			to = s.Sessions.Now().Format(time.RFC3339Nano)
		}
		span, err := past.Between(c.Context(), fromParam.Of(c), to)
		if err != nil {
			return differenceOut{}, err
		}
		return difference(span, p), nil
	})
}

// part is a page of something.
type part struct{ from, to int }

func pageOf(c *rest.Call) (part, error) {
	limit, offset := int64(500), int64(0)
	if n := someParam.Of(c); n != nil {
		limit = *n
	}
	if n := leaveParam.Of(c); n != nil {
		offset = *n
	}
	switch {
	case limit < 1 || limit > mostListed:
		return part{}, fault.Invalid("limit", "must be from 1 to 1000", limit)
	case offset < 0 || offset > mostPaged:
		return part{}, fault.Invalid("offset", "must be from 0 to 100000", offset)
	}
	return part{int(offset), int(offset + limit)}, nil
}

// of is the page of a list.
func of[T any](p part, list []T) []T { return list[min(p.from, len(list)):min(p.to, len(list))] }

func difference(span *history.Span, p part) differenceOut {
	out := differenceOut{FromEntry: span.Before.Number, ToEntry: span.After.Number, Records: []differingOut{}}
	refs, at := span.Refs(), 0
	for _, c := range span.Changed {
		before, _ := span.Before.Lookup(c.Def, c.ID)
		after, _ := span.After.Lookup(c.Def, c.ID)
		d := done{before, after}
		if before == nil && after == nil || before != nil && after != nil && len(c.Def.Differences(before, after)) == 0 {
			out.Counts.Unchanged++
			continue
		}
		out.Counts.count(d.outcome())
		if at++; at > p.from && at <= p.to {
			out.Records = append(out.Records, differing(c, d))
		}
	}
	moved := access.Difference(span.Before.Snapshot, span.After.Snapshot, refs, p.to)
	out.Access = reporter{}.access(moved)
	out.Access.Pairs = of(p, out.Access.Pairs)
	out.Access.More = moved.Gained+moved.Lost > p.from+len(out.Access.Pairs)
	return out
}

func differing(c history.Changed, d done) differingOut {
	r := reporter{}
	id, name := r.title(c.Def, d.record())
	out := differingOut{
		Kind: c.Def.Name, ID: id, Name: name, Outcome: d.outcome(), Fields: []fieldOut{},
		Entries: c.Times, Entry: c.Last.Number, Who: c.Last.ActorName, When: c.Last.CreatedAt.Time(),
	}
	if out.Outcome == changed {
		out.Fields = r.fields(c.Def, d)
	}
	return out
}

var differenceOutput = kind.NewOutput[differenceOut]()

// differenceSchema describes the answer. The values of fields may be anything.
func differenceSchema() kind.Schema {
	s := differenceOutput.Schema()
	s["description"] = "What differs."
	anyValue(s, "records")
	return s
}
