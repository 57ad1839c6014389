// Package manifest keeps a network in files: it writes the records of a
// controller as YAML, by names and without what goes without saying, reads such
// files, and finds the changes that make a controller's records those of the
// files. What there is of kinds and fields it knows from their descriptors
// alone. It talks to a controller through a Source and must not know how that
// does it.
package manifest

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Source is a controller.
type Source interface {
	// List returns every record of a collection of the Management API, each the
	// object that is answered.
	List(ctx context.Context, path string) ([]jsontext.Value, error)
}

// Label is a tag that says to which files a record belongs, so that several
// can look after parts of one network.
type Label struct{ Name, Value string }

func (l Label) String() string { return l.Name + "=" + l.Value }

// kinds are those that files may hold, each after those that it refers to.
var kinds = inOrder(model.All)

// makes is the kind whose records bring records of other kinds along, which
// have the same id. It refers to none.
const makes = "edge-router"

// inOrder sorts kinds so that references lead back, where they can.
func inOrder(all *kind.Catalog) (order []*kind.Def) {
	state := map[*kind.Def]int{} // 1 while its references are looked at, 2 when it has its place
	var place func(d *kind.Def)
	place = func(d *kind.Def) {
		if state[d] != 0 || !d.InFiles {
			return
		}
		state[d] = 1
		if d.Name != makes {
			place(all.Named(makes))
		}
		for _, name := range referredTo(d.Fields) {
			place(all.Named(name))
		}
		state[d] = 2
		order = append(order, d)
	}
	for _, d := range all.Defs {
		place(d)
	}
	return order
}

// referredTo lists the kinds that fields refer to.
func referredTo(fields []*kind.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Targets()...)
		names = append(names, referredTo(f.Members)...)
	}
	return names
}

// named reports whether records of a kind have names of their own. Others are
// known by what they refer to.
func named(d *kind.Def) bool {
	return slices.ContainsFunc(d.Fields, func(f *kind.Field) bool { return f.Name == "name" && f.Unique })
}

// noun is how people speak of a record of a kind.
func noun(d *kind.Def) string { return strings.ReplaceAll(d.Name, "-", " ") }

// settable reports whether a file may say it: a create does.
func settable(f *kind.Field) bool { return f.Taken(kind.Create) && !f.Secret }

// references calls visit for everything in a body that refers to a record, and
// puts what it returns in its place.
func references(fields []*kind.Field, v *value, visit func(f *kind.Field, text string, at spot) string) {
	for _, f := range fields {
		m := v.member(f.Last())
		switch {
		case m == nil:
		case f.Form == kind.Struct:
			references(f.Members, m, visit)
		case f.Targets() == nil:
		case f.Form == kind.Text:
			refer(f, m, "", visit)
		case f.Form == kind.Texts && f.Roles != "":
			for _, item := range m.items {
				refer(f, item, "@", visit)
			}
		case f.Form == kind.Texts:
			for _, item := range m.items {
				refer(f, item, "", visit)
			}
		case f.Form == kind.Map:
			for i := range m.members {
				m.members[i].name = visit(f, m.members[i].name, m.members[i].spot)
			}
		}
	}
}

func refer(f *kind.Field, v *value, prefix string, visit func(f *kind.Field, text string, at spot) string) {
	text, ok := v.text()
	name, marked := strings.CutPrefix(text, prefix)
	if ok && marked && name != "" {
		v.scalar = quote(nil, prefix+visit(f, name, v.spot))
	}
}

// fold leaves one of those in a list of references that mean the same record,
// which a file may name by its name and by its id, and reports whether there
// were. A map says something of each, so that it calls twice in place of that.
// References must have been visited.
func fold(fields []*kind.Field, v *value, twice func(f *kind.Field, m member)) (folded bool) {
	for _, f := range fields {
		m := v.member(f.Last())
		switch {
		case m == nil || len(m.items)+len(m.members) == 0:
		case f.Form == kind.Struct:
			folded = fold(f.Members, m, twice) || folded
		case f.Targets() == nil:
		case f.Form == kind.Texts:
			before, met := len(m.items), map[string]bool{}
			m.items = slices.DeleteFunc(m.items, func(item *value) bool {
				text := string(item.scalar)
				again := met[text]
				met[text] = true
				return again
			})
			folded = folded || len(m.items) < before
		case f.Form == kind.Map:
			met := map[string]bool{}
			for _, each := range m.members {
				if met[each.name] {
					twice(f, each)
				}
				met[each.name] = true
			}
		}
	}
	return folded
}
