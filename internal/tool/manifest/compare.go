package manifest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Change is one of a list for the Management API, which makes all or none.
type Change struct {
	Op     string                    `json:"op"`
	Kind   string                    `json:"kind"`
	Target string                    `json:"target,omitempty"`
	Body   map[string]jsontext.Value `json:"body,omitempty"`
}

// What a change does.
const (
	Create = "create"
	Update = "update"
	Patch  = "patch"
	Delete = "delete"
)

// Plan is what makes a network what files want.
type Plan struct {
	Changes []Change
	// Replaced says which records have to be deleted and made again under the
	// same name, since what differs cannot be changed. Whatever rests on them is
	// lost: see the consequences.
	Replaced []string
	// Owned is how many records the files look after, and Pruned how many of them
	// are deleted since no file has them.
	Owned, Pruned int
	// Repaired is how many records that the files do not speak of are changed so
	// that they refer to what is made anew. They would be lost in between.
	Repaired int
}

// Options says how far files reach.
type Options struct {
	// Prune deletes what is not in the files.
	Prune bool
	// Label limits everything to the records that have it, and gives it to
	// those that are made.
	Label *Label
	// Adopt takes over records that have the name of one in the files and not
	// the label.
	Adopt bool
}

// Compare finds the changes. Its errors are mistakes in the files.
func Compare(files *Files, now *Network, opt Options) (*Plan, error) {
	c := &comparison{files: files, now: now, opt: opt, replaced: map[*kind.Def]map[string]bool{}, anew: map[*kind.Def]map[string]bool{}}
	for _, d := range kinds {
		c.replaced[d], c.anew[d] = map[string]bool{}, map[string]bool{}
		for _, key := range slices.Sorted(maps.Keys(files.records[d])) {
			c.prepare(files.records[d][key])
		}
	}
	if err := files.mistakes.asError(); err != nil {
		return nil, err
	}
	for _, d := range kinds {
		for _, key := range slices.Sorted(maps.Keys(files.records[d])) {
			c.compare(files.records[d][key])
		}
	}
	if err := files.mistakes.asError(); err != nil {
		return nil, err
	}
	c.restore()
	c.delete()
	c.plan.Changes = slices.Concat(c.first, c.plan.Changes, c.last)
	return &c.plan, nil
}

// comparison is the work of one Compare.
type comparison struct {
	files *Files
	now   *Network
	opt   Options
	plan  Plan

	// first are deletes, so that what is made may have what must be unique and
	// others had. last are those of records that others refer to until they
	// are changed.
	first, last []Change
	replaced    map[*kind.Def]map[string]bool
	// anew are the records that have another id when all is done, by key: those
	// that are replaced, and those that go with their maker and stay by themselves.
	anew map[*kind.Def]map[string]bool
}

// prepare gives a wish its label, and its references the names that the
// controller's have.
func (c *comparison) prepare(w *wish) {
	changed := false
	if l := c.opt.Label; l != nil && named(w.def) {
		changed = c.label(w, l)
	}
	references(w.def.Fields, w.said, func(f *kind.Field, text string, at spot) string {
		c.checkReference(w, f, text, at)
		name := c.call(f, text)
		changed = changed || name != text
		return name
	})
	twice := false
	changed = fold(w.def.Fields, w.said, func(f *kind.Field, m member) {
		twice = true
		c.files.wrong(w.file, m.spot, "%s %q: %s: %q is there twice, by its name and by its id; say once what is meant of it", noun(w.def), w.key, f.Name, m.name)
	}) || changed
	if !changed || twice {
		return
	}
	settled, err := settle(w.def, w.said, usual()[w.def])
	if err != nil {
		c.files.refused(w.file, w.def, w.said, err)
		return
	}
	w.body = settled
	if !named(w.def) {
		delete(c.files.records[w.def], w.key)
		w.key = keyOfReferences(w.def, w.said)
		c.files.records[w.def][w.key] = w
	}
}

// call returns what the controller's records call the one that a file means. A
// name that records of several kinds have now means the one that is in the files.
func (c *comparison) call(f *kind.Field, text string) string {
	is := c.now.find(f, text)
	if is == nil || is.id == text {
		return c.now.call(f, text)
	}
	for _, name := range f.Targets() {
		d := model.All.Named(name)
		if s := c.now.shelves[d]; s != nil && c.files.records[d][text] != nil && s.byName[text] != nil {
			return c.now.call(f, s.byName[text].id)
		}
	}
	return c.now.call(f, text)
}

// label adds the tag that says to which files a record belongs.
func (c *comparison) label(w *wish, l *Label) (changed bool) {
	tags := w.said.member("tags")
	if tags == nil {
		tags = &value{spot: w.said.spot}
		w.said.members = append(w.said.members, member{w.said.spot, "tags", tags})
	}
	if own := tags.member(l.Name); own != nil {
		if tags.said(l.Name) != l.Value {
			c.files.wrong(w.file, own.spot, "the tag %s is the label of these files, which is %s; leave it out", l.Name, l)
		}
		return false
	}
	tags.members = append(tags.members, member{tags.spot, l.Name, &value{spot: tags.spot, scalar: quote(nil, l.Value)}})
	return true
}

