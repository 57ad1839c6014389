package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// circuitsView is who is connected to what.
type circuitsView struct {
	Where           whereView
	Filter, Problem string
	Filtered        bool
	Rows            []circuitView
	Total, From, To int
	Previous, Next  string
	Hint            []string
	Order           string // the other order
	Oldest          bool
}

// circuitView is one connection.
type circuitView struct {
	Who, What, Host value
	Way             []value
	Since           value
	Lasts           string
	Open, End       string
}

// whereView says which controller it is that tells of what is among its routers.
type whereView struct {
	Name   string    // empty if there is no other
	Others []navLink // where the others tell of theirs
}

// circuits shows who is connected to what right now.
func (v *visit) circuits() {
	asked := v.r.URL.Query()
	view := circuitsView{Filter: strings.TrimSpace(asked.Get("filter")), Oldest: asked.Get("order") == "oldest"}
	from, _ := strconv.Atoi(asked.Get("from"))
	from = max(0, from)
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(from)}, "sort": {"createdAt desc"}}
	view.Order = v.with("order", "oldest")
	if view.Oldest {
		query.Set("sort", "createdAt")
		view.Order = v.with("order", "latest")
	}
	if view.Filtered = view.Filter != ""; view.Filtered {
		query.Set("filter", v.circuitsOf(view.Filter))
	}
	at := v.FabricRoot + "/circuits"
	list, err := v.list(at, query)
	status := http.StatusOK
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusBadRequest && view.Filtered {
		status, view.Problem = http.StatusBadRequest, f.says()
		if list, err = v.list(at, url.Values{"limit": {"1"}}); list != nil {
			list.Data = nil
		}
	}
	if err != nil {
		v.fail(err)
		return
	}
	for _, rec := range list.Data {
		view.Rows = append(view.Rows, v.circuitOf(rec))
	}
	view.Total, view.From, view.To, view.Hint = list.Meta.Pagination.Total, from+1, from+len(list.Data), list.Meta.Fields
	if from > 0 {
		view.Previous = v.with("from", strconv.Itoa(max(0, from-pageSize)))
	}
	if view.To < view.Total && view.Problem == "" {
		view.Next = v.with("from", strconv.Itoa(from+pageSize))
	}
	view.Where = v.where("circuits")
	v.show(status, "circuits", page{Title: "Circuits", Body: view, Live: "circuits", Every: 30})
}

// circuitOf is one as the page shows it.
func (v *visit) circuitOf(rec members) circuitView {
	read, id := reading{console: v.Console, short: true}, rec.text("id")
	c := circuitView{
		Who: read.of(rec["client"]), What: read.of(rec["service"]), Host: read.of(rec["host"]), Since: read.of(rec["createdAt"]),
		Open: link("circuits", id), End: link("circuits", id, "end"),
	}
	if c.Host.Empty() {
		c.Host = value{Text: "the last router itself"}
	}
	if began, ok := moment(rec.text("createdAt")); ok {
		c.Lasts = lasting(max(0, v.Now().Sub(began)))
	}
	var nodes []members
	_ = json.Unmarshal(rec.at("path.nodes"), &nodes)
	for _, n := range nodes {
		c.Way = append(c.Way, value{Text: label(n), Href: link("routers", n.text("id"))})
	}
	return c
}

// mostMeant is how many records of a name circuits are looked for by.
const mostMeant = 200

// circuitsOf is the filter that a text stands for: words alone are looked for in the
// names of identities, services and routers.
func (v *visit) circuitsOf(text string) string {
	if !plainWords.MatchString(text) || text == "true" || text == "false" || strings.Contains(text, " sort by ") || strings.HasPrefix(text, "sort by ") || strings.Contains(text, "limit ") {
		return text
	}
	var parts []string
	named := func(path string, symbols ...string) {
		list, err := v.list(v.ManagementRoot+"/"+path, url.Values{"filter": {"name icontains " + quote(text)}, "fields": {"id,name"}, "limit": {strconv.Itoa(mostMeant)}})
		if err != nil || len(list.Data) == 0 {
			return
		}
		ids := make([]string, len(list.Data))
		for i, rec := range list.Data {
			ids[i] = quote(rec.text("id"))
		}
		for _, symbol := range symbols {
			parts = append(parts, symbol+" in ["+strings.Join(ids, ",")+"]")
		}
	}
	named("identities", "clientId", "hostId")
	named("services", "serviceId")
	named("routers", "anyOf(routers)")
	parts = append(parts, "id = "+quote(text))
	return strings.Join(parts, " or ")
}

// endCircuit asks whether a connection is to be ended, and ends it.
func (v *visit) endCircuit(id string) {
	var rec members
	at := v.FabricRoot + "/circuits/" + id
	if err := v.get(at, nil, &rec); err != nil {
		v.fail(err)
		return
	}
	c := v.circuitOf(rec)
	v.makeSure(sureView{
		Head: "End this connection?", About: "It ends at once. Who used it may dial again: to keep somebody out, change a policy instead.",
		Up:     navLink{Text: "Circuits", Href: link("circuits")},
		Facts:  []fieldView{{Head: "Identity", Value: c.Who}, {Head: "Service", Value: c.What}, {Head: "Host", Value: c.Host}, {Head: "Through", Value: value{Items: c.Way}}, {Head: "Since", Value: c.Since}},
		Button: "End it", Keep: "Leave it", Danger: true,
	}, func() error {
		_, err := v.ask(request{method: http.MethodDelete, path: at})
		return err
	}, link("circuits"))
}

// where says which controller this is, if there are several, and where the same page
// of the others is.
func (v *visit) where(page string) (w whereView) {
	members, err := v.list(v.ManagementRoot+"/cluster/members", nil)
	if err != nil || len(members.Data) < 2 {
		return w // the rest of the page is of use
	}
	own := ""
	for _, m := range members.Data {
		if string(m["self"]) == "true" {
			own = m.text("name")
		}
	}
	all, err := v.list(v.ManagementRoot+"/controllers", url.Values{"limit": {"500"}, "sort": {"name"}})
	if err != nil {
		return w
	}
	for _, c := range all.Data {
		if c.text("id") == own {
			w.Name = c.text("name")
			continue
		}
		var at []struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(c.at("apiAddresses.edge-management"), &at) == nil && len(at) > 0 && strings.HasPrefix(at[0].URL, "https://") {
			w.Others = append(w.Others, navLink{Text: c.text("name"), Href: strings.TrimSuffix(at[0].URL, v.ManagementRoot) + link(page)})
		}
	}
	return w
}

// ago is how long it is since a moment, as people say it.
func (v *visit) ago(t time.Time) string {
	if d := v.Now().Sub(t); d >= time.Second {
		return lasting(d) + " ago"
	}
	return "now"
}
