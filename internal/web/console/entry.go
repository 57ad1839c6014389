package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"netkeep.internal/internal/lang/kind"
)

// entryView is the page of one change.
type entryView struct {
	Head     string
	Event    eventView
	Fields   []diffView
	Withheld []string
	Facts    []fieldView
	Undo     string
	Links    []navLink
}

// entry shows one change.
func (v *visit) entry(id string) {
	e, err := v.entryAt(id)
	if err != nil {
		v.fail(err)
		return
	}
	one := v.event(e)
	view := entryView{Head: "Change " + strconv.FormatInt(e.Number, 10), Event: one, Withheld: e.Withheld}
	n := naming{visit: v}
	all := v.differences(e)
	for _, m := range all {
		n.want(e.TargetKind, m.name, m.before, m.after)
	}
	n.ask()
	for _, m := range all {
		view.Fields = append(view.Fields, n.diff(e.TargetKind, m.name, m.before, m.after))
	}
	for _, fact := range []struct{ head, text string }{{"From", e.Address}, {"Operation", e.Operation}, {"Request", e.Request}} {
		if fact.text != "" {
			view.Facts = append(view.Facts, fieldView{Head: fact.head, Value: value{Text: fact.text}})
		}
	}
	v.entryLinks(&view, e, one)
	v.show(http.StatusOK, "entry", page{Title: view.Head, Body: view})
}

// entryLinks lead on from a change.
func (v *visit) entryLinks(view *entryView, e entryOut, one eventView) {
	before, after := strconv.FormatInt(e.Number-1, 10), strconv.FormatInt(e.Number, 10)
	if d := v.Kinds.Named(e.TargetKind); d != nil && d.Noted && isChange(e.Event) {
		view.Undo = link("history", e.ID, "undo")
		if one.TargetPage != "" {
			if e.Event != "created" && e.Number > 1 {
				view.Links = append(view.Links, navLink{Text: "The record before", Href: pagePast(one.TargetPage, before)})
			}
			if e.Event != "deleted" {
				view.Links = append(view.Links, navLink{Text: "The record after", Href: pagePast(one.TargetPage, after)}, navLink{Text: "The record now", Href: one.TargetPage})
			}
			view.Links = append(view.Links, navLink{Text: "All its changes", Href: one.Href})
		}
		if e.Number > 1 {
			view.Links = append(view.Links, navLink{Text: "Who gained and lost by it", Href: link("difference") + "?" + url.Values{"since": {before}, "until": {after}}.Encode()})
		}
		view.Links = append(view.Links, navLink{Text: "What changed since", Href: link("difference") + "?" + url.Values{"since": {after}}.Encode()})
	}
	if e.Request != "" {
		filter := url.Values{"filter": {"requestId = " + quote(e.Request)}}
		view.Links = append(view.Links, navLink{Text: "All of this request", Href: link("audit-entries") + "?" + filter.Encode()})
	}
	view.Links = append(view.Links, navLink{Text: "The entry as it is", Href: link("audit-entries", e.ID)})
}

// isChange reports whether an event is a change of a record.
func isChange(event string) bool {
	return event == "created" || event == "updated" || event == "deleted"
}

// entryAt is one audit entry.
func (v *visit) entryAt(id string) (e entryOut, err error) {
	return e, v.get(v.ManagementRoot+"/audit-entries/"+id, nil, &e)
}

// undo takes a change back, after having shown what that does.
func (v *visit) undo(id string) {
	if v.r.Method == http.MethodPost && !v.receive(strangerForm) {
		return
	}
	var out struct {
		Number    int64      `json:"entry"`
		Kind      string     `json:"kind"`
		ID        string     `json:"id"`
		Name      string     `json:"name"`
		Changes   []proposed `json:"changes"`
		Notes     []string   `json:"notes"`
		Conflicts []struct {
			Field string `json:"field"`
			What  string `json:"what"`
		} `json:"conflicts"`
	}
	if err := v.get(v.ManagementRoot+"/audit-entries/"+id+"/undo", nil, &out); err != nil {
		v.fail(err)
		return
	}
	name := out.Name
	if name == "" {
		name = out.ID
	}
	what := strings.ReplaceAll(out.Kind, "-", " ") + " " + name
	view := confirmation{
		Head: "Take change " + strconv.FormatInt(out.Number, 10) + " back", About: "Of " + what + ".", Up: navLink{Text: "Change " + strconv.FormatInt(out.Number, 10), Href: link("history", id)},
		Action: link("history", id, "undo"), Do: "Take it back", Notes: out.Notes,
	}
	for _, c := range out.Conflicts {
		about := titled(kind.Heading(c.Field))
		if c.Field == "" {
			about = what
		}
		view.Conflicts = append(view.Conflicts, sentence(about+" "+c.What))
	}
	if len(view.Conflicts) > 0 {
		view.Problem = "This change cannot be taken back as it is."
	}
	v.confirm(view, listOf(out.Changes), func() { http.Redirect(v.w, v.r, v.after(out.Kind, out.ID), http.StatusSeeOther) })
}

// after is where to go on when a change was taken back: the history of the record, which
// tells of it.
func (v *visit) after(kindName, id string) string {
	if href := v.recordPage(kindName, id); href != "" {
		return href + "/history"
	}
	return link("history")
}
