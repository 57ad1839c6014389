package console

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/web/console/scene"
)

// networkView is the network as a picture, and the same as tables.
type networkView struct {
	Head, About     string
	Up              *navLink
	Where           whereView
	Picture         *pictureView
	Notes           []string
	Nodes           []nodeRow
	Grouped         bool
	Links           []linkRow
	MoreLinks       int
	Slow            string // from when on a link is
	Total, From, To int
	Previous, Next  string
}

// pictureView is what is drawn.
type pictureView struct {
	W, H  int
	Low   bool
	Says  string
	Plain string // lines of links that there is nothing to say of
	Lines []lineView
	Nodes []nodeView
}

type lineView struct {
	Path, Class, Title string
	Label              string
	Box                scene.Box
	X, Y               int
}

type nodeView struct {
	scene.Box
	Name, Note, Title, Href string
	Class                   string // there, away, some of several, or out
}

type nodeRow struct {
	Name, Href, Show, State, Class string
	Routers, Links                 int
	Slowest                        string
	Hosts                          []string
	More                           int
}

type linkRow struct {
	From, To    nodeRef
	Took, State string
	Class       string
	Count       int
	order       int
	worst       time.Duration
}

type nodeRef struct{ Name, Href string }

// Bounds of a picture and of its tables.
const (
	mostDrawn = 100
	mostLines = 1000 // links that are all drawn
	fewLines  = 60   // links that all have a label
	mostRows  = 100
	mostTold  = 4 // services of a router
)

// network shows the network as a picture.
func (v *visit) network() {
	m, err := v.readMesh()
	if err != nil {
		v.fail(err)
		return
	}
	asked := v.r.URL.Query()
	view := networkView{Head: "Network", Slow: took(slowLink)}
	focus, group := asked.Get("router"), asked.Get("group")
	if len(m.nodes) > mostDrawn {
		if err := v.readWords(m); err != nil {
			v.fail(err)
			return
		}
		m.sort()
	}
	switch n := m.byID[focus]; {
	case focus != "" && n == nil, group != "" && focus == "" && !slices.ContainsFunc(m.nodes, func(n *meshNode) bool { return n.group == group }):
		v.missing()
		return
	case n != nil:
		view.Head, view.Up = n.name, &navLink{Text: "Network", Href: link("network")}
		m = m.around(n)
		view.About = fmt.Sprintf("The router, which is %s, and those that it has links to.", n.state)
	case group != "":
		view.Head, view.Up = group, &navLink{Text: "Network", Href: link("network")}
		m = m.only(func(n *meshNode) bool { return n.group == group }, func(*meshPair) bool { return true })
		view.About = "The routers of a group, and the links between them."
	case len(m.nodes) > mostDrawn:
		view.About, view.Grouped = summary(m)+" They are grouped by a role attribute that some of them share, or by how their names begin.", true
		m = m.grouped()
	case len(m.nodes) > 0:
		view.About = summary(m)
	}
	m = v.partOf(m, &view)
	v.describe(m, &view)
	view.Where = v.where("network")
	v.show(http.StatusOK, "network", page{Title: view.Head, Body: view, Live: "presences,links,routers,edge-routers,terminators", Every: 30})
}

// readWords asks for the role attributes of routers, which edge routers have.
func (v *visit) readWords(m *mesh) error {
	all, _, err := v.every(v.ManagementRoot+"/edge-routers", url.Values{"fields": {"id,roleAttributes"}}, mostRouters)
	for _, rec := range all {
		if n := m.byID[rec.text("id")]; n != nil {
			_ = json.Unmarshal(rec["roleAttributes"], &n.words)
		}
	}
	return err
}

// summary says how a network is.
func summary(m *mesh) string {
	away, slow, cut := 0, 0, 0
	for _, n := range m.nodes {
		away += n.away
	}
	for _, p := range m.pairs {
		switch {
		case p.cut():
			cut++
		case p.slow():
			slow++
		}
	}
	text := counted(len(m.nodes), "router")
	if away > 0 {
		text += fmt.Sprintf(", %d not connected", away)
	}
	text += "; " + counted(m.links, "link")
	if slow > 0 {
		text += fmt.Sprintf(", %d slow", slow)
	}
	if cut > 0 {
		text += fmt.Sprintf(", %d down", cut)
	}
	return text + "."
}

