package manifest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Network is the records of a controller that files may hold.
type Network struct {
	shelves map[*kind.Def]*shelf
}

// shelf is the records of one kind.
type shelf struct {
	byID   map[string]*current
	byName map[string]*current
	byKey  map[string]*current
}

// current is a record as it is.
type current struct {
	def  *kind.Def
	id   string
	name string // empty if its kind has none
	key  string // by which files find it: its name, or what it refers to
	made bool   // by the controller, and not by people
	kept bool   // by the controller, which changes it by itself
	// inside is whether it is of the router inside the controller: what runs is
	// not for files to end that say nothing of it.
	inside bool
	// came is whether it came to be by itself, when somebody logged in: files that
	// say nothing of it do not end it.
	came bool
	// provided are its role attributes that no file gave it, nor can take away.
	provided []string
	// maker is the record that it was made for and goes with, if any.
	maker *current
	// answer is what the controller says of it, until that is settled as a body:
	// there may be many, and one of the two is enough.
	answer jsontext.Value
	body   body
}

// body is what bodies can set of a record, with names in the place of ids.
type body []kind.Member

// of is what the body says of a field; nil if nothing.
func (b body) of(f *kind.Field) jsontext.Value { return b.named(f.Last()) }

func (b body) named(name string) jsontext.Value {
	for _, m := range b {
		if m.Field.Last() == name {
			return m.Text
		}
	}
	return nil
}

// object is the body as one value.
func (b body) object() *value {
	v := &value{}
	for _, said := range b {
		if m, err := fromJSON(said.Text); err == nil { // it was one before
			v.members = append(v.members, member{name: said.Field.Last(), value: m})
		}
	}
	return v
}

// said is the text that the body has for a name, empty if none.
func (b body) said(name string) string {
	text, _ := (&value{scalar: b.named(name)}).text()
	return text
}

