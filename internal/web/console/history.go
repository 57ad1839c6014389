package console

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// entryOut is an audit entry.
type entryOut struct {
	ID         string         `json:"id"`
	Number     int64          `json:"number"`
	When       string         `json:"createdAt"`
	Event      string         `json:"event"`
	ActorKind  string         `json:"actorKind"`
	ActorID    string         `json:"actorId"`
	ActorName  string         `json:"actorName"`
	Address    string         `json:"address"`
	Operation  string         `json:"operation"`
	Request    string         `json:"requestId"`
	TargetKind string         `json:"targetKind"`
	TargetID   string         `json:"targetId"`
	TargetName string         `json:"targetName"`
	Before     jsontext.Value `json:"before"`
	After      jsontext.Value `json:"after"`
	Withheld   []string       `json:"withheld"`
}

// eventView is a change as a page shows it.
type eventView struct {
	Page                   string // of the entry
	When, Time             string
	Who, ActorHref         string
	Event, Kind            string
	Name, Href, TargetPage string
	Fields                 []diffView
	FieldsMore             int
}

// historyView is a page of changes.
type historyView struct {
	Head, About     string
	Up              *navLink
	Problem         string
	Who, Kind, Name string
	From, To        string
	Kinds           []string
	Of              bool // whether it is of one record
	Events          []eventView
	Total           int
	First, Last     int
	Previous, Next  string
	Filtered        bool
	Tables          []navLink // as they were at a moment
	At              string
}

// changesAlone leaves out entries of what is no change of a record, such as logins.
const changesAlone = `(event = "created" or event = "updated" or event = "deleted")`

// history shows who changed what, and when.
func (v *visit) history() {
	query := v.r.URL.Query()
	view := historyView{Head: "History", About: "Who changed what, and when."}
	view.Who, view.Kind, view.Name = strings.TrimSpace(query.Get("who")), query.Get("kind"), strings.TrimSpace(query.Get("name"))
	view.From, view.To, view.At = strings.TrimSpace(query.Get("since")), strings.TrimSpace(query.Get("until")), strings.TrimSpace(query.Get("at"))
	for _, d := range v.Kinds.Defs {
		if !d.Noted || !v.shown(d) {
			continue
		}
		view.Kinds = append(view.Kinds, d.Name)
		if view.At != "" && isMoment(view.At) {
			of := resource{v.Console, d}
			view.Tables = append(view.Tables, navLink{Text: titled(of.many()), Href: pagePast(of.page(), view.At)})
		}
	}
	if view.At != "" && !isMoment(view.At) {
		view.Problem = "At must be a moment such as 2026-01-31 12:00, in UTC, or the number of a change."
	}
	var conditions []string
	for name, word := range map[string]string{"actorName": view.Who, "targetKind": view.Kind, "targetName": view.Name} {
		if word != "" {
			conditions = append(conditions, name+" = "+quote(word))
		}
	}
	for _, bound := range []struct{ name, op, text string }{{"since", ">=", view.From}, {"until", "<=", view.To}} {
		if bound.text == "" {
			continue
		}
		t, err := readTime(bound.text)
		if err != nil {
			view.Problem = titled(bound.name) + " " + err.Error() + "."
			continue
		}
		conditions = append(conditions, "createdAt "+bound.op+" datetime("+t.(string)+")")
	}
	view.Filtered = len(conditions) > 0
	v.changed(view, conditions)
}

// recordHistory shows who changed one record, also if it is gone.
func (v *visit) recordHistory(of resource, id string) {
	if !of.Noted {
		v.missing()
		return
	}
	view := historyView{Head: "History", About: "Who changed this " + of.one() + ", and when.", Of: true, Up: &navLink{Text: titled(of.many()), Href: of.page()}}
	var rec members
	if err := v.get(of.at()+"/"+id, nil, &rec); err == nil {
		view.Head, view.Up = "History of "+label(rec), &navLink{Text: label(rec), Href: of.page(id)}
	}
	v.changed(view, []string{"targetKind = " + quote(of.Name), "targetId = " + quote(id)})
}

