package console

import (
	"errors"
	"maps"
	"net/http"
	"net/url"

	"netkeep.internal/internal/lang/kind"
)

// editing is a change of one record by a form.
type editing struct {
	*visit
	*drawing
	of       resource
	id, name string
	fields   []*kind.Field
	now      values // what is stored
}

// canons are what inputs stand for, by path.
func (e *editing) canons(in values) map[string]string {
	all := map[string]string{}
	for _, l := range leavesOf(e.fields, "") {
		all[l.path] = l.canon(in)
	}
	all[stamp] = in[stamp]
	return all
}

// stamp is the path of when a record was last changed. A form carries it for secrets:
// what they were nobody can see.
const stamp = "updatedAt"

// form shows the form of the record.
func (e *editing) form(status int, view formView) {
	e.required, e.drawing.of = kind.Patch, e.of.Name
	view.Head, view.About, view.Stamp = "Change "+e.name, "", e.was[stamp]
	view.Up, view.Action, view.Save = navLink{Text: e.name, Href: e.of.page(e.id)}, e.of.page(e.id, "edit"), "Save"
	view.Look = lookAt(e.of, view.Action)
	e.visit.show(status, "form", page{Title: view.Head, Body: e.drawing.view(view, e.fields)})
}

// maxTries is how often a change is tried again because the network changes meanwhile.
const maxTries = 3

// save makes the changes of the form, if nobody else has changed the same. was is what
// the form was made of.
func (e *editing) save(was map[string]string) {
	e.complete()
	for range maxTries {
		mine, ok := e.wished(was)
		if !ok {
			return
		}
		if len(mine) == 0 {
			http.Redirect(e.w, e.r, e.of.page(e.id), http.StatusSeeOther)
			return
		}
		err := e.send(mine)
		var f *failure
		if errors.As(err, &f) && f.Code == outdated {
			var fresh values
			if fresh, e.name, err = e.stored(e.of, e.id, e.fields); err != nil {
				e.visit.fail(err)
				return
			}
			e.now = fresh
			continue
		}
		if err != nil {
			e.was = was
			e.notSaved(err, e.drawing, e.fields, e.form)
			return
		}
		http.Redirect(e.w, e.r, e.of.page(e.id), http.StatusSeeOther)
		return
	}
	e.was = was
	e.form(http.StatusConflict, formView{Problem: "Nothing was saved: the network is changing all the time. Try again."})
}

// complete adds to what was sent what is not in the form: whether a field counts may be
// up to it.
func (e *editing) complete() {
	for path, text := range e.now {
		if _, given := e.in[path]; !given && !e.holds(path) {
			e.in[path] = text
		}
	}
}

// outdated is the code of a change whose outcome would be another than planned.
const outdated = "PLAN_OUTDATED"

// holds reports whether the form has an input for a path.
func (e *editing) holds(path string) bool {
	for _, l := range leavesOf(e.fields, "") {
		if l.path == path || l.field.Form == kind.Structs && len(path) > len(l.path) && path[:len(l.path)+1] == l.path+"." {
			return true
		}
		for _, around := range l.within {
			if around+givenSuffix == path {
				return true
			}
		}
	}
	return false
}

// wished is what the form changes. If something cannot be read, or somebody else has
// changed the same, the form is shown again and ok is false.
func (e *editing) wished(was map[string]string) (mine []leaf, ok bool) {
	mine = e.changed(was)
	switch {
	case len(e.drawing.errors) > 0:
		e.was = was
		e.form(http.StatusBadRequest, formView{Problem: "Nothing was saved. Look at what is marked."})
		return nil, false
	case len(e.theirs) > 0:
		e.contest(was)
		return nil, false
	}
	return mine, true
}

// changed lists the leaves that the form changes, and notes which of them somebody else
// has changed as well, and what cannot be read.
func (e *editing) changed(was map[string]string) (mine []leaf) {
	e.theirs = map[string]string{}
	for _, l := range leavesOf(e.fields, "") {
		wish, now := l.canon(e.in), l.canon(e.now)
		if l.field.Secret {
			switch {
			case e.in[l.path] == "":
			case !e.of.listed() && was[stamp] != e.now[stamp]:
				e.theirs[l.path] = "(perhaps; nobody can see it)"
			default:
				mine = append(mine, l)
			}
			continue
		}
		if wish == was[l.path] || wish == now {
			continue
		}
		if now != was[l.path] {
			e.theirs[l.path] = e.shownAs(l)
			continue
		}
		if _, err := l.read(e.in); err != nil && !errors.Is(err, errEmpty) && l.exists(e.in) {
			e.drawing.errors[l.path] = sentence(err.Error())
			continue
		}
		mine = append(mine, l)
	}
	return mine
}

