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

	"github.com/go-json-experiment/json/jsontext"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
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
	// maker is the record that it was made for and goes with, if any.
	maker *current
	// answer is what the controller says of it: bytes, since there may be many.
	answer jsontext.Value
	body   body
}

// sent is the answer, read again.
func (c *current) sent() *value {
	v, err := fromJSON(c.answer)
	if err != nil {
		return &value{} // which cannot be: it has been read before
	}
	return v
}

// body is what bodies can set of a record, with names in the place of ids.
type body map[string]jsontext.Value

// object is the body as one value.
func (b body) object() *value {
	v := &value{}
	for name, raw := range b {
		if m, err := fromJSON(raw); err == nil { // it was one before
			v.members = append(v.members, member{name: name, value: m})
		}
	}
	return v
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
	sent, err := fromJSON(raw)
	if err != nil {
		return nil, err
	}
	c := &current{def: d, answer: raw}
	if c.id = sent.said("id"); c.id == "" {
		return nil, fmt.Errorf("a record without an id: %.200s", raw)
	}
	if named(d) {
		c.name = sent.said("name")
	}
	c.kept = sent.is("isSystem")
	c.made = c.kept || sent.is("isDefaultAdmin") || seeded[d][c.id]
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
func (c *current) said() *value {
	said, sent := &value{}, c.sent()
	for _, f := range c.def.Fields {
		if m := sent.member(f.Shown()); m != nil && settable(f) {
			said.members = append(said.members, member{name: f.Last(), value: m})
		}
	}
	return said
}

// settle turns the answer for a record into what a body would say.
func (n *Network) settle(c *current) (err error) {
	said := c.said()
	references(c.def.Fields, said, func(f *kind.Field, text string, _ spot) string { return n.call(f, text) })
	if c.body, err = settle(c.def, said); err != nil {
		// A record of before a rule that it breaks: it is compared as it is.
		c.body, err = body{}, nil
		for _, m := range said.members {
			c.body[m.name] = m.value.appendJSON(nil)
		}
	}
	if c.key = c.name; c.key == "" {
		c.key = keyOfReferences(c.def, said)
	}
	return err
}

// settle reads a body as a controller does.
func settle(d *kind.Def, said *value) (body, error) {
	read, err := kind.ReadBody(said.appendJSON(nil))
	if err != nil {
		return nil, err
	}
	members, err := d.Settled(read)
	if err != nil {
		return nil, err
	}
	for name, raw := range members {
		if raw.Kind() != '{' && raw.Kind() != '[' {
			continue
		}
		v, err := fromJSON(raw) // sorted
		if err != nil {
			return nil, err
		}
		members[name] = v.appendJSON(nil)
	}
	return members, nil
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
	sent := c.sent()
	if c.name == "" {
		for _, f := range c.def.Fields {
			if f.Targets() != nil && settable(f) {
				owner := n.find(f, sent.said(f.Shown()))
				return owner != nil && n.has(owner, l)
			}
		}
		return false
	}
	tags := sent.member("tags")
	return tags != nil && tags.said(l.Name) == l.Value
}

// equal reports whether two settled values are the same.
func equal(a, b jsontext.Value) bool { return bytes.Equal(a, b) }
