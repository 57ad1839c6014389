package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// memberOf is one of the controllers as the API tells of it.
type memberOf struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	Address       string     `json:"address"`
	Vote          bool       `json:"vote"`
	Leader        bool       `json:"leader"`
	Self          bool       `json:"self"`
	Online        bool       `json:"isOnline"`
	Version       string     `json:"version"`
	Behind        int64      `json:"behind"`
	StoreSize     int64      `json:"storeSize"`
	Routers       int        `json:"routers"`
	KeyGeneration int        `json:"keyGeneration"`
	LastSeen      *time.Time `json:"lastSeenAt"`
}

// membersView is the controllers of the network.
type membersView struct {
	Rows  []memberView
	Votes int // how many decide, and how many of them are there
	Away  int
}

type memberView struct {
	memberOf
	Called, Href    string
	Part            string // what it has to say
	Seen            value
	Ago, Size       string
	Promote, Remove string // where to ask for it; empty if it is not offered
}

// cluster shows the controllers.
func (v *visit) cluster() {
	list, err := v.memberList()
	if err != nil {
		v.fail(err)
		return
	}
	view := membersView{Rows: list}
	for _, m := range list {
		if m.Vote {
			view.Votes++
			if !m.Online {
				view.Away++
			}
		}
	}
	v.show(http.StatusOK, "cluster", page{Title: "Cluster members", Body: view, Every: 10})
}

// memberList asks for the controllers, with what people call them and what can be done.
func (v *visit) memberList() (list []memberView, err error) {
	a, err := v.ask(request{method: http.MethodGet, path: v.ManagementRoot + "/cluster/members"})
	if err != nil {
		return nil, err
	}
	var all []memberOf
	if err := a.data(&all); err != nil {
		return nil, err
	}
	names := map[string]string{}
	if known, err := v.list(v.ManagementRoot+"/controllers", url.Values{"limit": {"500"}, "fields": {"id,name"}}); err == nil {
		for _, c := range known.Data {
			names[c.text("id")] = c.text("name")
		}
	}
	votes := 0
	for _, m := range all {
		if m.Vote {
			votes++
		}
	}
	for _, m := range all {
		row := memberView{memberOf: m, Called: names[m.Name], Part: "follows"}
		if row.Called == "" {
			row.Called = m.Address
		} else {
			row.Href = link("controllers", m.Name)
		}
		switch {
		case m.Leader:
			row.Part = "leads"
		case m.Vote:
			row.Part = "votes"
		}
		if m.LastSeen != nil {
			row.Seen, row.Ago = reading{}.text(m.LastSeen.UTC().Format(time.RFC3339)), v.ago(*m.LastSeen)
		}
		if m.StoreSize > 0 {
			row.Size = size(m.StoreSize)
		}
		if !m.Vote && m.Online {
			row.Promote = link("cluster", m.ID, "promote")
		}
		if !m.Self && (!m.Vote || votes > 1) {
			row.Remove = link("cluster", m.ID, "remove")
		}
		list = append(list, row)
	}
	return list, nil
}

// member asks whether something is to be done with a controller, and does it.
func (v *visit) member(id, what string) {
	list, err := v.memberList()
	if err != nil {
		v.fail(err)
		return
	}
	up := navLink{Text: "Cluster members", Href: link("cluster")}
	at := v.ManagementRoot + "/cluster/members/" + url.PathEscape(id)
	for _, m := range list {
		facts := []fieldView{{Head: "Address", Value: value{Text: m.Address}}, {Head: "Version", Value: value{Text: m.Version}}, {Head: "Behind by", Value: value{Text: revisions(m.Behind)}}}
		switch {
		case m.ID != id:
		case what == "promote" && m.Promote != "":
			v.makeSure(sureView{
				Head: "Give " + m.Called + " a vote?", About: "It decides with the others from then on. An odd number of votes bears the loss of most.", Up: up, Facts: facts, Button: "Give it a vote", Keep: "Leave it",
			}, func() error {
				_, err := v.ask(request{method: http.MethodPost, path: at + "/promote"})
				return err
			}, link("cluster"))
			return
		case what == "remove" && m.Remove != "":
			v.makeSure(sureView{
				Head: "Take " + m.Called + " out for good?", About: "It ends by itself, its store is gone, and it cannot come back but by a new invitation.", Up: up, Facts: facts, Button: "Take it out", Keep: "Keep it", Danger: true,
			}, func() error {
				_, err := v.ask(request{method: http.MethodDelete, path: at})
				return err
			}, link("cluster"))
			return
		}
	}
	v.missing()
}

// revisions is how far behind somebody is.
func revisions(n int64) string {
	switch n {
	case 0:
		return "nothing"
	case 1:
		return "1 revision"
	}
	return strconv.FormatInt(n, 10) + " revisions"
}
