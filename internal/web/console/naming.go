package console

import (
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
)

// naming knows what records are called that fields refer to by id, as differences and
// audit entries have them. They are asked for together.
type naming struct {
	visit  *visit
	wanted map[string][]string // ids by kind
	names  map[string]string   // by id
}

// fieldNamed is the field of a kind that differences call by a name; nil if there is none.
func (c *Console) fieldNamed(kindName, name string) *kind.Field {
	d := c.Kinds.Named(kindName)
	if d == nil {
		return nil
	}
	i := slices.IndexFunc(d.Fields, func(f *kind.Field) bool { return f.Name == name || f.Last() == name || f.Shown() == name })
	if i < 0 {
		return nil
	}
	return d.Fields[i]
}

// mostNamed is how many records of a kind are asked for their names.
const mostNamed = 200

// want notes what values of a field refer to.
func (n *naming) want(kindName, name string, values ...jsontext.Value) {
	f := n.visit.fieldNamed(kindName, name)
	if f == nil || f.Roles == "" && len(f.Targets()) == 0 {
		return
	}
	targets := f.Targets()
	if f.Roles != "" {
		targets = []string{f.Roles}
	}
	if n.wanted == nil {
		n.wanted = map[string][]string{}
	}
	for _, raw := range values {
		for _, id := range idsIn(raw) {
			for _, target := range targets {
				if !slices.Contains(n.wanted[target], id) && len(n.wanted[target]) < mostNamed {
					n.wanted[target] = append(n.wanted[target], id)
				}
			}
		}
	}
}

// idsIn are the texts of a value that may be ids: roles by attribute are none.
func idsIn(raw jsontext.Value) (ids []string) {
	var one string
	var list []string
	var keyed members
	switch {
	case json.Unmarshal(raw, &one) == nil:
		list = []string{one}
	case json.Unmarshal(raw, &list) == nil:
	case json.Unmarshal(raw, &keyed) == nil:
		for id := range keyed {
			list = append(list, id)
		}
	}
	for _, id := range list {
		if id = strings.TrimPrefix(id, "@"); id != "" && id[0] != '#' {
			ids = append(ids, id)
		}
	}
	return ids
}

// ask finds the names. What is not found is shown by id.
func (n *naming) ask() {
	n.names = map[string]string{}
	for target, ids := range n.wanted {
		d := n.visit.Kinds.Named(target)
		if d == nil || !n.visit.shown(d) || d.Field("name") == nil {
			continue
		}
		quoted := make([]string, len(ids))
		for i, id := range ids {
			quoted[i] = quote(id)
		}
		page, err := n.visit.list(resource{n.visit.Console, d}.at(), url.Values{"filter": {"id in [" + strings.Join(quoted, ",") + "]"}, "fields": {"id,name"}, "limit": {"500"}})
		if err != nil {
			continue
		}
		for _, rec := range page.Data {
			n.names[rec.text("id")] = rec.text("name")
		}
	}
}

// diff is a field before and after, as people read it.
func (n naming) diff(kindName, name string, before, after jsontext.Value) diffView {
	head := titled(kind.Heading(name))
	f := n.visit.fieldNamed(kindName, name)
	if f != nil {
		head = called(f, name)
	}
	return diffView{head, n.value(f, before), n.value(f, after)}
}

// value is a value of a field, with names in the place of ids.
func (n naming) value(f *kind.Field, raw jsontext.Value) value {
	read := reading{console: n.visit.Console}
	if f == nil || f.Roles == "" && len(f.Targets()) == 0 {
		return read.of(raw)
	}
	var one string
	var list []string
	switch {
	case json.Unmarshal(raw, &one) == nil:
		return n.named(f, one)
	case json.Unmarshal(raw, &list) == nil:
		v := value{}
		for _, text := range list {
			v.Items = append(v.Items, n.named(f, text))
		}
		return v
	}
	return read.of(raw)
}

// named is a role, or a record that is referred to.
func (n naming) named(f *kind.Field, text string) value {
	if text == "" {
		return value{}
	}
	id := strings.TrimPrefix(text, "@")
	v, name := value{Text: text, Tag: f.Roles != ""}, n.names[id]
	if name == "" {
		return v
	}
	v.Text = text[:len(text)-len(id)] + name
	if targets := f.Targets(); f.Roles != "" {
		v.Href = n.visit.recordPage(f.Roles, id)
	} else if len(targets) == 1 {
		v.Href = n.visit.recordPage(targets[0], id)
	}
	return v
}
