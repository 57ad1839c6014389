package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"netkeep.internal/internal/lang/kind"
)

// deleteView is the page that says what goes along with a record.
type deleteView struct {
	Name, One       string
	Up              navLink
	Action          string
	Problem, Digest string
	Gone            []consequenceView // what is deleted or changed because of it
	More            bool
	Lost            []string // who loses what
	LostMore        int
	Blocked         bool // whether it cannot be deleted
	Planned         bool // whether it is known what goes along
	Broken          []brokenView
	Override        string // where the form is sent to delete it though an assertion breaks
}

type consequenceView struct{ Outcome, Kind, Name, Href string }

// mostLost is how many of those who lose access a page names.
const mostLost = 20

// delete asks whether a record is to be deleted, and does it.
func (v *visit) delete(of resource, id string) {
	if !of.deletes() {
		v.missing()
		return
	}
	var rec members
	if err := v.get(of.at()+"/"+id, nil, &rec); err != nil {
		v.fail(err)
		return
	}
	view := deleteView{Name: label(rec), One: of.one(), Up: navLink{Text: label(rec), Href: of.page(id)}, Action: of.page(id, "delete")}
	if v.r.Method != http.MethodPost {
		v.deletePage(of, id, http.StatusOK, view)
		return
	}
	if !v.receive(v.MaxBody) {
		return
	}
	if !v.ours() {
		view.Problem = "The page was of another session. Nothing was deleted yet."
		v.deletePage(of, id, http.StatusForbidden, view)
		return
	}
	err := v.remove(of, id, v.form.Get("digest"))
	var f *failure
	switch {
	case errors.As(err, &f) && f.Code == outdated:
		view.Problem = "Nothing was deleted: the network has changed since. Look at what goes along now."
		v.deletePage(of, id, http.StatusConflict, view)
	case errors.As(err, &f) && f.status != http.StatusUnauthorized && f.status < http.StatusInternalServerError:
		view.Problem = "Nothing was deleted. " + f.says()
		v.deletePage(of, id, f.status, view)
	case err != nil:
		v.fail(err)
	default:
		http.Redirect(v.w, v.r, of.page(), http.StatusSeeOther)
	}
}

// remove deletes a record, with what was shown to go along and nothing else.
func (v *visit) remove(of resource, id, digest string) error {
	if of.listed() {
		_, err := v.change(changeIn{Op: "delete", Kind: of.Name, Target: id}, digest, false)
		return err
	}
	_, err := v.ask(request{method: http.MethodDelete, path: of.at() + "/" + id})
	return err
}

// deletePage shows what would go along.
func (v *visit) deletePage(of resource, id string, status int, view deleteView) {
	if of.listed() {
		plan, err := v.change(changeIn{Op: "delete", Kind: of.Name, Target: id}, "", true)
		var f *failure
		switch {
		case errors.As(err, &f) && f.status != http.StatusUnauthorized && f.status < http.StatusInternalServerError:
			view.Blocked = true
			if view.Problem == "" {
				view.Problem = "It cannot be deleted. " + f.says()
			}
		case err != nil:
			v.fail(err)
			return
		default:
			v.planned(&view, plan)
			view.Broken = v.brokenBy(plan)
			view.Override, view.Blocked = v.overriding(view.Action, plan, false)
		}
	}
	v.show(status, "delete", page{Title: "Delete " + view.Name, Body: view})
}

// planned adds what a plan says.
func (v *visit) planned(view *deleteView, plan changeOut) {
	view.Planned, view.Digest, view.More = true, plan.Digest, plan.MoreConsequences
	for _, c := range plan.Consequences {
		one := consequenceView{Outcome: c.Outcome, Kind: strings.ReplaceAll(c.Kind, "-", " "), Name: c.Name}
		if one.Name == "" {
			one.Name = c.ID
		}
		if d := v.Kinds.Named(c.Kind); d != nil && v.shown(d) && c.ID != "" {
			one.Href = link(d.Path, c.ID)
		}
		view.Gone = append(view.Gone, one)
	}
	for _, p := range plan.Access.Pairs {
		if p.Change != "lost" {
			continue
		}
		if len(view.Lost) == mostLost {
			break
		}
		verb := "use"
		if p.Type == "Bind" {
			verb = "host"
		}
		view.Lost = append(view.Lost, fmt.Sprintf("%s can no longer %s %s", p.Identity, verb, p.Service))
	}
	view.LostMore = plan.Access.Lost - len(view.Lost)
}

// events tells the browser of changes as they happen: it is the API's own stream, with
// the session of the cookie.
func (v *visit) events() {
	asked := v.r.URL.Query().Get("kinds")
	q := request{method: http.MethodGet, path: v.ManagementRoot + "/events"}
	if asked != "" {
		q.query = map[string][]string{"kinds": {asked}}
	}
	req, err := v.made(q)
	if err != nil {
		v.fail(err)
		return
	}
	if last := v.r.Header.Get("Last-Event-ID"); last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	v.APIs.ServeHTTP(v.w, req)
}

// searchable reports whether records of a kind are found by their names.
func (c *Console) searchable(d *kind.Def) bool { return c.shown(d) && d.Field("name") != nil }
