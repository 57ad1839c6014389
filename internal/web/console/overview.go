package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// status is how a controller is.
type status struct {
	Version string    `json:"version"`
	Started time.Time `json:"startedAt"`
	Uptime  int64     `json:"uptimeSeconds"`
	Health  string    `json:"health"`
	Checks  []struct {
		Name    string `json:"name"`
		OK      bool   `json:"ok"`
		Warning bool   `json:"warning"`
		Reason  string `json:"reason"`
	} `json:"checks"`
	Store struct {
		Size int64 `json:"sizeBytes"`
		Free int64 `json:"diskFreeBytes"`
	} `json:"store"`
	Certificates []struct {
		Name     string    `json:"name"`
		Subject  string    `json:"subject"`
		NotAfter time.Time `json:"notAfter"`
		Days     int       `json:"daysLeft"`
	} `json:"certificates"`
	Counts  map[string]int `json:"counts"`
	Routers struct {
		Total  int `json:"total"`
		Online int `json:"online"`
	} `json:"routers"`
	Fabric struct {
		Links    int `json:"links"`
		Circuits int `json:"circuits"`
	} `json:"fabric"`
	Sessions struct {
		API      int `json:"apiSessions"`
		Services int `json:"sessions"`
	} `json:"sessions"`
	Snapshot *struct {
		Name string    `json:"name"`
		Time time.Time `json:"time"`
		Size int64     `json:"size"`
	} `json:"lastSnapshot"`
}

// overviewView is the first page.
type overviewView struct {
	Health, Says string
	Version      string
	Running      string
	Checks       []checkView
	Figures      []figureView
	Certificates []certificateView
	Snapshot     string
	SnapshotTime string
	Store        string
	Changes      []changeView
	First        []navLink // what to do in a network that has nothing yet
	Day          *dayView
}

type checkView struct{ Name, State, Reason string }

type figureView struct{ Head, Number, Of, Href string }

type certificateView struct {
	Name, Subject, Until string
	Days                 int
	Soon                 bool
}

type changeView struct {
	When, Time, Who, What, Kind, Name, Href, Entry string
}

// soon is for how many days a certificate may have left before the page says so.
const soon = 30

// overview shows how the controller is.
func (v *visit) overview() {
	var now status
	var err error
	var changes []changeView
	var day *dayView
	together(
		func() { err = v.get(v.ManagementRoot+"/status", nil, &now) },
		func() { changes = v.lately() },
		func() { day = v.day() },
	)
	var f *failure
	switch {
	case errors.As(err, &f) && f.lacks() != "":
		if powers := v.powers(); len(powers) > 0 {
			v.start(powers, changes, day)
			return
		}
		v.fail(err)
		return
	case err != nil:
		v.fail(err)
		return
	}
	view := overviewView{Health: now.Health, Version: now.Version, Running: lasting(time.Duration(now.Uptime) * time.Second)}
	view.Says = map[string]string{"ok": "Everything is as it should be.", "warning": "The controller serves, though not all is as it should be."}[now.Health]
	if view.Says == "" {
		view.Says = "The controller cannot serve."
	}
	for _, c := range now.Checks {
		state := "ok"
		switch {
		case !c.OK && c.Warning:
			state = "warning"
		case !c.OK:
			state = "failing"
		}
		view.Checks = append(view.Checks, checkView{titled(c.Name), state, c.Reason})
	}
	for _, c := range now.Certificates {
		view.Certificates = append(view.Certificates, certificateView{titled(c.Name), c.Subject, c.NotAfter.UTC().Format("2006-01-02"), c.Days, c.Days < soon})
	}
	view.Figures, view.First = v.figures(now), v.first(now)
	view.Store = size(now.Store.Size)
	if now.Store.Free > 0 {
		view.Store += ", " + size(now.Store.Free) + " free"
	}
	if s := now.Snapshot; s != nil {
		view.Snapshot, view.SnapshotTime = s.Time.UTC().Format("2006-01-02 15:04"), s.Time.UTC().Format(time.RFC3339)
	}
	view.Changes, view.Day = changes, day
	v.show(http.StatusOK, "overview", page{Title: "Overview", Body: view, Live: "*", Every: 60})
}

// figures are how many there are of what people look at first.
func (v *visit) figures(now status) []figureView {
	n := func(name string) string { return grouped(now.Counts[name]) }
	all := []figureView{
		{"Identities", n("identities"), "", link("identities")},
		{"Services", n("services"), "", link("services")},
		{"Service policies", n("servicePolicies"), "", link("service-policies")},
		{"Routers online", grouped(now.Routers.Online), "of " + grouped(now.Routers.Total), link("routers")},
		{"Links", grouped(now.Fabric.Links), "", link("links")},
		{"Circuits", grouped(now.Fabric.Circuits), "", link("circuits")},
		{"API sessions", grouped(now.Sessions.API), "", link("api-sessions")},
		{"Invitations", n("enrollments"), "", link("enrollments")},
	}
	return all
}