// Load reads what a controller has.
func Load(ctx context.Context, from Source) (*Network, error) {
	n := &Network{shelves: map[*kind.Def]*shelf{}}
	for _, d := range kinds {
		raws, err := from.List(ctx, d.Path)
		if err == nil {
			n.shelves[d], err = fill(d, raws)
		}
		if err != nil {
			return nil, fmt.Errorf("list the %s: %w", d.Path, err)
		}
	}
	routers := n.shelves[model.All.Named(makes)]
	for d, s := range n.shelves {
		all := slices.Collect(maps.Values(s.byID))
		err := atOnce(len(all), func(i int) error {
			c := all[i]
			if d.Name != makes {
				c.maker = routers.byID[c.id]
			}
			c.made = c.made || c.maker != nil
			if err := n.settle(c); err != nil {
				return fmt.Errorf("the %s %s: %w", noun(d), cmp.Or(c.name, c.id), err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			s.byKey[c.key] = c
		}
	}
	return n, nil
}

// atOnce does something for each of n, on all processors.
func atOnce(n int, do func(i int) error) error {
	const few = 64 // not worth another processor
	workers := max(1, min(runtime.GOMAXPROCS(0), n/few))
	errs := make([]error, workers)
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for i := w; i < n && errs[w] == nil; i += workers {
				errs[w] = do(i)
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// fill reads the answers for one kind.
func fill(d *kind.Def, raws []jsontext.Value) (*shelf, error) {
	s := &shelf{map[string]*current{}, map[string]*current{}, map[string]*current{}}
	all := make([]*current, len(raws))
	err := atOnce(len(raws), func(i int) (err error) {
		all[i], err = newCurrent(d, raws[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if named(d) {
			s.byName[c.name] = c
		}
		s.byID[c.id] = c
	}
	return s, nil
}

// newCurrent reads the answer for one record.
func newCurrent(d *kind.Def, raw jsontext.Value) (*current, error) {
	var sent struct {
		ID           string `json:"id"`
		Name         string `json:"name"`
		System       bool   `json:"isSystem"`
		DefaultAdmin bool   `json:"isDefaultAdmin"`
		Inside       bool   `json:"isInside"`
		EnrolledBy   string `json:"enrolledBy"`
		Provided     []struct {
			Attributes []string `json:"attributes"`
		} `json:"providerAttributes"`
	}
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, err
	}
	c := &current{def: d, answer: raw, id: sent.ID, kept: sent.System, came: sent.EnrolledBy != ""}
	for _, p := range sent.Provided {
		c.provided = append(c.provided, p.Attributes...)
	}
	if c.id == "" {
		return nil, fmt.Errorf("a record without an id: %.200s", raw)
	}
	if named(d) {
		c.name = sent.Name
	}
	c.made = c.kept || sent.DefaultAdmin || seeded()[d][c.id]
	c.inside = sent.Inside || model.Inside(d, c.name) // as one was known before it said so
	return c, nil
}

// said is the text of a member, empty if it has none.
func (v *value) said(name string) string {
	if m := v.member(name); m != nil {
		text, _ := m.text()
		return text
	}
	return ""
}

// is reports whether a member says yes.
func (v *value) is(name string) bool {
	m := v.member(name)
	return m != nil && string(m.scalar) == "true"
}

// said is what of the answer for a record a body could say.
func (c *current) said() (*value, error) {
	sent, err := fromJSON(c.answer)
	if err != nil {
		return nil, err
	}
	said := &value{members: make([]member, 0, len(sent.members))}
	for _, f := range c.def.Fields {
		if !settable(f) {
			continue
		}
		if m := sent.member(f.Shown()); m != nil {
			said.members = append(said.members, member{name: f.Last(), value: m})
		}
	}
	return said, nil
}

// settle turns the answer for a record into what a body would say.
func (n *Network) settle(c *current) error {
	said, err := c.said()
	if err != nil {
		return err
	}
	if f := c.def.Attributes; f != nil {
		said.member(f.Last()).less(c.provided)
	}
	references(c.def.Fields, said, func(f *kind.Field, text string, _ spot) string { return n.call(f, text) })
	fold(c.def.Fields, said, func(*kind.Field, member) {}) // a record is in a map once
	if c.body, err = settle(c.def, said, nil); err != nil {
		c.body = unsettled(c.def, said) // of before a rule that it breaks
	}
	if c.key = c.name; c.key == "" {
		c.key = keyOfReferences(c.def, said)
	}
	c.answer = nil
	return nil
}

// less takes texts out of a list.
func (v *value) less(texts []string) {
	if v == nil || len(texts) == 0 {
		return
	}
	v.items = slices.DeleteFunc(slices.Clone(v.items), func(item *value) bool {
		text, ok := item.text()
		return ok && slices.Contains(texts, text)
	})
}

// wants is what the file says of a field, but for role attributes that the
// record has whatever files say.
func (c *current) wants(w *wish, f *kind.Field) jsontext.Value {
	raw := w.body.of(f)
	if !f.Attributes || len(c.provided) == 0 || raw == nil {
		return raw
	}
	v, err := fromJSON(raw)
	if err != nil {
		return raw
	}
	v.less(c.provided)
	return v.json()
}

// unsettled is a body as it is.
func unsettled(d *kind.Def, said *value) (b body) {
	for _, f := range d.Fields {
		if m := said.member(f.Last()); m != nil && settable(f) {
			b = append(b, kind.Member{Field: f, Text: m.json()})
		}
	}
	return b
}

// settle reads a body as a controller does, with what goes without saying, nil
// for nothing.
func settle(d *kind.Def, said, usual *value) (body, error) {
	settled, err := d.Settled(kind.NewBody(texts(said, usual)))
	if err != nil {
		return nil, err
	}
	for i, m := range settled {
		if !unsorted(m) {
			continue
		}
		v, err := fromJSON(m.Text) // sorted
		if err != nil {
			return nil, err
		}
		settled[i].Text = v.json()
	}
	return settled, nil
}

// unsorted reports whether the objects in a value may be in any order. Those
// of tags and maps are sorted, and most others are empty.
func unsorted(m kind.Member) bool {
	switch m.Field.Form {
	case kind.Struct, kind.Structs, kind.JSON:
		return len(m.Text) > len("{}")
	}
	return false
}

// texts are the members of an object, each as JSON, and those of another that it
// does not have.
func texts(v, usual *value) map[string]jsontext.Value {
	members := make(map[string]jsontext.Value, len(v.members))
	for _, m := range v.members {
		members[m.name] = m.value.completed(usual.member(m.name)).json()
	}
	if usual == nil {
		return members
	}
	for _, m := range usual.members {
		if _, own := members[m.name]; !own {
			members[m.name] = m.value.json()
		}
	}
	return members
}

// completed is an object with the members that go without saying, and any other
// value as it is.
func (v *value) completed(usual *value) *value {
	if usual == nil || !v.isObject() || !usual.isObject() {
		return v
	}
	whole := &value{spot: v.spot, members: slices.Clone(v.members)}
	for i, m := range whole.members {
		whole.members[i].value = m.value.completed(usual.member(m.name))
	}
	for _, m := range usual.members {
		if v.member(m.name) == nil {
			whole.members = append(whole.members, m)
		}
	}
	return whole
}

// keyOfReferences is what tells apart records that have no names.
func keyOfReferences(d *kind.Def, said *value) string {
	var parts []string
	for _, f := range d.Fields {
		if f.Targets() != nil && settable(f) {
			parts = append(parts, said.said(f.Last()))
		}
	}
	return strings.Join(parts, ", ")
}

// call returns what files call the record that a text stands for: its name
// if that can mean nothing else, or else its id. What stands for no record stays
// as it is.
func (n *Network) call(f *kind.Field, text string) string {
	c := n.find(f, text)
	switch {
	case c == nil:
		return text
	case c.id == f.Default:
		return c.id
	case c.name == "":
		return c.id
	}
	for _, name := range f.Targets() {
		if s := n.shelves[model.All.Named(name)]; s != nil {
			if other := s.byID[c.name]; other != nil && other != c {
				return c.id
			}
			if other := s.byName[c.name]; other != nil && other != c {
				return c.id
			}
		}
	}
	return c.name
}

// find returns the record that a reference means, nil if there is none.
func (n *Network) find(f *kind.Field, text string) *current {
	for _, name := range f.Targets() {
		if s := n.shelves[model.All.Named(name)]; s != nil {
			if c := s.byID[text]; c != nil {
				return c
			}
		}
	}
	for _, name := range f.Targets() {
		if s := n.shelves[model.All.Named(name)]; s != nil {
			if c := s.byName[text]; c != nil {
				return c
			}
		}
	}
	return nil
}

// sorted are the records of a kind by their keys.
func (n *Network) sorted(d *kind.Def) []*current {
	var all []*current
	for _, c := range n.shelves[d].byID {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *current) int { return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.id, b.id)) })
	return all
}

// has reports whether a record has a label. One without a name has that of what
// it refers to first.
func (n *Network) has(c *current, l *Label) bool {
	if l == nil {
		return true
	}
	if c.name == "" {
		for _, f := range c.def.Fields {
			if f.Targets() != nil && settable(f) {
				owner := n.find(f, c.body.said(f.Last()))
				return owner != nil && n.has(owner, l)
			}
		}
		return false
	}
	tags, err := fromJSON(c.body.named("tags"))
	return err == nil && tags.said(l.Name) == l.Value
}

// equal reports whether two settled values are the same.
func equal(a, b jsontext.Value) bool { return bytes.Equal(a, b) }