func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}

// partOf is what of a mesh fits into a picture.
func (v *visit) partOf(m *mesh, view *networkView) *mesh {
	view.Total = len(m.nodes)
	if view.Total <= mostDrawn {
		return m
	}
	from, _ := strconv.Atoi(v.r.URL.Query().Get("from"))
	from = max(0, min(from, view.Total-1))
	to := min(from+mostDrawn, view.Total)
	view.From, view.To = from+1, to
	if from > 0 {
		view.Previous = v.with("from", strconv.Itoa(max(0, from-mostDrawn)))
	}
	if to < view.Total {
		view.Next = v.with("from", strconv.Itoa(to))
	}
	return m.only(func(n *meshNode) bool { return n.place >= from && n.place < to }, func(*meshPair) bool { return true })
}

// describe draws a mesh, and writes its tables.
func (v *visit) describe(m *mesh, view *networkView) {
	if len(m.nodes) == 0 {
		return
	}
	drawn := m.pairs
	if len(drawn) > mostLines {
		drawn = nil
		for _, p := range m.pairs {
			if (p.slow() || p.cut()) && len(drawn) < mostLines {
				drawn = append(drawn, p)
			}
		}
		view.Notes = append(view.Notes, fmt.Sprintf("There are too many links to draw: of %d pairs of routers the picture shows those whose links are slow or down. Choose a router to see its own.", len(m.pairs)))
	}
	if m.unknown > 0 {
		view.Notes = append(view.Notes, "Not all hosts of services are told of: there are too many.")
	}
	view.Picture = draw(m, drawn, view.Grouped)
	degree, worst := map[*meshNode]int{}, map[*meshNode]time.Duration{}
	for _, p := range m.pairs {
		for _, n := range []*meshNode{p.a, p.b} {
			degree[n] += p.count
			worst[n] = max(worst[n], p.worst)
		}
	}
	for _, n := range m.nodes {
		row := nodeRow{Name: n.name, Show: nodeHref(n, view.Grouped), Href: link("routers", n.id), State: n.state, Class: classOf(n), Routers: n.routers, Links: degree[n], Slowest: took(worst[n])}
		if view.Grouped {
			row.Href, row.State = row.Show, n.online()
		}
		row.Hosts = n.hosts[:min(len(n.hosts), mostTold)]
		row.More = len(n.hosts) - len(row.Hosts)
		view.Nodes = append(view.Nodes, row)
	}
	view.Links = linkRows(m, view.Grouped)
	if n := len(view.Links); n > mostRows {
		view.Links, view.MoreLinks = view.Links[:mostRows], n-mostRows
	}
}

// nodeHref is where the picture of a node is.
func nodeHref(n *meshNode, grouped bool) string {
	if grouped {
		return link("network") + "?" + url.Values{"group": {n.id}}.Encode()
	}
	return link("network") + "?" + url.Values{"router": {n.id}}.Encode()
}

// classOf is how a node looks.
func classOf(n *meshNode) string {
	switch {
	case n.state == stateDisabled || n.state == stateInvited:
		return "out"
	case !n.there():
		return "away"
	case n.away > 0:
		return "some"
	}
	return "there"
}

// linkRows are the links as a table, with those first that somebody should look at.
func linkRows(m *mesh, grouped bool) (rows []linkRow) {
	for _, p := range m.pairs {
		row := linkRow{
			From: nodeRef{p.a.name, nodeHref(p.a, grouped)}, To: nodeRef{p.b.name, nodeHref(p.b, grouped)}, Count: p.count,
			Took: took(p.best), State: "up", worst: p.worst, order: 2,
		}
		switch {
		case p.cut():
			row.State, row.Class, row.order = "down", "failing", 0
		case p.slow():
			row.State, row.Class, row.order = "slow", "warning", 1
		case p.down > 0:
			row.State = fmt.Sprintf("%d of %d down", p.down, p.count)
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b linkRow) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(b.worst, a.worst))
	})
	return rows
}

