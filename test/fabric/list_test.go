package fabric

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// busyMesh is routers in a row of three links, the dearer the further, with three
// circuits from the first to the third.
func busyMesh(t *testing.T, s *servertest.Server) (m *mesh, circuits []string) {
	t.Helper()
	m = addMesh(t, s, "ab", "bc", "cd")
	for i, link := range []string{"ab", "bc", "cd"} {
		m.measure(link[:1], link, 10*(i+1))
		m.settled(link[:1])
	}
	m.hostOn(t, m.routers["c"], "terminator1")
	for range 3 {
		id, _, err := m.dialOn(t, m.routers["a"])
		must(t, err)
		circuits = append(circuits, id)
	}
	slices.Sort(circuits)
	return m, circuits
}

// TestFabricLists asks for links and circuits as one asks for records: with
// filters, in an order, page by page, and some members alone.
func TestFabricLists(t *testing.T) {
	s := servertest.Start(t)
	m, circuits := busyMesh(t, s)
	admin := s.Admin(t)
	ab, bc, cd := m.id("ab"), m.id("bc"), m.id("cd")
	for _, c := range []struct {
		path, filter, more string
		want               []string
		total              int
	}{
		{"links", "", "", []string{ab, bc, cd}, 3},
		{"links", "", "&sort=cost+desc", []string{cd, bc, ab}, 3},
		{"links", "", "&sort=sourceLatency+desc&limit=1", []string{cd}, 3},
		{"links", "", "&limit=1&offset=1", []string{bc}, 3},
		{"links", "true sort by cost desc skip 1 limit 1", "", []string{bc}, 3},
		{"links", "", "&limit=2&offset=2", []string{cd}, 3},
		{"links", "", "&offset=3", nil, 3},
		{"links", "sourceLatency >= 20000000", "", []string{bc, cd}, 2},
		{"links", "sourceLatency >= 20000000 and not destRouterId = \"" + m.records["d"].ID + "\"", "", []string{bc}, 1},
		{"links", "down = true", "", nil, 0},
		{"links", `state = "Connected" and protocol = "tls" and iteration = 1 and staticCost = 1`, "&limit=1", []string{ab}, 3},
		{"links", `id in ["` + bc + `", "` + cd + `", "nope"]`, "", []string{bc, cd}, 2},
		{"circuits", "", "", circuits, 3},
		{"circuits", "", "&sort=id+desc&limit=2", []string{circuits[2], circuits[1]}, 3},
		{"circuits", "", "&limit=1&offset=1", []string{circuits[1]}, 3},
		{"circuits", `terminator = "terminator1" and anyOf(routers) = "` + m.records["b"].ID + `"`, "&limit=1", []string{circuits[0]}, 3},
		{"circuits", `anyOf(routers) = "` + m.records["d"].ID + `"`, "", nil, 0},
		{"circuits", `anyOf(links) = "` + bc + `" and tags.serviceId = "` + m.service + `"`, "", circuits, 3},
		{"circuits", "movedAt = null", "", circuits, 3},
		{"circuits", "not movedAt = null", "", nil, 0},
	} {
		got := admin.Get(fabricAPI + c.path + "?filter=" + url.QueryEscape(c.filter) + c.more).Want(200)
		var ids []string
		for _, rec := range got.List() {
			ids = append(ids, rec["id"].(string))
		}
		if !slices.Equal(ids, c.want) || got.Total() != c.total {
			t.Errorf("%s with %q%s are %v of %d, want %v of %d", c.path, c.filter, c.more, ids, got.Total(), c.want, c.total)
		}
	}
	for _, path := range []string{"links", "circuits"} {
		admin.Get(fabricAPI+path+"?filter="+url.QueryEscape("nope = 1")).Fails(400, "INVALID_FILTER", "")
		admin.Get(fabricAPI+path+"?sort=nope").Fails(400, "INVALID_SORT_IDENTIFIER", "")
		admin.Get(fabricAPI+path+"?fields=nope").Fails(400, "COULD_NOT_VALIDATE", "fields")
		for _, rec := range admin.Get(fabricAPI + path + "?fields=id,cost").Want(200).List() {
			if len(rec) != 2 {
				t.Errorf("two members of %s: %v", path, rec)
			}
		}
	}
}