// changed asks for entries and shows them.
func (v *visit) changed(view historyView, conditions []string) {
	from, _ := strconv.Atoi(v.r.URL.Query().Get("from"))
	from = max(0, from)
	status := http.StatusOK
	if view.Problem == "" {
		entries, total, err := v.entries(conditions, from)
		var ok bool
		if status, view.Problem, ok = wrong(err); err != nil && !ok {
			v.fail(err)
			return
		}
		view.Events, view.Total = v.eventsOf(entries, 4), total
		status = max(status, http.StatusOK)
	} else {
		status = http.StatusBadRequest
	}
	view.First, view.Last = from+1, from+len(view.Events)
	if from > 0 {
		view.Previous = v.with("from", strconv.Itoa(max(0, from-pageSize)))
	}
	if view.Last < view.Total {
		view.Next = v.with("from", strconv.Itoa(from+pageSize))
	}
	v.show(status, "history", page{Title: view.Head, Body: view})
}

// entries are some audit entries, the latest first.
func (v *visit) entries(conditions []string, from int) (list []entryOut, total int, err error) {
	a, err := v.ask(request{method: http.MethodGet, path: v.ManagementRoot + "/audit-entries", query: url.Values{
		"filter": {strings.Join(append(conditions, changesAlone), " and ")}, "sort": {"number desc"}, "limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(from)},
	}})
	if err != nil {
		return nil, 0, err
	}
	var page struct {
		Data []entryOut `json:"data"`
		Meta struct {
			Pagination struct {
				Total int `json:"totalCount"`
			} `json:"pagination"`
		} `json:"meta"`
	}
	err = json.Unmarshal(a.body, &page)
	return page.Data, page.Meta.Pagination.Total, err
}

// member is one that an entry has before, after, or both.
type member struct {
	name          string
	before, after jsontext.Value
}

// differences are what an entry tells of a record in the order of its kind, but for when
// it was changed.
func (v *visit) differences(e entryOut) (all []member) {
	var before, after members
	_ = json.Unmarshal(e.Before, &before)
	_ = json.Unmarshal(e.After, &after)
	left := map[string]bool{}
	for _, m := range []members{before, after} {
		for name := range m {
			left[name] = name != "updatedAt"
		}
	}
	add := func(name string) {
		if left[name] {
			left[name] = false
			all = append(all, member{name, before[name], after[name]})
		}
	}
	if d := v.Kinds.Named(e.TargetKind); d != nil {
		for _, f := range d.Fields {
			add(f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		add(name)
	}
	return all
}

// eventsOf are entries as a page shows them, each with the first of its fields if the
// record was changed.
func (v *visit) eventsOf(entries []entryOut, most int) []eventView {
	n := naming{visit: v}
	for _, e := range entries {
		for _, m := range v.differences(e) {
			n.want(e.TargetKind, m.name, m.before, m.after)
		}
	}
	n.ask()
	list := make([]eventView, len(entries))
	for i, e := range entries {
		list[i] = v.event(e)
		if e.Event != "updated" {
			continue
		}
		all := v.differences(e)
		for _, m := range all[:min(len(all), most)] {
			d := n.diff(e.TargetKind, m.name, m.before, m.after)
			d.Before, d.After = d.Before.brief(), d.After.brief()
			list[i].Fields = append(list[i].Fields, d)
		}
		list[i].FieldsMore = len(all) - len(list[i].Fields)
	}
	return list
}

// brief is a value for one line.
func (v value) brief() value {
	if v.Code != "" {
		return value{Text: shortened(strings.Join(strings.Fields(v.Code), " "), 80)}
	}
	if len(v.Items) > mostItems {
		v.Items = append(append([]value{}, v.Items[:mostItems]...), value{Text: "and " + strconv.Itoa(len(v.Items)-mostItems) + " more"})
	}
	if v.Href == "" && v.Time == "" {
		v.Text = shortened(v.Text, 120)
	}
	return v
}

// event is who changed what, and when.
func (v *visit) event(e entryOut) eventView {
	at := reading{console: v.Console}.text(e.When)
	one := eventView{
		Page: link("history", e.ID), When: at.Text, Time: at.Time, Who: e.ActorName, Event: e.Event,
		Kind: strings.ReplaceAll(e.TargetKind, "-", " "), Name: e.TargetName, TargetPage: v.recordPage(e.TargetKind, e.TargetID),
	}
	if one.Who == "" {
		one.Who = e.ActorKind
	}
	switch e.ActorKind {
	case "program":
		one.Who = "the controller (" + one.Who + ")"
	case "identity":
		one.ActorHref = v.recordPage("identity", e.ActorID)
	}
	if one.Name == "" {
		one.Name = e.TargetID
	}
	if one.TargetPage != "" {
		one.Href = one.TargetPage + "/history"
	}
	return one
}
