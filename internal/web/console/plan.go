package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// access is who may use what that they could not before, and the other way round.
type access struct {
	Gained int  `json:"gained"`
	Lost   int  `json:"lost"`
	More   bool `json:"more"`
	Pairs  []struct {
		IdentityID string `json:"identityId"`
		Identity   string `json:"identity"`
		ServiceID  string `json:"serviceId"`
		Service    string `json:"service"`
		Type       string `json:"type"`
		Change     string `json:"change"`
	} `json:"pairs"`
}

// planView is what would come of changes, or came of them.
type planView struct {
	Records   []planRecord
	Gone      []consequenceView
	GoneMore  bool
	Gained    int
	Lost      int
	Pairs     []pairView
	PairsMore int // how many are not listed
	Nothing   bool
	Broken    []brokenView // assertions that would not hold
}

// planRecord is a record that becomes another.
type planRecord struct {
	Outcome, Kind, Name, Href string
	Fields                    []diffView
}

// Head is what the table of its fields is called.
func (r planRecord) Head() string { return "What changes of " + r.Kind + " " + r.Name }

// diffView is a field before and after.
type diffView struct {
	Head          string
	Before, After value
}

// pairView is somebody who gains or loses something.
type pairView struct {
	Identity, IdentityHref, Service, ServiceHref string
	Verb                                         string // use or host
	Change                                       string // gains or loses
}

// Bounds of what a page shows of a plan.
const (
	mostPairs   = 200
	mostRecords = 100
)

// looks reports whether a form was sent to see what would come of it.
func (v *visit) looks() bool { return v.r.URL.Query().Has("look") }

// lookAt is where a form is sent for that; empty if only a list of changes could tell.
func lookAt(of resource, action string) string {
	if !of.listed() {
		return ""
	}
	return action + "?look=1#plan"
}

// look shows the form again with what would come of it.
func (e *editing) look(was map[string]string) {
	if !e.of.listed() {
		e.missing()
		return
	}
	e.complete()
	mine, ok := e.wished(was)
	if !ok {
		return
	}
	e.was = was
	if len(mine) == 0 {
		e.form(http.StatusOK, formView{Plan: &planView{Nothing: true}})
		return
	}
	op, body := e.composed(mine)
	plan, err := e.change(changeIn{Op: op, Kind: e.of.Name, Target: e.id, Body: body}, "", true)
	if err != nil {
		e.notSaved(err, e.drawing, e.fields, e.form)
		return
	}
	e.form(http.StatusOK, formView{Plan: e.planOf(plan)})
}

// planOf is a plan as a page shows it.
func (v *visit) planOf(out changeOut) *planView {
	view := &planView{GoneMore: out.MoreConsequences}
	found := v.foundIn(out)
	for _, c := range out.Changes {
		if c.Outcome == "unchanged" || len(view.Records) == mostRecords {
			continue
		}
		one := planRecord{Outcome: c.Outcome, Kind: strings.ReplaceAll(c.Kind, "-", " "), Name: c.Name, Href: v.recordPage(c.Kind, c.ID)}
		if one.Name == "" {
			one.Name = c.ID
		}
		if c.Outcome == "deleted" {
			one.Href = ""
		}
		for _, f := range c.Fields {
			one.Fields = append(one.Fields, found.diff(c.Kind, f.Name, f.Before, f.After))
		}
		view.Records = append(view.Records, one)
	}
	for _, c := range out.Consequences {
		if len(view.Gone) == mostRecords {
			view.GoneMore = true
			break
		}
		one := consequenceView{Outcome: c.Outcome, Kind: strings.ReplaceAll(c.Kind, "-", " "), Name: c.Name, Href: v.recordPage(c.Kind, c.ID)}
		if one.Name == "" {
			one.Name = c.ID
		}
		view.Gone = append(view.Gone, one)
	}
	v.addPairs(view, out.Access)
	view.Broken = v.brokenBy(out)
	view.Nothing = len(view.Records)+len(view.Gone)+view.Gained+view.Lost == 0
	return view
}

