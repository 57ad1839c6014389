package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// dayOf is the last day as the API tells of it.
type dayOf struct {
	Since time.Time `json:"since"`
	From  time.Time `json:"from"`
	Step  int       `json:"stepSeconds"`
	Steps []stepOf  `json:"steps"`

	Services []struct {
		ID    string   `json:"serviceId"`
		Name  string   `json:"service"`
		Bytes int64    `json:"bytes"`
		Steps []stepOf `json:"steps"`
	} `json:"services"`
	Other int64 `json:"otherBytes"`
}

// stepOf is what happened in a part of the day. There are more than a thousand.
type stepOf struct {
	Logins        int64 `json:"logins"`
	LoginsRefused int64 `json:"loginsRefused"`
	Dials         int64 `json:"dials"`
	DialsRefused  int64 `json:"dialsRefused"`
	Circuits      int64 `json:"circuits"`
	Bytes         int64 `json:"bytes"`
	SlowestLink   int64 `json:"slowestLink"`
}

// dayView is the last day in small graphs.
type dayView struct {
	Since    value // when the controller started, if that was within the day
	Graphs   []graphView
	Services []graphView
	Other    string
	Slowest  []slowView
	Where    whereView
}

// graphView is a figure over the day.
type graphView struct {
	Head, Href, Figure string
	Aside              string
	Line, Second       string // points of the lines
	Says               string // the same in words
}

type slowView struct{ From, To, Href, Took string }

// young is for how long after its start a controller shows every minute.
const young = 3 * time.Hour

// The size of a graph. Its lines keep a little away from the edges.
const (
	graphWidth  = 144
	graphHeight = 32
	graphEdge   = 2
)

