package management

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/history"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// undoOut is what takes a change back.
type undoOut struct {
	Entry     int64         `json:"entry" doc:"Number of the audit entry."`
	Kind      string        `json:"kind" doc:"Kind of the record that it tells of."`
	ID        string        `json:"id" doc:"Id of the record."`
	Name      string        `json:"name" doc:"What the record was called then."`
	Changes   []reverseOut  `json:"changes" doc:"What to send to applyChanges, as a plan first; empty if there is a conflict."`
	Conflicts []conflictOut `json:"conflicts" doc:"What keeps the change from being taken back; empty if nothing does."`
	Notes     []string      `json:"notes" doc:"What will not be as it was even so, in sentences."`
}

type reverseOut struct {
	Op     string         `json:"op" kind:"enum=create|patch|delete" doc:"What to do."`
	Kind   string         `json:"kind" doc:"Kind of the record to do it to."`
	Target string         `json:"target" kind:"omit" doc:"Id of the record; left out for create."`
	Body   jsontext.Value `json:"body" kind:"omit" doc:"What to create it with, or what to change; left out for delete."`
}

type conflictOut struct {
	Field string `json:"field" doc:"Field that this is about; empty for the whole record."`
	What  string `json:"what" doc:"What is in the way."`
}

// mountUndo offers what takes a change back.
func mountUndo(a *rest.API, s *api.Service, mounted map[*kind.Def]*rest.Mounted) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/" + model.AuditEntries.Path + "/{id}/undo", Name: "planUndo", Tag: model.AuditEntries.Path,
		Doc: "Tell which change takes back what an audit entry tells of, or what is in the way. Nothing is changed.", Auth: rest.Admin, Need: "audit-entry:read",
	}, func(c *rest.Call, _ rest.None) (undoOut, error) {
		id := c.Param("id")
		rec, ok, err := s.Audit.Lookup(c.Context(), id)
		switch {
		case err != nil:
			return undoOut{}, err
		case !ok:
			return undoOut{}, fault.NotFound(model.AuditEntries.Name, id)
		}
		entry := rec.(*model.AuditEntry)
		r, err := history.Reverse(c.Snap, c.State.Kinds(), entry)
		if err != nil {
			return undoOut{}, err
		}
		if m := mounted[r.Def]; m == nil || !m.Verbs.Has(kind.CRUD) {
			r.Conflicts = append(r.Conflicts, history.Conflict{What: "is of a kind that is not changed in this way"})
		}
		return undone(entry, r), nil
	})
}

// words are what changes are called.
var words = map[kind.Verbs]string{kind.Creates: "create", kind.Patches: "patch", kind.Deletes: "delete"}

func undone(e *model.AuditEntry, r *history.Reversal) undoOut {
	out := undoOut{
		Entry: e.Number, Kind: e.TargetKind, ID: e.TargetID, Name: e.TargetName,
		Changes: []reverseOut{}, Conflicts: []conflictOut{}, Notes: append([]string{}, r.Notes...),
	}
	for _, conflict := range r.Conflicts {
		out.Conflicts = append(out.Conflicts, conflictOut(conflict))
	}
	if len(out.Conflicts) > 0 {
		return out
	}
	change := reverseOut{Op: words[r.Verb], Kind: r.Def.Name}
	if r.Verb != kind.Creates {
		change.Target = r.ID
	}
	if r.Verb != kind.Deletes {
		change.Body = bodyOf(r.Body)
	}
	out.Changes = append(out.Changes, change)
	return out
}

// bodyOf is an object of members.
func bodyOf(members []kind.Member) jsontext.Value {
	body := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(append(kind.AppendText(body, m.Field.Last()), ':'), m.Text...)
	}
	return append(body, '}')
}
