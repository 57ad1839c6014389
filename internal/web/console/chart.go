package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// chart is a picture of the ways from an identity to services, or from a service to
// identities: five columns, with identities on the left. It is made of what the table
// beside it has too.
type chart struct {
	Width, Height int
	Says          string // what is in it, for who cannot see it
	Grouped       string // what is left out; empty if nothing is
	Heads         []chartHead
	Nodes         []*chartNode
	Edges         []chartEdge
}

type chartHead struct {
	Text string
	X    int
}

// chartNode is a box.
type chartNode struct {
	Text, Title, Href   string
	Class               string
	X, Y, Width, Height int
	key                 string
	column              int
	rank                float64
}

// chartEdge is a line from one box to another.
type chartEdge struct {
	Path string
	Bind bool // whether it is about hosting alone
	a, b *chartNode
}

// The measures of a chart. A picture with more boxes than mostNodes says nothing: then
// the boxes at its far end are groups, and columns have no more than they may.
const (
	mostNodes    = 40
	columnWidth  = 128
	columnGap    = 22
	rowHeight    = 28
	rowGap       = 8
	headHeight   = 24
	mostNear     = 5
	mostPolicies = 8
	mostFar      = 10
)

// sketch is a chart that is being made.
type sketch struct {
	nodes map[string]*chartNode
	order []*chartNode
	edges map[[2]string]*chartEdge
	lines []*chartEdge
}

func (s *sketch) node(key string, column int, text, class, href string) *chartNode {
	if n := s.nodes[key]; n != nil {
		return n
	}
	n := &chartNode{Text: text, Title: text, Class: class, Href: href, key: key, column: column, Width: columnWidth, Height: rowHeight}
	s.nodes[key] = n
	s.order = append(s.order, n)
	return n
}

func (s *sketch) edge(a, b *chartNode, bind bool) {
	if a == nil || b == nil {
		return
	}
	key := [2]string{a.key, b.key}
	if e := s.edges[key]; e != nil {
		e.Bind = e.Bind && bind
		return
	}
	e := &chartEdge{a: a, b: b, Bind: bind}
	s.edges[key] = e
	s.lines = append(s.lines, e)
}

// chartOf draws ways. page is where a record is.
func chartOf(w ways, fromIdentity bool, page func(kindName, id string) string) *chart {
	s := &sketch{nodes: map[string]*chartNode{}, edges: map[[2]string]*chartEdge{}}
	near, far, farMany := "identity", "service", "services"
	if !fromIdentity {
		near, far, farMany = "service", "identity", "identities"
	}
	grouped := !whole(w)
	policies := w.Policies
	if grouped {
		policies = policies[:min(len(policies), mostPolicies)]
	}
	self := s.node("self", 0, w.Name, near, page(near, w.ID))
	for _, p := range policies {
		bind := p.Type == "Bind"
		name := p.Name
		if bind {
			name = "host · " + name
		}
		policy := s.node("policy "+p.ID, 2, name, "policy", page("service-policy", p.ID))
		for _, r := range p.Roles {
			role := s.limited(grouped, "near "+r.Role, 1, r.Name, mostNear)
			s.edge(self, role, bind)
			s.edge(role, policy, bind)
		}
		for _, r := range p.Ends {
			role := s.limited(grouped, "far "+r.Role, 3, r.Name, mostFar)
			s.edge(policy, role, bind)
			if grouped && role.key == "far "+r.Role {
				many := farMany
				if r.Count == 1 {
					many = far
				}
				s.edge(role, s.node("group "+r.Role, 4, fmt.Sprintf("%d %s", r.Count, many), "group", ""), bind)
			}
		}
	}
	if !grouped {
		for _, r := range w.Reached {
			end := s.node("end "+r.ID, 4, r.Name, far, page(far, r.ID))
			for _, way := range r.Ways {
				for _, role := range way.Roles {
					s.edge(s.nodes["far "+role.Role], end, way.Type == "Bind")
				}
			}
		}
	}
	c := s.laid(fromIdentity)
	c.Says = fmt.Sprintf("%s is selected by %d service policies, which lead to %d %s. The table below says the same.", w.Name, w.PolicyCount, w.Count, farMany)
	if grouped {
		c.Grouped = fmt.Sprintf("There is more than a picture can hold: %d of %d policies are in it, and %d %s as groups by role.", len(policies), w.PolicyCount, w.Count, farMany)
	}
	return c
}

