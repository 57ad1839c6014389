package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/kind"
)

// Export writes what a controller has to a directory, one file for each kind
// of which there is a record. A file of a kind that has none any more is
// emptied. With a label, only what has it is written, and without the label,
// which is added when the files are applied.
func Export(ctx context.Context, from Source, dir string, label *Label) (files []string, err error) {
	n, err := Load(ctx, from)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, d := range kinds {
		path := filepath.Join(dir, d.Path+".yaml")
		text, records, err := n.records(d, label)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(path); records == 0 && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	return files, nil
}

// Encode returns what a controller has as one file.
func (n *Network) Encode(label *Label) (whole []byte, err error) {
	for _, d := range kinds {
		text, records, err := n.records(d, label)
		if err != nil {
			return nil, err
		}
		if records > 0 {
			whole = append(whole, text...)
		}
	}
	if len(whole) == 0 {
		return []byte("{}\n"), nil
	}
	return whole, nil
}

// records are the records of a kind that people made, as a file has them. Each
// becomes text by itself: a network may be large, and texts are small.
func (n *Network) records(d *kind.Def, label *Label) (text []byte, records int, err error) {
	ours := slices.DeleteFunc(n.sorted(d), func(c *current) bool { return c.made || !n.has(c, label) })
	if len(ours) == 0 {
		return fmt.Appendf(nil, "%s: []\n", d.Path), 0, nil
	}
	texts := make([][]byte, len(ours))
	err = atOnce(len(ours), func(i int) error {
		v, err := ours[i].written(label)
		if err == nil {
			texts[i], err = document.AppendYAML([]byte(document.Step+"- "), v.json(), 2)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", d.Name, ours[i].key, err)
		}
		return nil
	})
	return append(fmt.Appendf(nil, "%s:\n", d.Path), bytes.Join(texts, nil)...), len(ours), err
}

// written is a record as a file has it: its name first, and its tags last.
func (c *current) written(label *Label) (*value, error) {
	v := &value{}
	add := func(f *kind.Field) error {
		raw := c.body.of(f)
		if raw == nil || !settable(f) {
			return nil
		}
		m, err := fromJSON(raw)
		if err != nil {
			return err
		}
		if f.Form == kind.Marks && label != nil {
			m.drop(label.Name)
		}
		if m = spoken(f, m, usual()[c.def].member(f.Last())); m != nil {
			v.members = append(v.members, member{name: f.Last(), value: m})
		}
		return nil
	}
	var last []*kind.Field
	for _, f := range c.def.Fields {
		if f.Form == kind.Marks {
			last = append(last, f)
		} else if err := add(f); err != nil {
			return nil, err
		}
	}
	for _, f := range last {
		if err := add(f); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// drop takes a member out.
func (v *value) drop(name string) {
	for i, m := range v.members {
		if m.name == name {
			v.members = append(v.members[:i:i], v.members[i+1:]...)
			return
		}
	}
}

// usual is what is added to files where they say nothing, by kind. Most programs
// that this is part of read none.
var usual = sync.OnceValue(func() map[*kind.Def]*value {
	all := map[*kind.Def]*value{}
	for _, d := range kinds {
		said := map[string]any{}
		d.Complete(said)
		text, err := json.Marshal(said)
		if err != nil {
			panic(err) // it holds texts, numbers and booleans
		}
		v, err := fromJSON(text)
		if err != nil {
			panic(err)
		}
		all[d] = v
	}
	return all
})

// spoken is what of a field's value a file has to say; nil if nothing. base is
// what goes without saying, nil if nothing does.
func spoken(f *kind.Field, v, base *value) *value {
	switch {
	case f.Form == kind.Struct && v.isObject():
		return spokenObject(f, v, base)
	case f.Form == kind.Structs:
		list := &value{list: true}
		for _, item := range v.items {
			one := spokenObject(f, item, nil)
			if one == nil {
				one = &value{}
			}
			list.items = append(list.items, one)
		}
		v = list
	}
	text := v.json()
	switch {
	case base != nil && equal(base.json(), text):
		return nil
	case base == nil && f.Required&kind.Create == 0 && isDefault(f, v, text):
		return nil
	}
	return v
}

// spokenObject leaves out the members that go without saying.
func spokenObject(f *kind.Field, v, base *value) *value {
	some := &value{}
	for _, m := range f.Members {
		inner := v.member(m.Last())
		if inner == nil || !settable(m) {
			continue
		}
		var without *value
		if base != nil {
			without = base.member(m.Last())
		}
		if inner = spoken(m, inner, without); inner != nil {
			some.members = append(some.members, member{name: m.Last(), value: inner})
		}
	}
	if len(some.members) == 0 && (base != nil || !f.Optional() && f.Required&kind.Create == 0) {
		return nil
	}
	return some
}

// isDefault reports whether a value is what a field has if nobody says.
func isDefault(f *kind.Field, v *value, text jsontext.Value) bool {
	switch f.Form {
	case kind.Text:
		said, _ := v.text()
		return v.isNull() || said == f.Default
	case kind.Bool:
		return string(text) == "false" && f.Default == "" || string(text) == f.Default
	case kind.Int:
		return string(text) == "0" && f.Default == "" || string(text) == f.Default
	}
	return v.isNull() || v.scalar == nil && len(v.members) == 0 && len(v.items) == 0
}