// took is how long something takes, as people say it; empty if nobody knows.
func took(d time.Duration) string {
	switch ms := float64(d) / float64(time.Millisecond); {
	case d <= 0:
		return ""
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	default:
		return fmt.Sprintf("%.0f ms", ms)
	}
}

// draw places everything.
func draw(m *mesh, pairs []*meshPair, grouped bool) *pictureView {
	links := make([]scene.Link, len(pairs))
	labels := make([]string, len(pairs))
	for i, p := range pairs {
		links[i] = scene.Link{From: p.a.place, To: p.b.place, First: p.slow() || p.cut()}
		switch labels[i] = took(p.best); {
		case p.cut() && p.a.there() && p.b.there():
			labels[i] = "down"
		case p.cut():
			labels[i] = "" // which is no wonder
		case p.slow():
			labels[i] += ", slow"
		}
		if labels[i] != "" && (links[i].First || len(pairs) <= fewLines) {
			links[i].Wide = 8 + 7*utf8.RuneCountInString(labels[i])
		}
	}
	p := scene.Draw(len(m.nodes), links)
	view := &pictureView{W: p.W, H: p.H, Low: p.Low, Says: "A picture of what the tables below say."}
	var plain strings.Builder
	for i, l := range p.Lines {
		line := lineView{Path: l.Path, Class: "up", Title: lineTitle(pairs[i])}
		switch {
		case pairs[i].cut():
			line.Class = "down"
		case pairs[i].slow():
			line.Class = "slow"
		case len(pairs) > fewLines:
			plain.WriteString(l.Path)
			continue
		}
		if l.Label.W > 0 {
			line.Label, line.Box, line.X, line.Y = labels[i], l.Label, l.Label.X+l.Label.W/2, l.Label.Y+l.Label.H/2
		}
		view.Lines = append(view.Lines, line)
	}
	view.Plain = plain.String()
	for i, n := range m.nodes {
		node := nodeView{Box: p.Boxes[i], Name: fitted(n.name, 18), Href: nodeHref(n, grouped), Class: classOf(n), Title: n.name + ": " + n.state}
		node.Note = n.state
		if grouped {
			node.Note = n.online()
			node.Title = n.name + ": " + node.Note
		}
		if len(n.hosts) > 0 {
			if !grouped {
				node.Note += ", " + counted(len(n.hosts), "service")
			}
			node.Title += "; hosts " + strings.Join(n.hosts[:min(len(n.hosts), mostTold)], ", ")
			if len(n.hosts) > mostTold {
				node.Title += fmt.Sprintf(" and %d more", len(n.hosts)-mostTold)
			}
		}
		node.Note = fitted(node.Note, 22)
		view.Nodes = append(view.Nodes, node)
	}
	return view
}

func lineTitle(p *meshPair) string {
	text := p.a.name + " – " + p.b.name
	switch {
	case p.cut():
		text += ": down"
	case p.best > 0:
		text += ": " + took(p.best)
	}
	if p.count > 1 {
		text += ", " + counted(p.count, "link")
	}
	return text
}

// fitted ends a text where its room does. Some letters take the room of two.
func fitted(text string, most int) string {
	taken := 0
	for i, r := range text {
		if taken++; r >= 0x2E80 {
			taken++
		}
		if taken > most {
			return strings.TrimRight(text[:i], " ,") + "…"
		}
	}
	return text
}

// Below are what templates ask of boxes.

// Mark is where the sign of a node's state is.
func (n nodeView) Mark() scene.Box { return scene.Box{X: n.X + 14, Y: n.Y + n.H/2} }

// TextX, NameY and NoteY are where its texts begin.
func (n nodeView) TextX() int { return n.X + 28 }
func (n nodeView) NameY() int {
	if n.H < 30 {
		return n.Y + n.H/2 + 4
	}
	return n.Y + 17
}
func (n nodeView) NoteY() int { return n.Y + 32 }

// SquareX and SquareY are the corner of a mark that is a square.
func (n nodeView) SquareX() int { return n.X + 10 }
func (n nodeView) SquareY() int { return n.Y + n.H/2 - 4 }