// checkReference refuses a reference to what is not there, or will not be.
func (c *comparison) checkReference(w *wish, f *kind.Field, text string, at spot) {
	inFiles := false
	for _, name := range f.Targets() {
		d := model.All.Named(name)
		if !d.InFiles {
			return // the controller has a fixed list of those
		}
		if c.files.records[d][text] != nil {
			return
		}
		inFiles = inFiles || c.brought(name, text)
	}
	there := c.now.find(f, text)
	switch {
	case inFiles:
	case there == nil && text != f.Default:
		c.unknown(w, f, text, at)
	case there != nil && (c.goes(there) || c.vanishes(there)):
		c.files.wrong(w.file, at, "%s %q: %s: the %s %q would be deleted, since the files do not have it; add it to them",
			noun(w.def), w.key, f.Name, noun(there.def), text)
	}
}

// unknown refuses a reference to what is neither in the files nor on the
// controller, and names what is like it.
func (c *comparison) unknown(w *wish, f *kind.Field, text string, at spot) {
	var known, nouns []string
	for _, name := range f.Targets() {
		d := model.All.Named(name)
		nouns = append(nouns, noun(d))
		known = slices.AppendSeq(known, maps.Keys(c.files.records[d]))
		known = slices.AppendSeq(known, maps.Keys(c.now.shelves[d].byName))
	}
	slices.Sort(known)
	c.files.wrong(w.file, at, "%s %q: %s: no %s is called %q, in the files or on the controller%s",
		noun(w.def), w.key, f.Name, orList(nouns), text, meant(text, slices.Compact(known)))
}

// brought reports whether a record in the files brings one of the kind along
// that has this name.
func (c *comparison) brought(kindName, name string) bool {
	router := c.files.records[model.All.Named(makes)][name]
	return kindName == model.Identities.Def.Name && router != nil && tunnels(router)
}

func orList(words []string) string {
	text := ""
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " or "
		default:
			text += ", "
		}
		text += w
	}
	return text
}

func tunnels(router *wish) bool { return string(router.body.named("isTunnelerEnabled")) == "true" }

// compare adds the changes that one record needs.
func (c *comparison) compare(w *wish) {
	is := c.now.shelves[w.def].byKey[w.key]
	if is == nil || c.vanishes(is) {
		if is != nil {
			c.anew[w.def][w.key] = true
		}
		c.create(w)
		return
	}
	if named(w.def) && !c.now.has(is, c.opt.Label) && !c.opt.Adopt {
		c.files.wrong(w.file, w.place(), "there is %s %q that does not have the label %s: choose another name, or give --adopt to take it over", article(noun(w.def)), w.key, c.opt.Label)
		return
	}
	if !named(w.def) {
		if c.lost(w.def, w.said) {
			c.create(w)
		}
		return
	}
	var differ []*kind.Field
	for _, f := range w.def.Fields {
		if !settable(f) || equal(is.wants(w, f), is.body.of(f)) && !c.cleared(f, w.said) {
			continue
		}
		if f.Fixed || w.def.Decides(f) {
			c.replace(w, f)
			return
		}
		differ = append(differ, f)
	}
	if len(differ) > 0 {
		c.lead(w)
		c.plan.Changes = append(c.plan.Changes, w.change(is.id, differ))
	}
}

func (c *comparison) create(w *wish) {
	c.lead(w)
	c.plan.Changes = append(c.plan.Changes, Change{Op: Create, Kind: w.def.Name, Body: w.all(kind.Create)})
}

// replace makes a record anew, after it was deleted.
func (c *comparison) replace(w *wish, f *kind.Field) {
	c.replaced[w.def][w.key], c.anew[w.def][w.key] = true, true
	c.plan.Replaced = append(c.plan.Replaced, fmt.Sprintf("%s %q is deleted and made again, since its %s cannot be changed", noun(w.def), w.key, f.Name))
	c.create(w)
}

// renewed returns the name of the record that a reference means if that is made
// anew, so that its id will be another.
func (c *comparison) renewed(f *kind.Field, text string) (name string, is bool) {
	for _, of := range f.Targets() {
		d := model.All.Named(of)
		if s := c.now.shelves[d]; s != nil && s.byID[text] != nil {
			return s.byID[text].key, c.anew[d][s.byID[text].key]
		}
		if c.anew[d][text] {
			return text, true
		}
	}
	return text, false
}

