package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// ways are through which policies and roles an identity or service comes to the others.
type ways struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Admin       bool      `json:"admin"`
	PolicyCount int       `json:"policyCount"`
	Policies    []passage `json:"policies"`
	Count       int       `json:"count"`
	Reached     []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Dial bool   `json:"dial"`
		Bind bool   `json:"bind"`
		Ways []struct {
			PolicyID string    `json:"policyId"`
			Policy   string    `json:"policy"`
			Type     string    `json:"type"`
			Roles    []roleEnd `json:"roles"`
		} `json:"ways"`
	} `json:"reached"`
}

type passage struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Type     string    `json:"type"`
	Roles    []roleEnd `json:"roles"`
	Ends     []roleEnd `json:"ends"`
	EndCount int       `json:"endCount"`
	Count    int       `json:"count"`
}

type roleEnd struct {
	Role  string `json:"role"`
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// accessView is the page from an identity to its services, or back.
type accessView struct {
	asked
	Head, About string
	Up          *navLink
	Problem     string
	One, Far    string // what the rows are about, and what they are
	Admin       bool
	Chart       *chart
	Rows        []accessRow
	Total       int
	From, To    int
	Previous    string
	Next        string
	Past        *pastView
}

// asked are the inputs of pages about who may use what.
type asked struct {
	Identity, Service, Type, At string
}

type accessRow struct {
	Name, Href, There string // the record, its page, and the same page of it
	Dial, Bind        string // where it is explained; empty if it is not so
	Ways              []accessWay
	More              bool // whether there are more ways
}

// mostWays is how many ways a row shows.
const mostWays = 5

// accessWay is from a role of identities through a policy to a role of services.
type accessWay struct{ Policy, Href, Type, From, To string }

// access shows through which policies and roles an identity has its services, or who has
// a service.
func (v *visit) access() {
	query := v.r.URL.Query()
	view := accessView{asked: asked{Identity: query.Get("identity"), Service: query.Get("service"), At: query.Get("at")}, Head: "Access"}
	kindName, word := "identity", view.Identity
	if word == "" {
		kindName, word = "service", view.Service
	}
	if word == "" {
		v.show(http.StatusOK, "access", page{Title: "Access", Body: view})
		return
	}
	of := resource{v.Console, v.Kinds.Named(kindName)}
	id, err := v.idOf(of, word, view.At)
	if err != nil {
		v.wrongAccess(view, err)
		return
	}
	from, _ := strconv.Atoi(query.Get("from"))
	from = max(0, min(from, 1<<30))
	var w ways
	if err := v.get(of.at()+"/"+id+"/access", withAt(url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(from)}}, view.At), &w); err != nil {
		v.wrongAccess(view, err)
		return
	}
	v.accessOf(&view, of, w, from)
	v.show(http.StatusOK, "access", page{Title: view.Head, Body: view, Live: v.liveAt(view.At, "identities,services,service-policies")})
}

// liveAt is what a page follows, which of the past is nothing.
func (v *visit) liveAt(at, kinds string) string {
	if at != "" {
		return ""
	}
	return kinds
}

// wrongAccess shows what is wrong with what was asked for beside the question.
func (v *visit) wrongAccess(view accessView, err error) {
	status, problem, ok := wrong(err)
	if !ok {
		v.fail(err)
		return
	}
	view.Problem = problem
	v.show(status, "access", page{Title: "Access", Body: view})
}

// accessOf completes the page.
func (v *visit) accessOf(view *accessView, of resource, w ways, from int) {
	far := v.Kinds.Named("service")
	view.Identity, view.Service = w.Name, ""
	view.About, view.Far, view.One = "What it may use and host, and through which policies and roles.", "service", of.one()
	if of.Name == "service" {
		far = v.Kinds.Named("identity")
		view.Identity, view.Service = "", w.Name
		view.About, view.Far = "Who may use and host it, and through which policies and roles. Admins may without a policy, and are listed only if one lets them.", "identity"
	}
	view.Head, view.Up = "Access of "+w.Name, &navLink{Text: w.Name, Href: pagePast(of.page(w.ID), view.At)}
	view.Admin, view.Total, view.From, view.To = w.Admin, w.Count, from+1, from+len(w.Reached)
	near := map[string]string{}
	for _, p := range w.Policies {
		near[p.ID] = readable(p.Roles)
	}
	for _, r := range w.Reached {
		row := accessRow{Name: r.Name, Href: pagePast(link(far.Path, r.ID), view.At), There: accessPage(far.Name, r.ID, view.At)}
		identity, service := w.ID, r.ID
		if of.Name == "service" {
			identity, service = r.ID, w.ID
		}
		if r.Dial {
			row.Dial = explainPage(identity, service, "Dial", view.At)
		}
		if r.Bind {
			row.Bind = explainPage(identity, service, "Bind", view.At)
		}
		for i, way := range r.Ways {
			if row.More = i == mostWays; row.More {
				break
			}
			one := accessWay{way.Policy, pagePast(v.recordPage("service-policy", way.PolicyID), view.At), doing(way.Type), near[way.PolicyID], readable(way.Roles)}
			if of.Name == "service" {
				one.From, one.To = one.To, one.From
			}
			row.Ways = append(row.Ways, one)
		}
		view.Rows = append(view.Rows, row)
	}
	if from > 0 {
		view.Previous = v.with("from", strconv.Itoa(max(0, from-pageSize)))
	}
	if view.To < view.Total {
		view.Next = v.with("from", strconv.Itoa(from+pageSize))
	}
	view.Past = v.pastOf(view.At)
	if from == 0 && w.PolicyCount > 0 {
		view.Chart = chartOf(w, of.Name == "identity", func(kindName, id string) string { return pagePast(v.recordPage(kindName, id), view.At) })
	}
}

// readable are roles as people read them.
func readable(roles []roleEnd) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = r.Name
	}
	return strings.Join(names, " ")
}

// doing is a type of policies as people say it.
func doing(typ string) string {
	if typ == "Bind" {
		return "host"
	}
	return "use"
}

// accessPage is where the ways of an identity or service are shown, and explainPage where
// one of them is explained.
func accessPage(kindName, id, at string) string {
	return link("access") + "?" + withAt(url.Values{kindName: {id}}, at).Encode()
}

func explainPage(identity, service, typ, at string) string {
	return link("explain") + "?" + withAt(url.Values{"identity": {identity}, "service": {service}, "type": {typ}}, at).Encode()
}

// idOf is the id of the record that somebody named, at a moment if one is given.
func (v *visit) idOf(of resource, word, at string) (string, error) {
	page, err := v.list(of.at(), withAt(url.Values{"filter": {"id = " + quote(word) + " or name = " + quote(word)}, "fields": {"id,name"}, "limit": {"2"}}, at))
	if err != nil {
		return "", err
	}
	for _, rec := range page.Data {
		if rec.text("id") == word || len(page.Data) == 1 {
			return rec.text("id"), nil
		}
	}
	return "", &failure{status: http.StatusNotFound, Code: "NOT_FOUND", Message: "there is no " + of.one() + " called " + shortened(word, 120)}
}