// day is the last one; nil if it is not known.
func (v *visit) day() *dayView {
	day := v.steps()
	if day == nil || len(day.Steps) == 0 {
		return nil // the rest of the page is of use
	}
	view := &dayView{Where: v.where("")}
	if day.Since.After(day.From) {
		view.Since = reading{}.text(day.Since.UTC().Format(time.RFC3339))
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	logins, loginsRefused := func(s stepOf) int64 { return s.Logins }, func(s stepOf) int64 { return s.LoginsRefused }
	dials, dialsRefused := func(s stepOf) int64 { return s.Dials }, func(s stepOf) int64 { return s.DialsRefused }
	carried := func(s stepOf) int64 { return s.Bytes }
	view.Graphs = []graphView{
		day.counts("Logins", logins, loginsRefused, link("audit-entries")),
		day.counts("Dials", dials, dialsRefused, link("audit-entries")),
		day.level("Circuits", func(s stepOf) int64 { return s.Circuits }, link("circuits"), number),
		day.sum("Carried", carried, link("services"), size),
		day.level("Slowest link", func(s stepOf) int64 { return s.SlowestLink }, link("network"), func(n int64) string {
			if n == 0 {
				return "none"
			}
			return took(time.Duration(n))
		}),
	}
	for _, s := range day.Services {
		list := each(s.Steps, carried)
		g := day.graph(list, nil)
		g.Head, g.Href, g.Figure = s.Name, link("services", s.ID), size(s.Bytes)
		g.Says = g.Head + " carried " + g.Figure + " in the last day" + day.peak(list, size) + "."
		view.Services = append(view.Services, g)
	}
	if day.Other > 0 {
		view.Other = size(day.Other)
	}
	view.Slowest = v.slowestLinks()
	return view
}

// steps asks for the day: for every minute of it as long as there is little to see, which
// is known from when it was last asked for.
func (v *visit) steps() *dayOf {
	since := v.since.Load()
	for {
		var day dayOf
		var query url.Values
		early := since != nil && v.Now().Sub(*since) < young
		if early {
			query = url.Values{"step": {"1"}}
		}
		if err := v.get(v.ManagementRoot+"/recent", query, &day); err != nil {
			return nil
		}
		v.since.Store(&day.Since)
		if since != nil || v.Now().Sub(day.Since) >= young {
			return &day
		}
		since = &day.Since
	}
}

// each is a figure by step.
func each(steps []stepOf, figure func(stepOf) int64) []int64 {
	list := make([]int64, len(steps))
	for i, step := range steps {
		list[i] = figure(step)
	}
	return list
}

func total(list []int64) (sum int64) {
	for _, n := range list {
		sum += n
	}
	return sum
}

// counts is a graph of what was done and what was refused.
func (d *dayOf) counts(head string, done, refused func(stepOf) int64, href string) graphView {
	good, bad := each(d.Steps, done), each(d.Steps, refused)
	g := d.graph(good, bad)
	g.Head, g.Href, g.Figure = head, href, strconv.FormatInt(total(good), 10)
	if n := total(bad); n > 0 {
		g.Aside = fmt.Sprintf("%d refused", n)
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	g.Says = fmt.Sprintf("%s in the last day: %s%s. Refused: %d%s.", head, g.Figure, d.peak(good, number), total(bad), d.peak(bad, number))
	return g
}

// sum is a graph of something that adds up.
func (d *dayOf) sum(head string, figure func(stepOf) int64, href string, say func(int64) string) graphView {
	list := each(d.Steps, figure)
	g := d.graph(list, nil)
	g.Head, g.Href, g.Figure = head, href, say(total(list))
	g.Says = head + " in the last day: " + g.Figure + d.peak(list, say) + "."
	return g
}

// level is a graph of something that goes up and down.
func (d *dayOf) level(head string, figure func(stepOf) int64, href string, say func(int64) string) graphView {
	list := each(d.Steps, figure)
	g := d.graph(list, nil)
	g.Head, g.Href, g.Figure = head, href, say(list[len(list)-1])
	g.Says = head + ": " + g.Figure + " now"
	if most, _ := highest(list); most > 0 {
		g.Aside = "at most " + say(most)
		g.Says += d.peak(list, say)
	}
	g.Says += "."
	return g
}

func highest(list []int64) (most int64, at int) {
	for i, n := range list {
		if n > most {
			most, at = n, i
		}
	}
	return most, at
}

// peak says when there was most of something.
func (d *dayOf) peak(list []int64, say func(int64) string) string {
	most, at := highest(list)
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(", most at %s with %s", d.From.Add(time.Duration(at*d.Step)*time.Second).UTC().Format("15:04"), say(most))
}

// graph draws one or two lines on the same scale, from when the controller started.
func (d *dayOf) graph(list, second []int64) (g graphView) {
	most, _ := highest(list)
	if other, _ := highest(second); other > most {
		most = other
	}
	first := 0
	for first < len(list)-1 && d.From.Add(time.Duration((first+1)*d.Step)*time.Second).Before(d.Since) {
		first++
	}
	g.Line = points(list, first, most)
	if n := total(second); n > 0 {
		g.Second = points(second, first, most)
	}
	return g
}

// points are those of a line.
func points(list []int64, first int, most int64) string {
	var b strings.Builder
	wide, high := float64(graphWidth-2*graphEdge), float64(graphHeight-2*graphEdge)
	at := func(i float64, n int64) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		y := high
		if most > 0 {
			y = high - high*float64(n)/float64(most)
		}
		fmt.Fprintf(&b, "%.1f,%.1f", graphEdge+wide*(i-float64(first))/float64(len(list)-first), graphEdge+y)
	}
	for i := first; i < len(list); i++ {
		if i > first && i < len(list)-1 && list[i] == list[i-1] && list[i] == list[i+1] {
			continue // on the line
		}
		at(float64(i), list[i])
	}
	at(float64(len(list)), list[len(list)-1]) // the last step lasts until now
	return b.String()
}

// slowestLinks are the links that take longest now.
func (v *visit) slowestLinks() (rows []slowView) {
	list, err := v.list(v.FabricRoot+"/links", url.Values{"limit": {"3"}, "sort": {"sourceLatency desc"}, "filter": {"sourceLatency > 0 and down = false"}})
	if err != nil {
		return nil
	}
	name := func(raw jsontext.Value) string {
		var m members
		_ = json.Unmarshal(raw, &m)
		return label(m)
	}
	for _, rec := range list.Data {
		rows = append(rows, slowView{shortened(name(rec["sourceRouter"]), 28), shortened(name(rec["destRouter"]), 28), link("links", rec.text("id")), took(nanoseconds(rec["sourceLatency"]))})
	}
	return rows
}
