package console

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// differenceView is what changed from one moment to another.
type differenceView struct {
	Since, Until, Problem string
	Done                  bool
	Counts                []string
	Records               []differingView
	Previous, Next        string
	Access                planView
}

// differingView is a record that differs.
type differingView struct {
	planRecord
	When, Time, Who string
}

// difference shows what changed from one moment to another, and who gained and lost what.
func (v *visit) difference() {
	query := v.r.URL.Query()
	view := differenceView{Since: strings.TrimSpace(query.Get("since")), Until: strings.TrimSpace(query.Get("until"))}
	if view.Since == "" {
		v.show(http.StatusOK, "difference", page{Title: "Difference", Body: view})
		return
	}
	from, _ := strconv.Atoi(query.Get("from"))
	from = max(0, from)
	asked := url.Values{"from": {moments(view.Since)}, "limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(from)}}
	if view.Until != "" {
		asked.Set("to", moments(view.Until))
	}
	out := differenceOut{}
	err := v.get(v.ManagementRoot+"/difference", asked, &out)
	if status, problem, ok := wrong(err); ok {
		view.Problem = problem
		v.show(status, "difference", page{Title: "Difference", Body: view})
		return
	}
	if err != nil {
		v.fail(err)
		return
	}
	v.differenceOf(&view, out, from)
	v.show(http.StatusOK, "difference", page{Title: "Difference", Body: view})
}

type differenceOut struct {
	Counts struct {
		Created int `json:"created"`
		Changed int `json:"changed"`
		Deleted int `json:"deleted"`
	} `json:"counts"`
	Records []struct {
		changedRecord
		Who  string `json:"who"`
		When string `json:"when"`
	} `json:"records"`
	Access access `json:"access"`
}

// differenceOf completes the page.
func (v *visit) differenceOf(view *differenceView, out differenceOut, from int) {
	view.Done = true
	c := out.Counts
	for _, n := range []struct {
		n    int
		what string
	}{{c.Created, "created"}, {c.Changed, "changed"}, {c.Deleted, "deleted"}} {
		view.Counts = append(view.Counts, strconv.Itoa(n.n)+" "+n.what)
	}
	n := naming{visit: v}
	for _, r := range out.Records {
		for _, f := range r.Fields {
			n.want(r.Kind, f.Name, f.Before, f.After)
		}
	}
	n.ask()
	for _, r := range out.Records {
		at := reading{console: v.Console}.text(r.When)
		one := differingView{
			planRecord: planRecord{Outcome: r.Outcome, Kind: strings.ReplaceAll(r.Kind, "-", " "), Name: r.Name, Href: v.after(r.Kind, r.ID)},
			When:       at.Text, Time: at.Time, Who: r.Who,
		}
		if one.Name == "" {
			one.Name = r.ID
		}
		for _, f := range r.Fields {
			d := n.diff(r.Kind, f.Name, f.Before, f.After)
			d.Before, d.After = d.Before.brief(), d.After.brief()
			one.Fields = append(one.Fields, d)
		}
		view.Records = append(view.Records, one)
	}
	v.addPairs(&view.Access, out.Access)
	view.Access.PairsMore = max(0, view.Access.PairsMore-from)
	if from > 0 {
		view.Previous = v.with("from", strconv.Itoa(max(0, from-pageSize)))
	}
	if from+len(out.Records) < c.Created+c.Changed+c.Deleted || out.Access.More {
		view.Next = v.with("from", strconv.Itoa(from+pageSize))
	}
}