// TestFabricMembers pins what clients of others read of links and circuits, and
// has all of it come from the kinds: their members, in this order, and what
// filters may name.
func TestFabricMembers(t *testing.T) {
	s := servertest.Start(t)
	_, circuits := busyMesh(t, s)
	admin := s.Admin(t)
	for _, c := range []struct {
		def            *kind.Def
		members, names string
	}{
		{
			model.Links.Def,
			"id createdAt updatedAt tags sourceRouterId sourceRouter destRouterId destRouter protocol dialAddress iteration cost staticCost " +
				"sourceLatency destLatency state down connections _links",
			"cost createdAt destLatency destRouterId dialAddress down id isSystem iteration protocol sourceLatency sourceRouterId state staticCost tags updatedAt",
		},
		{
			model.Circuits.Def,
			"id createdAt updatedAt tags clientId client hostId host serviceId service terminatorId sessionId cost movedAt terminator path _links",
			"clientId cost createdAt hostId id isSystem links movedAt routers service serviceId sessionId tags terminator terminatorId updatedAt",
		},
	} {
		list := admin.Get(fabricAPI + c.def.Path).Want(200)
		var raw struct{ Data []json.RawMessage }
		must(t, json.Unmarshal(list.Raw, &raw))
		if got := strings.Join(memberNames(t, raw.Data[0]), " "); got != c.members {
			t.Errorf("one of the %s has\n%s, want\n%s", c.def.Path, got, c.members)
		}
		names := strings.Fields(strings.Trim(fmt.Sprint(list.At("meta.filterableFields")), "[]"))
		if slices.Sort(names); strings.Join(names, " ") != c.names {
			t.Errorf("filters of %s may name\n%v, want\n%v", c.def.Path, names, c.names)
		}
		for _, f := range c.def.Fields {
			if _, shown := list.List()[0][f.Shown()]; shown == f.Hidden {
				t.Errorf("%s is hidden among %s: %v, and shown: %v", f.Name, c.def.Path, f.Hidden, shown)
			}
		}
	}
	admin.Get(fabricAPI + "circuits/" + circuits[0]).Want(200)
	admin.Get(fabricAPI+"links/nope").Fails(404, "NOT_FOUND", "")
	admin.Get(fabricAPI+"circuits/nope").Fails(404, "NOT_FOUND", "")
}

// memberNames are the names in an object, in its order.
func memberNames(t *testing.T, object []byte) (names []string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(object)))
	_, err := dec.Token()
	must(t, err)
	for dec.More() {
		name, err := dec.Token()
		must(t, err)
		names = append(names, name.(string))
		var value json.RawMessage
		must(t, dec.Decode(&value))
	}
	return names
}

// TestListVolatile lists links and circuits on the command line as it lists every
// other kind: the columns and the flags are what their kinds say.
func TestListVolatile(t *testing.T) {
	s := servertest.Start(t)
	term := newTerminal(t, s)
	term.says("There are no circuits.", "list", "circuits")
	m, circuits := busyMesh(t, s)
	for _, name := range []string{"a", "b", "c", "d"} {
		term.replace = append(term.replace, m.records[name].Name, name)
	}
	term.replace = append(term.replace, "-"+m.service, "")
	for i, id := range circuits {
		term.replace = append(term.replace, id, fmt.Sprint("circuit", i))
	}
	term.says(`
		FROM TO LATENCY OTHER END COST DOWN ID
		c    d  30.0 ms 1.0 ms    32   no   cd
		b    c  20.0 ms 1.0 ms    22   no   bc`, "list", "links", "--sort", "cost desc", "--limit", "2")
	term.says("ab\nbc", "list", "links", "--router", m.records["b"].Name, "-o", "name")
	term.says("bc", "list", "links", "--router", m.records["b"].Name, "--filter", "cost > 20", "-o", "name")
	term.says("from,to,latency,other end,cost,down,id\na,b,10.0 ms,1.0 ms,12,no,ab", "list", "link", "--limit", "1", "-o", "csv")
	term.says("circuit2", "list", "circuits", "--router", m.records["c"].Name, "--sort", "id desc", "--limit", "1", "-o", "name")
	term.says("There are no circuits.", "list", "circuits", "--router", m.records["d"].Name)
	for _, def := range []*kind.Def{model.Links.Def, model.Circuits.Def} {
		heads := strings.SplitN(term.run(0, "list", def.Path, "-o", "csv"), "\n", 2)[0]
		wide := strings.SplitN(term.run(0, "list", def.Path, "-o", "wide"), "\n", 2)[0]
		if n := len(strings.Split(heads, ",")); n != len(def.Columns) {
			t.Errorf("a table of %s has %q, and the kind names %q", def.Path, heads, def.Columns)
		}
		for _, member := range []string{"CREATED AT", "UPDATED AT", "TAGS"} {
			if member == "CREATED AT" && strings.Contains(wide, "SINCE") {
				continue
			}
			if !strings.Contains(wide, member) {
				t.Errorf("a wide table of %s has %q, and no %s", def.Path, wide, member)
			}
		}
	}
	if wide := term.run(0, "list", "links", "-o", "wide"); !strings.Contains(wide, "DIAL ADDRESS") || strings.Contains(wide, "CONTROLLER") {
		t.Errorf("a wide table of links:\n%s", wide)
	}
	if out := term.run(0, "get", "link", m.id("bc")); !strings.Contains(out, "dialAddress") || !strings.Contains(out, "tls:127.0.0.1:6262") {
		t.Errorf("a link:\n%s", out)
	}
	term.run(3, "get", "link", "nope")
	term.run(2, "list", "links", "--of", "router/x")
	term.says("circuit circuit1 deleted", "delete", "circuit", circuits[1], "--yes")
	term.run(3, "delete", "circuit", circuits[1], "--yes")
	term.says("circuit0\ncircuit2", "list", "circuits", "-o", "name")
}
