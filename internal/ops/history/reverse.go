package history

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Reversal is the change that takes back what an entry tells of.
type Reversal struct {
	state.Ref
	Verb kind.Verbs // Creates, Patches or Deletes
	Body []kind.Member
	// Conflicts are what keeps it from being taken back, and Notes what is not as
	// it was even so.
	Conflicts []Conflict
	Notes     []string
}

// Conflict is a reason, and the field that it is about; empty for the whole record.
type Conflict struct{ Field, What string }

func (r *Reversal) conflict(field, what string) {
	r.Conflicts = append(r.Conflicts, Conflict{field, what})
}

// Reverse returns what takes an entry back, given what there is now. It decides on
// nothing: whether the change is allowed is found out by trying it.
func Reverse(now kind.Reader, kinds *kind.Catalog, e *model.AuditEntry) (*Reversal, error) {
	d := kinds.Named(e.TargetKind)
	if d == nil || !d.Noted || !IsChange(e) {
		return nil, fault.Invalid("id", "is an entry that tells of no change of a record", e.Number)
	}
	r := &Reversal{Ref: state.Ref{Def: d, ID: e.TargetID}}
	rec, there := now.Lookup(d, e.TargetID)
	var err error
	switch {
	case e.Event == model.AuditDeleted:
		err = r.recreate(now, e)
	case !there:
		r.conflict("", "is gone")
	case rec.Base().System:
		r.conflict("", "is kept by the system")
	case e.Event == model.AuditCreated:
		err = r.remove(rec, e)
	default:
		err = r.restore(now, rec, e)
	}
	return r, err
}

// recreate makes a deleted record anew.
func (r *Reversal) recreate(now kind.Reader, e *model.AuditEntry) error {
	r.Verb = kind.Creates
	if e.Before == nil {
		r.conflict("", "could not be read when it was deleted")
		return nil
	}
	rec, err := r.Def.Decode(e.Before)
	if err != nil {
		return err
	}
	if name := r.Def.Label(rec); name != r.ID {
		other, err := r.Def.Called(now, name)
		if other != nil || err != nil {
			r.conflict("name", "is taken by another")
		}
	}
	for _, m := range r.Def.Members(rec, kind.Create) {
		if m.Field.SaidNull(rec) {
			m.Text = jsontext.Value("null")
			r.Body = append(r.Body, m)
		} else if m.Text.Kind() != 'n' || m.Field.Required&kind.Create != 0 {
			r.Body = append(r.Body, m)
		}
	}
	r.Notes = append(r.Notes, "It gets another id: what named it by its id, or was deleted with it, has entries of its own.")
	for _, name := range e.Withheld {
		r.Notes = append(r.Notes, "It comes back without "+name+", which entries do not keep.")
	}
	return nil
}

// remove deletes a record that is as it was created.
func (r *Reversal) remove(rec kind.Record, e *model.AuditEntry) error {
	r.Verb = kind.Deletes
	was, err := r.Def.Decode(e.After)
	if err != nil {
		return err
	}
	r.since(r.Def.Differences(was, rec), e)
	return nil
}

// since notes what was changed after the entry.
func (r *Reversal) since(differences []kind.Difference, e *model.AuditEntry) {
	for _, diff := range differences {
		if f := r.field(diff.Name); f != nil && f.Taken(kind.Patch) && !slices.Contains(e.Withheld, f.Name) {
			r.conflict(diff.Name, "was changed since")
		}
	}
}

// restore gives a record back what the entry says that it had.
func (r *Reversal) restore(now kind.Reader, rec kind.Record, e *model.AuditEntry) error {
	r.Verb = kind.Patches
	then, err := with(e.After, e.Before).record(now, r.Ref)
	if err != nil {
		return err
	}
	after, err := with(e.Before, e.After).record(now, r.Ref)
	if err != nil {
		return err
	}
	for _, name := range e.Withheld {
		r.conflict(name, "is not kept by entries")
	}
	r.since(r.Def.Differences(after, rec), e)
	members := r.Def.Members(then, kind.Patch)
	for _, diff := range r.Def.Differences(rec, then) {
		i := slices.IndexFunc(members, func(m kind.Member) bool { return m.Field.Last() == diff.Name })
		switch f := r.field(diff.Name); {
		case i >= 0:
			r.Body = append(r.Body, members[i])
		case f != nil && f.Taken(kind.Patch):
			r.Body = append(r.Body, kind.Member{Field: f, Text: jsontext.Value("null")})
		default:
			r.conflict(diff.Name, "is nothing that anybody can set")
		}
	}
	if len(r.Body)+len(r.Conflicts) == 0 {
		r.conflict("", "is as it was before already")
	}
	return nil
}

// with is a record without some members, and then with others.
func with(without, members jsontext.Value) *form {
	f := &form{members: map[string]jsontext.Value{}}
	each(without, func(name string, _ jsontext.Value) { f.members[name] = nil })
	each(members, func(name string, value jsontext.Value) { f.members[name] = value })
	delete(f.members, "updatedAt")
	return f
}

func (r *Reversal) field(name string) *kind.Field {
	i := slices.IndexFunc(r.Def.Fields, func(f *kind.Field) bool { return f.Last() == name })
	if i < 0 {
		return nil
	}
	return r.Def.Fields[i]
}
