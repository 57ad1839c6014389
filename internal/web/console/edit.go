package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
)

// create makes a record of a form.
func (v *visit) create(of resource) {
	fields, ok := of.creates()
	if !ok {
		v.missing()
		return
	}
	if v.r.Method != http.MethodPost {
		v.createForm(of, http.StatusOK, &drawing{visit: v, in: v.usual(of, fields)}, formView{})
		return
	}
	if !v.receive(v.MaxBody) {
		return
	}
	if !v.ours() {
		v.createAgain(of, "The page was of another session. Nothing was saved yet: look it through and save.")
		return
	}
	in, _ := sent(v.form)
	d := &drawing{visit: v, in: in, errors: map[string]string{}}
	body := d.body(fields)
	if len(d.errors) > 0 {
		v.createForm(of, http.StatusBadRequest, d, formView{Problem: "Nothing was saved. Look at what is marked."})
		return
	}
	if v.looks() {
		if !of.listed() { // who looks saves nothing
			v.missing()
			return
		}
		of.Complete(body)
		plan, err := v.change(changeIn{Op: "create", Kind: of.Name, Body: body}, "", true)
		if err != nil {
			v.notSaved(err, d, fields, func(status int, view formView) { v.createForm(of, status, d, view) })
			return
		}
		v.createForm(of, http.StatusOK, d, formView{Plan: v.planOf(plan)})
		return
	}
	id, err := v.makeRecord(of, fields, body)
	if err != nil {
		v.notSaved(err, d, fields, func(status int, view formView) { v.createForm(of, status, d, view) })
		return
	}
	http.Redirect(v.w, v.r, of.page(id), http.StatusSeeOther)
}

// createAgain shows the form for a new record with what was typed in it.
func (v *visit) createAgain(of resource, why string) {
	in, _ := sent(v.form)
	v.createForm(of, http.StatusOK, &drawing{visit: v, in: in}, formView{Notice: why})
}

func (v *visit) createForm(of resource, status int, d *drawing, view formView) {
	fields, _ := of.creates()
	d.required, d.of = kind.Create, of.Name
	view.Head, view.About = "New "+of.one(), about(of.Def)
	view.Up, view.Action, view.Save = navLink{Text: titled(of.many()), Href: of.page()}, of.page("new"), "Create "+of.one()
	view.Look = lookAt(of, view.Action)
	v.show(status, "form", page{Title: view.Head, Body: d.view(view, fields)})
}

// body is what a new record is made of. What cannot be read is among the errors.
func (d *drawing) body(fields []*kind.Field) map[string]any {
	body := map[string]any{}
	for _, l := range leavesOf(fields, "") {
		if !l.exists(d.in) {
			continue
		}
		value, err := l.read(d.in)
		switch {
		case errors.Is(err, errEmpty):
		case err != nil:
			d.errors[l.path] = sentence(err.Error())
		case l.field.Form == kind.Bytes && !isBase64(d.in[l.path]):
			d.errors[l.path] = "Must be base64."
		default:
			put(body, l.path, value)
		}
	}
	return body
}

// put sets a member at a path.
func put(body map[string]any, path string, value any) {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		body[name] = value
		return
	}
	inner, ok := body[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
		body[name] = inner
	}
	put(inner, rest, value)
}