// foundIn knows the names of the records that the fields of a plan refer to.
func (v *visit) foundIn(out changeOut) naming {
	n := naming{visit: v}
	for _, c := range out.Changes {
		for _, f := range c.Fields {
			n.want(c.Kind, f.Name, f.Before, f.After)
		}
	}
	n.ask()
	return n
}

// addPairs adds who gains and loses what.
func (v *visit) addPairs(view *planView, moved access) {
	view.Gained, view.Lost = moved.Gained, moved.Lost
	for _, p := range moved.Pairs {
		if len(view.Pairs) == mostPairs {
			break
		}
		one := pairView{
			Identity: p.Identity, IdentityHref: v.recordPage("identity", p.IdentityID), Service: p.Service, ServiceHref: v.recordPage("service", p.ServiceID),
			Verb: "use", Change: "gains",
		}
		if p.Type == "Bind" {
			one.Verb = "host"
		}
		if p.Change == "lost" {
			one.Change = "loses"
		}
		view.Pairs = append(view.Pairs, one)
	}
	view.PairsMore = max(0, moved.Gained+moved.Lost-len(view.Pairs))
}

// recordPage is the page of a record; empty if there is none.
func (c *Console) recordPage(kindName, id string) string {
	if d := c.Kinds.Named(kindName); d != nil && c.shown(d) && id != "" {
		return link(d.Path, id)
	}
	return ""
}

// confirmation is a page that shows what would come of changes, and makes them when that
// is confirmed: then, and only if just that comes of them.
type confirmation struct {
	Head, About     string
	Up              navLink
	Action          string
	Problem, Digest string
	Blocked         bool // whether it cannot be done
	Conflicts       []string
	Notes           []string
	Plan            *planView
	Do              string // what the button says
	Hidden          []keptInput
	Override        string // where the form is sent to do it though an assertion breaks; empty if it cannot be
}

// confirm shows changes and makes them. done leads on.
func (v *visit) confirm(view confirmation, list []changeIn, done func()) {
	status := http.StatusOK
	if v.r.Method == http.MethodPost {
		switch {
		case !v.ours():
			status, view.Problem = http.StatusForbidden, "The page was of another session. Nothing was changed yet."
		case v.form.Get("digest") == "" || len(list) == 0:
			status, view.Problem = http.StatusConflict, "Nothing was changed yet. Look at what would be."
		default:
			_, err := v.changes(list, v.form.Get("digest"), false)
			var f *failure
			switch {
			case err == nil:
				done()
				return
			case errors.As(err, &f) && f.Code == outdated:
				status, view.Problem = http.StatusConflict, "Nothing was changed: the network is not as it was. Look at what would change now."
			case errors.As(err, &f) && f.status != http.StatusUnauthorized && f.status < http.StatusInternalServerError:
				status, view.Problem = f.status, "Nothing was changed. "+f.says()
			default:
				v.fail(err)
				return
			}
		}
	}
	v.confirmPage(status, view, list)
}

// confirmPage shows what would come of changes.
func (v *visit) confirmPage(status int, view confirmation, list []changeIn) {
	view.Blocked = view.Blocked || len(list) == 0
	if len(list) > 0 {
		plan, err := v.changes(list, "", true)
		var f *failure
		switch {
		case errors.As(err, &f) && f.status != http.StatusUnauthorized && f.status < http.StatusInternalServerError:
			view.Blocked = true
			if view.Problem == "" {
				view.Problem = "This cannot be done. " + f.says()
			}
		case err != nil:
			v.fail(err)
			return
		default:
			view.Plan, view.Digest = v.planOf(plan), plan.Digest
			view.Override, view.Blocked = v.overriding(view.Action, plan, view.Blocked)
		}
	}
	v.show(status, "confirm", page{Title: view.Head, Body: view})
}

// proposed is a change that an API names.
type proposed struct {
	Op     string         `json:"op"`
	Kind   string         `json:"kind"`
	Target string         `json:"target"`
	Body   jsontext.Value `json:"body"`
}

// listOf are changes that an API names, to be sent.
func listOf(all []proposed) (list []changeIn) {
	for _, p := range all {
		in := changeIn{Op: p.Op, Kind: p.Kind, Target: p.Target}
		if len(p.Body) > 0 {
			in.Body = p.Body
		}
		list = append(list, in)
	}
	return list
}