// leadAll has references lead to what is made anew by its name, also where its id
// stood for it, and reports whether there was such a one.
func (c *comparison) leadAll(d *kind.Def, said *value) (changed bool) {
	references(d.Fields, said, func(f *kind.Field, text string, _ spot) string {
		name, is := c.renewed(f, text)
		if !is {
			return text
		}
		changed = changed || name != text
		return name
	})
	return changed
}

// lead does so for a wish that is compared already.
func (c *comparison) lead(w *wish) {
	if !c.leadAll(w.def, w.said) {
		return
	}
	if settled, err := settle(w.def, w.said, usual()[w.def]); err == nil { // it was acceptable before
		w.body = settled
	}
}

// cleared reports whether a field refers to a record that is made anew: its
// references went with the one before.
func (c *comparison) cleared(f *kind.Field, said *value) (is bool) {
	references([]*kind.Field{f}, said, func(f *kind.Field, text string, _ spot) string {
		_, anew := c.renewed(f, text)
		is = is || anew
		return text
	})
	return is
}

// lost reports whether a record goes with one that it refers to.
func (c *comparison) lost(d *kind.Def, said *value) bool {
	return slices.ContainsFunc(d.Fields, func(f *kind.Field) bool { return f.OnDelete == kind.Cascade && c.cleared(f, said) })
}

// restore has records that the files do not speak of refer to what is made
// anew, as they did to what was there before.
func (c *comparison) restore() {
	if !slices.ContainsFunc(kinds, func(d *kind.Def) bool { return len(c.anew[d]) > 0 }) {
		return
	}
	for _, d := range kinds {
		for _, r := range c.now.sorted(d) {
			if c.files.records[d][r.key] != nil || c.goes(r) || c.vanishes(r) || r.kept {
				continue
			}
			said := r.body.object()
			lost := c.lost(d, said)
			var cleared []*kind.Field
			for _, f := range d.Fields {
				if c.cleared(f, said) {
					cleared = append(cleared, f)
				}
			}
			if len(cleared) == 0 {
				continue
			}
			c.leadAll(d, said)
			c.plan.Changes = append(c.plan.Changes, repair(r, said, cleared, lost))
			c.plan.Repaired++
		}
	}
}

// repair is the change that has a record refer again to what is made anew.
func repair(r *current, said *value, cleared []*kind.Field, lost bool) Change {
	body := map[string]jsontext.Value{}
	if lost {
		for _, m := range said.members {
			body[m.name] = m.value.json()
		}
		return Change{Op: Create, Kind: r.def.Name, Body: body}
	}
	for _, f := range cleared {
		body[f.Last()] = said.member(f.Last()).json()
	}
	return Change{Op: Patch, Kind: r.def.Name, Target: r.id, Body: body}
}

// all is the whole body.
func (w *wish) all(shape kind.Shape) map[string]jsontext.Value {
	all := map[string]jsontext.Value{}
	for _, f := range w.def.Fields {
		raw := w.body.of(f)
		switch {
		case !f.Taken(shape):
		case raw != nil:
			all[f.Last()] = raw
		case shape == kind.Replace && f.Keep && f.When == "":
			all[f.Last()] = nothing(f) // or what there was would stay
		}
	}
	return all
}

// nothing is what empties a field.
func nothing(f *kind.Field) jsontext.Value {
	switch f.Form {
	case kind.Texts, kind.Structs:
		return jsontext.Value("[]")
	case kind.Map, kind.Marks, kind.JSON:
		return jsontext.Value("{}")
	case kind.Bool:
		return jsontext.Value("false")
	case kind.Int:
		return jsontext.Value("0")
	}
	return jsontext.Value(`""`)
}

// change is a patch of what differs. A patch cannot empty an object, or take
// one away, which a whole body can.
func (w *wish) change(id string, differ []*kind.Field) Change {
	patch := map[string]jsontext.Value{}
	for _, f := range differ {
		raw := w.body.of(f)
		if len(raw) == 0 || emptied(f, raw) {
			return Change{Op: Update, Kind: w.def.Name, Target: id, Body: w.all(kind.Replace)}
		}
		patch[f.Last()] = raw
	}
	for _, f := range w.def.Fields {
		if f.Required&kind.Patch != 0 {
			patch[f.Last()] = w.body.of(f)
		}
	}
	return Change{Op: Patch, Kind: w.def.Name, Target: id, Body: patch}
}

// emptied reports whether a value, or one in it, says that there is nothing.
func emptied(f *kind.Field, raw jsontext.Value) bool {
	if raw.Kind() == 'n' {
		return true
	}
	switch f.Form {
	case kind.Marks, kind.Map, kind.JSON:
		return string(raw) == "{}"
	case kind.Struct:
		v, err := fromJSON(raw)
		return err != nil || slices.ContainsFunc(f.Members, func(m *kind.Field) bool {
			inner := v.member(m.Last())
			return inner == nil || emptied(m, inner.json())
		})
	}
	return false
}