// first is what to do in a network that can do nothing yet.
func (v *visit) first(now status) (steps []navLink) {
	if now.Routers.Total == 0 {
		steps = append(steps, navLink{Text: "Add a router that clients connect to", Href: link("edge-routers", "new")})
	}
	if now.Counts["identities"] <= 1+now.Routers.Total {
		steps = append(steps, navLink{Text: "Invite a person or a device", Href: link("invite")})
	}
	if now.Counts["services"] == 0 {
		steps = append(steps, navLink{Text: "Name a service that they are to use", Href: link("services", "new")})
	}
	if now.Counts["servicePolicies"] == 0 {
		steps = append(steps, navLink{Text: "Say who may use it, and who hosts it", Href: link("service-policies", "new")})
	}
	return steps
}

// lately is what changed last.
func (v *visit) lately() (changes []changeView) {
	const most = 10
	entries := v.Kinds.Named("audit-entry")
	if entries == nil {
		return nil
	}
	page, err := v.list(resource{v.Console, entries}.at(), url.Values{"limit": {fmt.Sprint(most)}, "sort": {"number desc"}, "filter": {changesAlone}})
	if err != nil {
		return nil // the rest of the page is of use
	}
	for _, rec := range page.Data {
		at := reading{console: v.Console}.text(rec.text("createdAt"))
		c := changeView{
			When: at.Text, Time: at.Time, Who: rec.text("actorName"), What: strings.ReplaceAll(rec.text("event"), "-", " "), Kind: strings.ReplaceAll(rec.text("targetKind"), "-", " "),
			Name: rec.text("targetName"), Entry: link(entries.Path, rec.text("id")),
		}
		if c.Name == "" {
			c.Name = rec.text("targetId")
		}
		if d := v.Kinds.Named(rec.text("targetKind")); d != nil && v.shown(d) && c.What != "deleted" {
			c.Href = link(d.Path, rec.text("targetId"))
		}
		changes = append(changes, c)
	}
	return changes
}

// lasting is a duration in its two largest parts.
func lasting(d time.Duration) string {
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}

// grouped is a number that can be read at a glance: 100,000.
func grouped(n int) string {
	digits := fmt.Sprint(n)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// size is a number of bytes as people say it.
func size(n int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// foundView is what was found of some words.
type foundView struct {
	Query  string
	Groups []navGroup
	Total  int
}

// eachFound is how many records of a kind are shown.
const eachFound = 5

// search finds pages and records by name.
func (v *visit) search() {
	view := foundView{Query: strings.TrimSpace(v.r.URL.Query().Get("q"))}
	if view.Query != "" {
		view.Groups = v.found(view.Query)
	}
	for _, g := range view.Groups {
		view.Total += len(g.Links)
	}
	v.show(http.StatusOK, "search", page{Title: "Search", Body: view})
}

func (v *visit) found(query string) (groups []navGroup) {
	places := navGroup{Name: "Pages"}
	for _, g := range v.nav() {
		for _, l := range g.Links {
			if strings.Contains(strings.ToLower(l.Text), strings.ToLower(query)) {
				l.Here = false
				places.Links = append(places.Links, l)
			}
		}
	}
	if len(places.Links) > 0 {
		groups = append(groups, places)
	}
	kinds := v.inOrder()
	var all []wanted
	for _, d := range kinds {
		at := resource{v.Console, d}.at()
		// Two questions, each of which an index answers alone.
		all = append(all,
			wanted{at, url.Values{"filter": {"id = " + quote(query)}, "fields": {"id,name"}, "limit": {"1"}}},
			wanted{at, url.Values{"filter": {"name icontains " + quote(query)}, "fields": {"id,name"}, "limit": {fmt.Sprint(eachFound)}, "sort": {"name"}}},
		)
	}
	pages := v.lists(all)
	for i, d := range kinds {
		of := resource{v.Console, d}
		g := navGroup{Name: titled(of.many())}
		for _, page := range pages[2*i : 2*i+2] {
			if page == nil {
				continue
			}
			for _, rec := range page.Data {
				l := navLink{Text: label(rec), Href: of.page(rec.text("id"))}
				if !slices.Contains(g.Links, l) && len(g.Links) < eachFound {
					g.Links = append(g.Links, l)
				}
			}
		}
		if len(g.Links) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// inOrder are the kinds that are found by name, as the ways to their tables are.
func (c *Console) inOrder() (all []*kind.Def) {
	for _, s := range sections {
		for _, name := range s.kinds {
			if d := c.Kinds.Named(name); d != nil && c.searchable(d) {
				all = append(all, d)
			}
		}
	}
	return all
}
