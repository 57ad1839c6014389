package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// dialect is a way to write files.
type dialect interface {
	// kind is what a name of the top level stands for, nil if nothing.
	kind(name string) *kind.Def
	// tidy turns a record into ours. It is false for one that does not count.
	tidy(d *kind.Def, said *value) bool
	// notes says what was left out.
	notes() []string
}

// ours is what Export writes.
type ours struct{}

func (ours) kind(name string) *kind.Def {
	i := slices.IndexFunc(kinds, func(d *kind.Def) bool { return d.Path == name || d.Name == name })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

func (ours) tidy(*kind.Def, *value) bool { return true }
func (ours) notes() []string             { return nil }

// foreign is what the export of OpenZiti's command line writes: collections in
// one word with capitals, names of records after an @ wherever an id would be,
// and much that only a controller can say.
type foreign struct {
	file  string
	files *Files

	dropped map[string]bool // what was left out
}

// otherNames are collections that OpenZiti calls by other words than its API
// does.
var otherNames = map[string]string{"certificateAuthorities": "cas"}

func foreignKind(name string) *kind.Def {
	for _, d := range kinds {
		if d.Path == otherNames[name] || kind.Camel(d.Path) == name {
			return d
		}
	}
	return nil
}

// isForeign recognises an export by collections that only it names so, or by
// members that records of ours never have.
func isForeign(doc *value) bool {
	for _, m := range doc.members {
		d := foreignKind(m.name)
		if d == nil {
			continue
		}
		if m.name != d.Path {
			return true
		}
		for _, item := range m.value.items {
			for _, f := range d.Fields {
				if f.Shown() != f.Last() && item.member(f.Shown()) != nil || f.As != "" && f.As != f.Last() && item.member(f.As) != nil {
					return true
				}
			}
		}
	}
	return false
}

func (x *foreign) kind(name string) *kind.Def { return foreignKind(name) }

var systemPolicy = regexp.MustCompile(`^edge-router-.*-system$`)

func (x *foreign) tidy(d *kind.Def, said *value) bool {
	made := said.is("isSystem") || said.is("isDefaultAdmin") ||
		d.Name == "identity" && said.said("typeId") == "Router" || d.Name == "edge-router-policy" && systemPolicy.MatchString(said.said("name"))
	if made {
		x.drop("%s %q, which a controller makes by itself", noun(d), said.said("name"))
		return false
	}
	for i := range said.members {
		said.members[i].name = bodyName(d, said.members[i].name)
	}
	x.keep(d.Fields, said, d.Path)
	references(d.Fields, said, func(f *kind.Field, text string, _ spot) string {
		if f.Roles != "" {
			return text
		}
		return strings.TrimPrefix(text, "@")
	})
	if d == model.ExtJWTSigners.Def {
		x.tidySigner(said)
	}
	return true
}

// tidySigner takes out that anybody whom a signer knows becomes an identity: here
// it takes a rule of who may.
func (x *foreign) tidySigner(said *value) {
	for _, name := range []string{"enrollToCertEnabled", "enrollToTokenEnabled"} {
		if said.is(name) {
			x.drop("%s of the external JWT signer %q, which takes a rule of who may come", name, said.said("name"))
		}
		said.drop(name)
	}
	said.drop("enrollAuthPolicyId") // a default that means nothing without
}

// bodyName is the name in bodies of what an answer or an export calls so.
func bodyName(d *kind.Def, name string) string {
	for _, f := range d.Fields {
		if settable(f) && (f.Shown() == name || f.As == name) {
			return f.Last()
		}
	}
	return name
}

// keep takes out what nobody can set, and what says nothing.
func (x *foreign) keep(fields []*kind.Field, said *value, what string) {
	said.members = slices.DeleteFunc(said.members, func(m member) bool {
		i := slices.IndexFunc(fields, func(f *kind.Field) bool { return f.Last() == m.name })
		if i < 0 || !settable(fields[i]) {
			if i < 0 && !m.value.isNull() {
				x.drop("%s of %s, which files cannot say", m.name, what)
			}
			return true
		}
		f := fields[i]
		if m.value.isNull() && f.Required != 0 && (f.Form == kind.Texts || f.Form == kind.Structs) {
			*m.value = value{spot: m.value.spot, list: true} // as it writes those that are empty
		}
		if m.value.isNull() {
			return f.Required == 0 || !f.Nullable
		}
		if f.Name == "externalIdClaim" && m.value.blank() {
			return true // as it writes one that is none
		}
		if f.Form == kind.Marks {
			x.keepMarks(m.value)
		}
		if f.Form == kind.Struct {
			x.keep(f.Members, m.value, what)
		}
		for _, item := range m.value.items {
			if f.Form == kind.Structs {
				x.keep(f.Members, item, what)
			}
		}
		return false
	})
}

// blank reports whether an object has nothing but texts that are empty and zeros.
func (v *value) blank() bool {
	for _, m := range v.members {
		if text := string(m.value.json()); text != `""` && text != "0" && text != "null" {
			return false
		}
	}
	return len(v.members) > 0
}

// keepMarks makes texts of marks that are numbers or more, as a takeover does.
func (x *foreign) keepMarks(said *value) {
	for _, m := range said.members {
		switch m.value.scalar.Kind() {
		case '"', 't', 'f', 'n':
			continue
		}
		text, err := jsontext.AppendQuote(nil, m.value.json())
		if err == nil {
			*m.value = value{spot: m.value.spot, scalar: text}
			x.drop("that the tag %q was no text: one was made of it", m.name)
		}
	}
}

func (x *foreign) drop(format string, args ...any) {
	if x.dropped == nil {
		x.dropped = map[string]bool{}
	}
	x.dropped[fmt.Sprintf(format, args...)] = true
}

func (x *foreign) notes() []string {
	all := []string{x.file + " is an export of OpenZiti's"}
	for _, what := range slices.Sorted(maps.Keys(x.dropped)) {
		all = append(all, x.file+": left out "+what)
	}
	return all
}

// withoutTalk blanks what OpenZiti's command line says while it logs in, which
// it writes before its export: people send all of it to a file.
func withoutTalk(text []byte) []byte {
	at := 0
	for line := range bytes.Lines(text) {
		word := strings.TrimSpace(string(line))
		key, isKey := strings.CutSuffix(word, ":")
		switch {
		case word == "{" || isKey && foreignKind(key) != nil:
			blank := bytes.Clone(text)
			for i := range at {
				if blank[i] != '\n' {
					blank[i] = ' '
				}
			}
			return blank
		}
		at += len(line)
	}
	return text
}