// shownAs is what somebody else made of a leaf, for people.
func (e *editing) shownAs(l leaf) string {
	switch {
	case l.field.Form == kind.Structs:
		return l.canon(e.now)
	case l.field.Form == kind.Bool && e.now[l.path] == "":
		return "no"
	case l.field.Form == kind.Bool:
		return "yes"
	case e.now[l.path] == "":
		return "(nothing)"
	}
	return e.now[l.path]
}

// contest shows what somebody else has changed beside what was typed. To save again is
// to know of it.
func (e *editing) contest(was map[string]string) {
	shown := maps.Clone(e.in)
	for _, l := range leavesOf(e.fields, "") {
		if _, both := e.theirs[l.path]; !both && l.canon(e.in) == was[l.path] && l.field.Form != kind.Structs {
			shown[l.path] = e.now[l.path]
		}
	}
	e.in, e.was = shown, e.canons(e.now)
	e.form(http.StatusConflict, formView{Problem: "Nothing was saved: somebody else has changed the same meanwhile. Both are shown; save again to have it as you typed it."})
}

// composed is the change that the form stands for.
func (e *editing) composed(mine []leaf) (op string, body map[string]any) {
	op, body = "patch", map[string]any{}
	for _, l := range mine {
		if e.clears(l) {
			op = "update" // in a patch an object without members is none at all
		}
	}
	for _, l := range leavesOf(e.fields, "") {
		given := op == "update" || l.field.Required&kind.Patch != 0
		for _, m := range mine {
			given = given || m.path == l.path
		}
		if given && l.exists(e.in) {
			put(body, l.path, e.sends(l, op))
		}
	}
	return op, body
}

// send makes the changes.
func (e *editing) send(mine []leaf) error {
	op, body := e.composed(mine)
	if !e.of.listed() {
		if err := e.resolve(e.fields, body); err != nil {
			return err
		}
		q := request{method: http.MethodPatch, path: e.of.at() + "/" + e.id, body: body}
		if e.of.Name == "authenticator" {
			q.query = url.Values{"unchangedSince": {e.now[stamp]}}
		}
		_, err := e.ask(q)
		return err
	}
	in := changeIn{Op: op, Kind: e.of.Name, Target: e.id, Body: body}
	plan, err := e.change(in, "", true)
	if err != nil {
		return err
	}
	if err := e.unmoved(); err != nil {
		return err
	}
	_, err = e.change(in, plan.Digest, false)
	return err
}

// unmoved makes sure that what was planned is a change of what the form knows: a plan
// tells of everything that it rests on, but is made of what there is when it is asked for.
func (e *editing) unmoved() error {
	fresh, _, err := e.stored(e.of, e.id, e.fields)
	if err != nil {
		return err
	}
	for _, l := range leavesOf(e.fields, "") {
		if l.canon(fresh) != l.canon(e.now) {
			return &failure{status: http.StatusConflict, Code: outdated}
		}
	}
	return nil
}

// clears reports whether a change takes an object or struct away.
func (e *editing) clears(l leaf) bool {
	if !l.exists(e.in) {
		return l.exists(e.now)
	}
	switch l.field.Form {
	case kind.Map, kind.Marks, kind.JSON:
		_, err := l.read(e.in)
		return errors.Is(err, errEmpty)
	}
	return false
}

// sends is what a leaf is in the body.
func (e *editing) sends(l leaf, op string) any {
	v, err := l.read(e.in)
	if !errors.Is(err, errEmpty) {
		return v
	}
	switch l.field.Form {
	case kind.Text:
		if l.field.Nullable && op == "update" {
			return nil
		}
		return ""
	case kind.Int:
		return 0
	case kind.Texts, kind.Structs:
		return []any{}
	case kind.Map, kind.Marks, kind.JSON:
		return map[string]any{}
	}
	return nil
}
