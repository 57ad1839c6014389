package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// broken is the code of a change that an assertion is against, and overrides the power
// that it takes to make one all the same.
const (
	broken    = "ASSERTION_BROKEN"
	overrides = "assertion:override"
)

// powers is what the person may do, as what:verb, to all records or to some.
func (v *visit) powers() []string {
	var me struct {
		Powers []string `json:"powers"`
	}
	if v.get(v.ManagementRoot+"/current-identity", nil, &me) != nil {
		return nil
	}
	return me.Powers
}

// may reports whether the person may do something. It decides what is offered, never
// what is done.
func (v *visit) may(power string) bool { return slices.Contains(v.powers(), power) }

// overriding is where a form is sent to make changes though assertions break by them, for
// those who may; without that power they cannot be made.
func (v *visit) overriding(action string, plan changeOut, blocked bool) (to string, stuck bool) {
	if len(plan.Assertions) == 0 || blocked {
		return "", blocked
	}
	u, err := url.Parse(action)
	if err != nil || !v.may(overrides) {
		return "", true
	}
	q := u.Query()
	q.Set("override", "1")
	u.RawQuery = q.Encode()
	return u.RequestURI(), false
}

// startView is the first page of somebody who may not see how the controller is.
type startView struct {
	Figures []figureView // what there is that one may see
	Changes []changeView
	Day     *dayView
	Do      []navLink
	Powers  string
}

// start shows what the person may see and do.
func (v *visit) start(powers []string, changes []changeView, day *dayView) {
	view := startView{Changes: changes, Day: day, Powers: strings.Join(powers, ", ")}
	for _, s := range sections {
		for _, name := range s.kinds {
			d := v.Kinds.Named(name)
			if d == nil || !v.shown(d) || name == "audit-entry" {
				continue
			}
			of := resource{v.Console, d}
			if slices.Contains(powers, name+":read") {
				if list, err := v.list(of.at(), map[string][]string{"limit": {"1"}, "fields": {"id"}}); err == nil {
					view.Figures = append(view.Figures, figureView{titled(of.many()), grouped(list.Meta.Pagination.Total), "", of.page()})
				}
			}
			if _, ok := of.creates(); ok && slices.Contains(powers, name+":create") {
				view.Do = append(view.Do, navLink{Text: "Create " + of.one(), Href: of.page("new")})
			}
		}
	}
	v.show(http.StatusOK, "start", page{Title: "Overview", Body: view})
}