// makeRecord creates a record and returns its id.
func (v *visit) makeRecord(of resource, fields []*kind.Field, body map[string]any) (string, error) {
	of.Complete(body)
	if of.listed() {
		out, err := v.change(changeIn{Op: "create", Kind: of.Name, Body: body}, "", false)
		if err != nil {
			return "", err
		}
		return out.Changes[0].ID, nil
	}
	if err := v.resolve(fields, body); err != nil {
		return "", err
	}
	a, err := v.ask(request{method: http.MethodPost, path: of.at(), body: body})
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"id"`
	}
	return made.ID, a.data(&made)
}

// notSaved shows a form again with what is wrong beside the inputs that it is about.
func (v *visit) notSaved(err error, d *drawing, fields []*kind.Field, form func(status int, view formView)) {
	var f *failure
	if errors.As(err, &f) && f.lacks() != "" {
		form(http.StatusForbidden, formView{Problem: "Nothing was saved. " + f.lacks()})
		return
	}
	if f == nil || f.status == http.StatusUnauthorized || f.status >= http.StatusInternalServerError {
		if f != nil && f.status >= http.StatusInternalServerError {
			form(f.status, formView{Problem: "Nothing was saved, or nobody knows: " + f.says()})
			return
		}
		v.fail(err)
		return
	}
	field := f.Cause.Field
	for _, prefix := range []string{"changes.0.", "body."} {
		field = strings.TrimPrefix(field, prefix)
	}
	if path := inputOf(fields, field); path != "" {
		d.errors[path] = sentence(f.Cause.Reason)
		form(f.status, formView{Problem: "Nothing was saved. Look at what is marked."})
		return
	}
	form(f.status, formView{Problem: "Nothing was saved. " + f.says(), Overrides: f.Code == broken && v.may(overrides)})
}

// inputOf is the path of the input that a failure is about; empty if it is about none.
func inputOf(fields []*kind.Field, named string) string {
	for _, l := range leavesOf(fields, "") {
		shown := strings.TrimSuffix(l.path, l.field.Last()) + l.field.Shown()
		if named == l.path || named == shown || strings.HasPrefix(named, l.path+".") || strings.HasPrefix(named, l.path+"[") {
			return l.path
		}
	}
	return ""
}

// begin reads the record that a form is to change. It answers itself and returns nil
// if there is none.
func (v *visit) begin(of resource, id string) *editing {
	fields, ok := of.edits()
	if !ok {
		v.missing()
		return nil
	}
	now, name, err := v.stored(of, id, fields)
	if err != nil {
		v.fail(err)
		return nil
	}
	return &editing{visit: v, of: of, id: id, name: name, now: now, fields: existing(fields, now)}
}

// edit changes a record by a form.
func (v *visit) edit(of resource, id string) {
	e := v.begin(of, id)
	if e == nil {
		return
	}
	e.drawing = &drawing{visit: v, in: e.now, was: e.canons(e.now), errors: map[string]string{}}
	if v.r.Method != http.MethodPost {
		e.form(http.StatusOK, formView{})
		return
	}
	if !v.receive(v.MaxBody) {
		return
	}
	var was map[string]string
	e.in, was = sent(v.form)
	if !v.ours() {
		e.was = was
		e.form(http.StatusOK, formView{Notice: "The page was of another session. Nothing was saved yet: look it through and save."})
		return
	}
	if v.looks() {
		e.look(was)
		return
	}
	e.save(was)
}

// editAgain shows the form of a record with what was typed in it.
func (v *visit) editAgain(of resource, id, why string) {
	e := v.begin(of, id)
	if e == nil {
		return
	}
	in, was := sent(v.form)
	e.drawing = &drawing{visit: v, in: in, was: was}
	e.form(http.StatusOK, formView{Notice: why})
}

// stored is what a record has now, as inputs hold it.
func (v *visit) stored(of resource, id string, fields []*kind.Field) (now values, name string, err error) {
	var rec members
	if err := v.get(of.at()+"/"+id, nil, &rec); err != nil {
		return nil, "", err
	}
	// Whether a field counts may be up to one that cannot be changed.
	now = written(of.Fields, "", rec, v.names(of.Fields, rec), values{})
	written(fields, "", rec, nil, now)
	return written(of.Fields, "", rec, v.names(of.Fields, rec), now), label(rec), nil
}

// existing are the fields that a record of its variant has.
func existing(fields []*kind.Field, now values) (some []*kind.Field) {
	for _, f := range fields {
		if (leaf{path: f.Last(), field: f}).exists(now) {
			some = append(some, f)
		}
	}
	return some
}

// resolve puts ids in the place of names, for operations that know ids alone.
func (v *visit) resolve(fields []*kind.Field, body map[string]any) error {
	for _, f := range fields {
		text, ok := body[f.Last()].(string)
		if !ok || len(f.Targets()) == 0 {
			continue
		}
		d := v.Kinds.Named(f.Targets()[0])
		if d == nil {
			continue
		}
		page, err := v.list(resource{v.Console, d}.at(), map[string][]string{"filter": {"id = " + quote(text) + " or name = " + quote(text)}, "fields": {"id"}, "limit": {"2"}})
		if err != nil {
			return err
		}
		if len(page.Data) == 1 {
			body[f.Last()] = page.Data[0].text("id")
		}
	}
	return nil
}

// changeIn is one of a list of changes.
type changeIn struct {
	Op     string `json:"op"`
	Kind   string `json:"kind"`
	Target string `json:"target,omitempty"`
	Body   any    `json:"body,omitzero"`
}

// changedRecord is what became of a record, or would.
type changedRecord struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Fields  []struct {
		Name   string         `json:"name"`
		Before jsontext.Value `json:"before"`
		After  jsontext.Value `json:"after"`
	} `json:"fields"`
}

// changeOut is what came of a list of changes, or would.
type changeOut struct {
	Digest       string          `json:"digest"`
	Changes      []changedRecord `json:"changes"`
	Consequences []struct {
		Kind    string `json:"kind"`
		ID      string `json:"id"`
		Name    string `json:"name"`
		Outcome string `json:"outcome"`
	} `json:"consequences"`
	MoreConsequences bool   `json:"moreConsequences"`
	Access           access `json:"access"`
	// What a plan breaks: without override it is refused.
	Assertions []breach `json:"assertions"`
}

// change makes a change, or with plan says what would come of it. With a digest it is
// made only if the outcome is the one that was planned.
func (v *visit) change(in changeIn, expect string, plan bool) (out changeOut, err error) {
	return v.changes([]changeIn{in}, expect, plan)
}

// changes makes changes, in the same way.
func (v *visit) changes(list []changeIn, expect string, plan bool) (out changeOut, err error) {
	body := map[string]any{"changes": list}
	if expect != "" {
		body["expect"] = expect
	}
	q := request{method: http.MethodPost, path: v.ManagementRoot + "/changes", body: body}
	switch {
	case plan:
		q.query = map[string][]string{"plan": {"true"}}
	case v.r.Method == http.MethodPost && v.r.URL.Query().Has("override"):
		q.query = map[string][]string{"override": {"true"}}
	}
	a, err := v.ask(q)
	if err != nil {
		return out, err
	}
	return out, a.data(&out)
}