// limited is a box for a role, or that of all roles for which there is no place.
func (s *sketch) limited(grouped bool, key string, column int, text string, most int) *chartNode {
	if n := s.nodes[key]; n != nil {
		return n
	}
	there := 0
	for _, n := range s.order {
		if n.column == column {
			there++
		}
	}
	if grouped && there >= most {
		return s.node(fmt.Sprint("more ", column), column, "more roles", "group", "")
	}
	return s.node(key, column, text, "role", "")
}

// whole reports whether everything has a place in the picture.
func whole(w ways) bool {
	if w.PolicyCount > len(w.Policies) || w.Count > len(w.Reached) {
		return false
	}
	seen := map[string]bool{}
	for _, p := range w.Policies {
		if p.EndCount > len(p.Ends) {
			return false
		}
		for _, r := range p.Roles {
			seen["near "+r.Role] = true
		}
		for _, r := range p.Ends {
			seen["far "+r.Role] = true
		}
	}
	return 1+len(w.Policies)+len(w.Reached)+len(seen) <= mostNodes
}

// laid gives every box its place: columns side by side, in each the boxes one below the
// other, near to those that they are connected with.
func (s *sketch) laid(fromIdentity bool) *chart {
	columns := make([][]*chartNode, 5)
	for _, n := range s.order {
		columns[n.column] = append(columns[n.column], n)
	}
	s.settle(columns)
	tallest := 0
	for _, col := range columns {
		tallest = max(tallest, len(col))
	}
	c := &chart{Width: 5*columnWidth + 4*columnGap, Height: headHeight + tallest*(rowHeight+rowGap)}
	heads := []string{"Identity", "Role", "Policy", "Role", "Service"}
	for i, col := range columns {
		at := i
		if !fromIdentity {
			at = 4 - i
		}
		x := at * (columnWidth + columnGap)
		c.Heads = append(c.Heads, chartHead{heads[at], x})
		top := headHeight + (tallest-len(col))*(rowHeight+rowGap)/2
		for j, n := range col {
			n.X, n.Y = x, top+j*(rowHeight+rowGap)
			c.Nodes = append(c.Nodes, n)
		}
	}
	for _, e := range s.lines {
		a, b := e.a, e.b
		if a.X > b.X {
			a, b = b, a
		}
		x1, y1, x2, y2 := a.X+columnWidth, a.Y+rowHeight/2, b.X, b.Y+rowHeight/2
		e.Path = fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, (x1+x2)/2, y1, (x1+x2)/2, y2, x2, y2)
		c.Edges = append(c.Edges, *e)
	}
	return c
}

// settle orders the boxes of each column by where those are that they are connected with,
// from the policies outwards.
func (s *sketch) settle(columns [][]*chartNode) {
	place := map[*chartNode]int{}
	note := func(col []*chartNode) {
		for i, n := range col {
			place[n] = i
		}
	}
	byName := func(a, b *chartNode) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Text), strings.ToLower(b.Text)), cmp.Compare(a.key, b.key))
	}
	slices.SortFunc(columns[2], byName)
	note(columns[2])
	for _, step := range [][2]int{{1, 2}, {3, 2}, {4, 3}} {
		col, towards := columns[step[0]], step[1]
		for _, n := range col {
			sum, count := 0, 0
			for _, e := range s.lines {
				other := e.a
				if e.a == n {
					other = e.b
				} else if e.b != n {
					continue
				}
				if other.column == towards {
					sum, count = sum+place[other], count+1
				}
			}
			n.rank = float64(sum) / float64(max(count, 1))
		}
		slices.SortFunc(col, func(a, b *chartNode) int { return cmp.Or(cmp.Compare(a.rank, b.rank), byName(a, b)) })
		note(col)
	}
}
