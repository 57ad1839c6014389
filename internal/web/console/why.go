package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// explanation is why somebody can or cannot use a service.
type explanation struct {
	IdentityID string   `json:"identityId"`
	Identity   string   `json:"identity"`
	ServiceID  string   `json:"serviceId"`
	Service    string   `json:"service"`
	Type       string   `json:"type"`
	Allowed    bool     `json:"allowed"`
	Unknown    []string `json:"unknown"`
	Links      []struct {
		Link    string     `json:"link"`
		Passed  bool       `json:"passed"`
		What    string     `json:"what"`
		Remedy  string     `json:"remedy"`
		Changes []proposed `json:"changes"`
		Because []struct {
			Kind string `json:"kind"`
			ID   string `json:"id"`
			Name string `json:"name"`
			Role string `json:"role"`
			From string `json:"from"`
		} `json:"because"`
	} `json:"links"`
}

// explainView is the page of an explanation.
type explainView struct {
	asked
	Problem   string
	Done      bool // whether there is an explanation
	Allowed   bool
	Says, Sum string
	Ways      []navLink // to the two sides of it
	Links     []linkView
	Unknown   []string
	Past      *pastView
}

type linkView struct {
	Name, What string
	Passed     bool
	Because    []causeView
	Remedy     string
	Command    bool // whether the remedy is one
	Change     string
}

type causeView struct{ Kind, Name, Href, Role, From string }

// explain shows each link of the chain from an identity to a service.
func (v *visit) explain() {
	query := v.r.URL.Query()
	view := explainView{asked: asked{Identity: query.Get("identity"), Service: query.Get("service"), Type: query.Get("type"), At: query.Get("at")}}
	if view.Identity == "" || view.Service == "" {
		v.show(http.StatusOK, "explain", page{Title: "Explain", Body: view})
		return
	}
	e, err := v.explained(view.asked)
	if status, problem, ok := wrong(err); ok {
		view.Problem = problem
		v.show(status, "explain", page{Title: "Explain", Body: view})
		return
	}
	if err != nil {
		v.fail(err)
		return
	}
	v.explainOf(&view, e)
	v.show(http.StatusOK, "explain", page{Title: view.Says, Body: view, Live: v.liveAt(view.At, "*")})
}

// explained asks why, of an identity and a service that are named.
func (v *visit) explained(q asked) (e explanation, err error) {
	identity, err := v.idOf(resource{v.Console, v.Kinds.Named("identity")}, q.Identity, q.At)
	if err != nil {
		return e, err
	}
	service, err := v.idOf(resource{v.Console, v.Kinds.Named("service")}, q.Service, q.At)
	if err != nil {
		return e, err
	}
	query := withAt(url.Values{}, q.At)
	if q.Type != "" {
		query.Set("type", q.Type)
	}
	return e, v.get(v.ManagementRoot+"/identities/"+identity+"/explain/"+service, query, &e)
}

// wrong is what is wrong with what was asked for, if it is that.
func wrong(err error) (status int, problem string, ok bool) {
	var f *failure
	if !errors.As(err, &f) || f.status == http.StatusUnauthorized || f.status >= http.StatusInternalServerError || f.status == http.StatusTooManyRequests {
		return 0, "", false
	}
	return f.status, f.says(), true
}

// explainOf completes the page.
func (v *visit) explainOf(view *explainView, e explanation) {
	view.Done, view.Allowed, view.Unknown = true, e.Allowed, e.Unknown
	view.Identity, view.Service, view.Type = e.Identity, e.Service, e.Type
	view.Past = v.pastOf(view.At)
	can, not := "can", "cannot"
	if view.At != "" {
		can, not = "could", "could not"
	}
	if !e.Allowed {
		can = not
	}
	view.Says = e.Identity + " " + can + " " + doing(e.Type) + " " + e.Service
	view.Ways = []navLink{
		{Text: "What " + e.Identity + " may use", Href: accessPage("identity", e.IdentityID, view.At)},
		{Text: "Who may use " + e.Service, Href: accessPage("service", e.ServiceID, view.At)},
	}
	broken := 0
	for _, l := range e.Links {
		if !l.Passed {
			broken++
		}
		one := linkView{Name: titled(strings.ReplaceAll(l.Link, "-", " ")), What: e.said(l.What), Passed: l.Passed, Remedy: l.Remedy, Command: strings.HasPrefix(l.Remedy, "netkeep ")}
		if !one.Command {
			one.Remedy = sentence(one.Remedy)
		}
		for _, b := range l.Because {
			role := b.Role
			if role == "@"+b.ID {
				role = "@" + b.Name
			}
			one.Because = append(one.Because, causeView{strings.ReplaceAll(b.Kind, "-", " "), b.Name, pagePast(v.recordPage(b.Kind, b.ID), view.At), role, b.From})
		}
		if len(l.Changes) > 0 {
			one.Change = link("explain", "change") + "?" + url.Values{"identity": {e.IdentityID}, "service": {e.ServiceID}, "type": {e.Type}, "link": {l.Link}}.Encode()
		}
		view.Links = append(view.Links, one)
	}
	view.Sum = "Every link holds."
	if broken > 0 {
		view.Sum = fmt.Sprintf("%d of %d links do not hold.", broken, len(e.Links))
	}
}

// said is a sentence about a link. The names that many begin with are left as they are.
func (e explanation) said(what string) string {
	if strings.HasPrefix(what, e.Identity) || strings.HasPrefix(what, e.Service) {
		return strings.TrimSuffix(what, ".") + "."
	}
	return sentence(what)
}

// remedy makes the change that lets a link of an explanation hold. What it is, the API is
// asked again: the page carries only what it stands for.
func (v *visit) remedy() {
	if v.r.Method == http.MethodPost && !v.receive(strangerForm) {
		return
	}
	query := v.r.URL.Query()
	q := asked{Identity: query.Get("identity"), Service: query.Get("service"), Type: query.Get("type")}
	e, err := v.explained(q)
	if err != nil {
		v.fail(err)
		return
	}
	back := explainPage(e.IdentityID, e.ServiceID, e.Type, "")
	view := confirmation{
		Head: "Let " + e.Identity + " " + doing(e.Type) + " " + e.Service, Up: navLink{Text: "Explanation", Href: back},
		Action: v.r.URL.RequestURI(), Do: "Make this change",
	}
	var list []changeIn
	for _, l := range e.Links {
		if l.Link == query.Get("link") {
			view.About, list = e.said(l.What), listOf(l.Changes)
		}
	}
	if len(list) == 0 {
		view.Problem = "There is nothing to change here: the link holds, or no change of a record would mend it."
		view.Blocked = true
	}
	v.confirm(view, list, func() { http.Redirect(v.w, v.r, back, http.StatusSeeOther) })
}
